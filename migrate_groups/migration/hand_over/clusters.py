"""The clusters of a hand-over from a source group to target groups: one, or two with a mirror between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.planning.change import Change
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.survey import ClusterFacts

if TYPE_CHECKING:
    from migrate_groups.migration.across.mirror import Mirror


@dataclass(frozen=True, slots=True)
class Clusters:
    """The cluster of the target groups, and that of the source group, which may be the same one.

    target: the reader of the target groups. mirror: copies the topics from the source group's cluster to this one; None
    if all groups are on one cluster.
    """

    target: GroupReader
    mirror: Mirror | None = None

    @property
    def source(self) -> GroupReader:
        """The reader of the source group."""
        return self.target if self.mirror is None else self.mirror.source.groups

    @property
    def elsewhere(self) -> GroupReader | None:
        """The reader of the source group if it is on another cluster than the target groups; otherwise None."""
        return None if self.mirror is None else self.source

    def for_one_phase(self) -> Clusters:
        """Return these clusters with readers that cache topics and permissions, for one step, such as a plan."""
        target, mirror = for_one_phase(self.target), self.mirror
        if mirror is None:
            return Clusters(target)
        return Clusters(target, mirror._replace(source=mirror.source._replace(groups=for_one_phase(self.source))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan to write offsets to target groups, and the facts from which it was made.

    changes: those of the target groups, also those without an offset. bounds: the log ranges of their partitions.
    facts: permissions and topic names for the next plan; None if it must read them again.
    """

    plan: Plan
    changes: Sequence[Change]
    bounds: Mapping[TopicPartition, LogRange]
    facts: ClusterFacts | None = None
