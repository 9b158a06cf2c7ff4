"""Move a group between two in-memory clusters. The target cluster gets copies of the source cluster's records."""

from __future__ import annotations

from pathlib import Path

from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import migrate, plan_migration
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.migration.ports import Clients, Side
from migrate_groups.migration.ways_back.move_back import move_back
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster, InMemoryRecords

HERE, THERE = TopicPartition("orders", 0), TopicPartition("eu.orders", 0)
OPTIONS = WriteOptions(settle=0, guard=0)


class Move:
    """Two clusters: a topic with 50 records in each of two partitions, and an empty topic for its copies.

    The group ``g`` is to move, and keeps its name.
    """

    def __init__(self, folder: Path, kind: type[InMemoryCluster] = InMemoryCluster) -> None:
        self.source, self.target = kind("source"), kind("target")
        self.source.create_topic("orders", 2)
        self.target.create_topic("eu.orders", 2)
        for number in range(2):
            for timestamp in range(50):
                self.source.produce("orders", number, 1, timestamp=timestamp)
        self.folder, self.clock = folder, FakeClock()
        self.groups, self.run = ["g"], RunDir(folder / "run")
        self.mirror = Mirror(
            Side(self.source, InMemoryRecords(self.source), self.source),
            Side(self.target, InMemoryRecords(self.target)),
        )

    def copy(self, first: int, last: int, *partitions: int) -> None:
        """Copy the records from offset ``first`` up to ``last`` (exclusive) of some partitions, as a mirror does."""
        for number in partitions or (0, 1):
            span = range(first, last)
            copied = self.source.records(TopicPartition("orders", number), span, committed_only=False)
            self.target.append_copies("eu.orders", number, copied)

    def commit(self, *offsets: int) -> None:
        """Commit offsets of the group ``g`` on the source cluster, one for each partition."""
        for number, offset in enumerate(offsets):
            self.source.commit("g", TopicPartition("orders", number), offset)

    def wanted(self, options: WriteOptions, **more: object) -> MigrateRequest:
        """Return the request that moves the group. more: fields of the request."""
        targets = tuple(SplitTarget(group=group, topics=(TopicPattern("orders"),)) for group in self.groups)
        spec = SplitSpec(source="g", targets=targets, fan_out=True)
        file = SplitFile(content=b"", spec=spec, options=options)
        given = {"run": self.run, "wait": 60.0, "mirror": self.mirror} | more
        return MigrateRequest(file=file, **given)  # type: ignore[arg-type]

    def plan(self, options: WriteOptions = OPTIONS) -> Plan:
        """Return the plan of a dry run."""
        prepared = plan_migration(self.target, self.wanted(options), self.clock, Events())
        assert prepared is not None
        return prepared.plan

    def verdict(self, name: str, options: WriteOptions = OPTIONS) -> tuple[Verdict, str]:
        """Return the verdict and the reason of a check in the plan of a dry run. name: the name of the check."""
        return next((check.verdict, check.reason) for check in self.plan(options).checks if check.name == name)

    def migrate(self, options: WriteOptions = OPTIONS, events: Events | None = None, **more: object) -> Execution:
        """Move the group, and return the execution that the receipt records."""
        clients = Clients(self.target, self.target)
        done = migrate(clients, self.wanted(options, **more), self.clock, events or Events())
        assert done is not None
        done.check()
        return done.execution

    @property
    def swapped(self) -> Mirror:
        """The two clusters for the return of the group, which begins on the target cluster."""
        here, there = Side(self.source, InMemoryRecords(self.source)), Side(self.target, InMemoryRecords(self.target))
        return Mirror(there._replace(writer=self.target), here)

    def back(self, mirror: Mirror | None = None) -> MigrateRequest:
        """Return the request that moves the group back, as `hand-back` makes it from the record of the run.

        mirror: other clusters than `swapped`.
        """
        return move_back(receipt_json.load(self.run.receipt), self.run.folder, mirror or self.swapped)

    def hand_back(self) -> None:
        """Move the group back to the source cluster."""
        done = migrate(Clients(self.source, self.source), self.back(), self.clock, Events())
        if done is not None:
            done.check()

    def there(self, group: str = "g") -> dict[int, int]:
        """Return a group's committed offsets on the target cluster, by partition number."""
        return _by_number(self.target, group)

    def here(self) -> dict[int, int]:
        """Return the committed offsets of the group ``g`` on the source cluster, by partition number."""
        return _by_number(self.source, "g")


def _by_number(cluster: InMemoryCluster, group: str) -> dict[int, int]:
    return {partition.partition: found.offset for partition, found in cluster.offsets(group).items() if found}
