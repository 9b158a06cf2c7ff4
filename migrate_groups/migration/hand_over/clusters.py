"""Where a hand-over goes: to groups of the same cluster, or of another one. Both make the same kind of plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.prepare import plan_of
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.survey import read_cluster_facts
from migrate_groups.migration.reading.take import Reading
from migrate_groups.model.partitions import LogRange, TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.survey import ClusterFacts
from migrate_groups.planning.wanted import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, with the partitions that target groups are to get, as they are named on the target cluster.

    written: the partitions with their offsets there. bounds: their log ranges.
    """

    plan: Plan
    written: Sequence[Wanted]
    bounds: Mapping[TopicPartition, LogRange]


class Clusters(Protocol):
    """The cluster of the source group, and that of the target groups."""

    @property
    def source(self) -> GroupReader:
        """Reads the source group."""
        ...

    @property
    def target(self) -> GroupReader:
        """Reads the target groups."""
        ...

    @property
    def elsewhere(self) -> GroupReader | None:
        """Reads the source group, if it is on another cluster than the target groups; otherwise None."""
        ...

    def for_one_phase(self) -> Clusters:
        """Return the same clusters, with readers that request each topic and permission only once."""
        ...

    def facts(self, wanted: Sequence[Wanted]) -> ClusterFacts | None:
        """Return facts that do not change during the cut-over, so that `plan` need not read them; None: it does."""
        ...

    def plan(
        self,
        wanted: Sequence[Wanted],
        options: WriteOptions,
        receipt: Receipt,
        facts: ClusterFacts | None,
        reading: Reading,
    ) -> Planned:
        """Return the plan that gives these partitions of the source group to target groups. Reads only.

        receipt: the record of the run so far. reading: the source group's description, committed offsets and log
        ranges. Raises the errors of `GroupReader`.
        """
        ...


@dataclass(frozen=True, slots=True)
class OneCluster:
    """All groups are on one cluster, so a target group gets the source group's offsets as they are."""

    reader: GroupReader

    @property
    def source(self) -> GroupReader:
        """See `Clusters.source`."""
        return self.reader

    @property
    def target(self) -> GroupReader:
        """See `Clusters.target`."""
        return self.reader

    @property
    def elsewhere(self) -> None:
        """See `Clusters.elsewhere`."""

    def for_one_phase(self) -> OneCluster:
        """See `Clusters.for_one_phase`."""
        return OneCluster(for_one_phase(self.reader))

    def facts(self, wanted: Sequence[Wanted]) -> ClusterFacts | None:
        """See `Clusters.facts`."""
        return read_cluster_facts(self.reader, wanted)

    def plan(
        self,
        wanted: Sequence[Wanted],
        options: WriteOptions,
        receipt: Receipt,
        facts: ClusterFacts | None,
        reading: Reading,
    ) -> Planned:
        """See `Clusters.plan`."""
        plan = plan_of(self.reader, wanted, options, receipt, facts, reading)
        return Planned(plan=plan, written=wanted, bounds=reading.bounds)
