"""The clusters of a hand-over: `OneCluster` for all groups, or `TwoClusters`. Both make the same kind of plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from migrate_groups.migration.hand_over.knowledge import AllWanted
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.prepare import plan_of
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.survey import read_cluster_facts
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.survey import ClusterFacts
from migrate_groups.planning.wanted import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, with the partitions on the target cluster that target groups are to get.

    written: these partitions, each with the offset to start at. bounds: the log ranges of these partitions. facts: the
    permissions, topic names and offsets retention, which do not change until the write; None if the next plan has to
    read them again.
    """

    plan: Plan
    written: Sequence[Wanted]
    bounds: Mapping[TopicPartition, LogRange]
    facts: ClusterFacts | None = None


class Clusters(Protocol):
    """The cluster of the source group and the cluster of the target groups, which may be the same."""

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
        """The reader of the source group, if it is on another cluster than the target groups; otherwise None."""
        ...

    def for_one_phase(self) -> Clusters:
        """Return the same clusters, with readers that cache topics and permissions, for one step, such as a plan."""
        ...

    def plan(self, wanted: AllWanted, earlier: Planned | None = None) -> Planned:
        """Return the plan to write offsets to the target groups, with the verdict of every check. Reads only.

        wanted: the partitions, and the source group's offsets. earlier: the plan that was made before the source group
        stopped, whose permissions, topic names and offsets retention need not be read again. Raises
        `ClusterUnavailable`, `NotAuthorized` or `PendingCommits`.
        """
        ...

    def delivered_again(self, execution: Execution) -> str:
        """Return a remark that names the copies to which a mirror has delivered records again; empty if none.

        Records that it had delivered again before the plan was made do not count: the plan's offsets are after them.
        """
        ...


@dataclass(frozen=True, slots=True)
class OneCluster:
    """All groups are on one cluster, so a target group gets the source group's offsets as they are."""

    reader: GroupReader

    @property
    def source(self) -> GroupReader:
        """The reader of the source group, which is the reader of the target groups too."""
        return self.reader

    @property
    def target(self) -> GroupReader:
        """The reader of the target groups, which is the reader of the source group too."""
        return self.reader

    @property
    def elsewhere(self) -> None:
        """No reader of another cluster (None), because the source group is on the cluster of the target groups."""

    def for_one_phase(self) -> OneCluster:
        """Return the same cluster, with a reader that caches topics and permissions, for one step, such as a plan."""
        return OneCluster(for_one_phase(self.reader))

    def plan(self, wanted: AllWanted, earlier: Planned | None = None) -> Planned:
        """Return the plan to write the source group's offsets to the target groups, with the verdict of every check.

        earlier: the plan that was made before the source group stopped. Permissions, topic names and offsets retention
        are taken from it; all else is read again.
        """
        known, partitions = wanted.knowledge, wanted.partitions
        facts = earlier.facts if earlier and earlier.facts else read_cluster_facts(self.reader, partitions)
        plan = plan_of(self.reader, partitions, known.options, known.receipt, facts, wanted.reading)
        return Planned(plan=plan, written=partitions, bounds=wanted.reading.bounds, facts=facts)

    def delivered_again(self, execution: Execution) -> str:
        """Return an empty text: within one cluster no mirror delivers records."""
        return ""
