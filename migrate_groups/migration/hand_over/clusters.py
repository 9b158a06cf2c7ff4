"""The clusters of a hand-over from a source group to target groups: `OneCluster`, or `TwoClusters` with a mirror."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from migrate_groups.migration.hand_over.knowledge import Knowledge
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.prepare import plan_of
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.survey import read_cluster_facts
from migrate_groups.migration.reading.take import Reading
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.planning.change import Change
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.survey import ClusterFacts


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


class Clusters(Protocol):
    """The cluster of the source group and the cluster of the target groups, which may be one and the same."""

    @property
    def source(self) -> GroupReader:
        """The reader of the source group."""
        ...

    @property
    def target(self) -> GroupReader:
        """The reader of the target groups."""
        ...

    @property
    def elsewhere(self) -> GroupReader | None:
        """The reader of the source group if source and target groups are on different clusters; otherwise None."""
        ...

    def for_one_phase(self) -> Clusters:
        """Return these clusters with readers that cache topics and permissions, for one step, such as a plan."""
        ...

    def plan(
        self, known: Knowledge, reading: Reading, wanted: Sequence[Change], earlier: Planned | None = None
    ) -> Planned:
        """Return the plan to write offsets to the target groups, with the verdict of every check. Reads only.

        - known, reading: what is known of the source group, from before its stop and as it was just read.
        - wanted: the partitions and offsets to hand over.
        - earlier: a plan from before the source group stopped, whose permissions and topic names may be used again.

        Raises `ClusterUnavailable`, `NotAuthorized` or `PendingCommits`.
        """
        ...

    def delivered_again(self, execution: Execution) -> str:
        """Return a remark that names copies to which a mirror has delivered records again since the plan was made.

        The remark is empty if there are none. execution: the write of the plan.
        """
        ...


@dataclass(frozen=True, slots=True)
class OneCluster:
    """Plans a hand-over on one cluster: the target groups get the source group's offsets unchanged."""

    reader: GroupReader

    @property
    def source(self) -> GroupReader:
        """The reader of the source group, which also reads the target groups."""
        return self.reader

    @property
    def target(self) -> GroupReader:
        """The reader of the target groups, which also reads the source group."""
        return self.reader

    @property
    def elsewhere(self) -> None:
        """None: no other cluster has the source group."""

    def for_one_phase(self) -> OneCluster:
        """Return this cluster with a reader that caches topics and permissions, for one step, such as a plan."""
        return OneCluster(for_one_phase(self.reader))

    def plan(
        self, known: Knowledge, reading: Reading, wanted: Sequence[Change], earlier: Planned | None = None
    ) -> Planned:
        """Return the plan to write the source group's offsets to the target groups, with the verdict of every check.

        earlier: a plan from before the source group stopped, whose permissions, topic names and offsets retention are
        used again.
        """
        facts = earlier.facts if earlier and earlier.facts else read_cluster_facts(self.reader, wanted)
        plan = plan_of(self.reader, wanted, known.options, known.receipt, facts, reading)
        return Planned(plan=plan, changes=wanted, bounds=reading.bounds, facts=facts)

    def delivered_again(self, execution: Execution) -> str:
        """Return an empty text, because a hand-over on one cluster involves no mirror."""
        return ""
