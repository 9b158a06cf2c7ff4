"""Make plans of hand-overs, and look up the results of their checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.cut_over import CutOver
from migrate_groups.migration.hand_over.prepared import MigrateRequest, Prepared
from migrate_groups.migration.hand_over.prepared import prepare as prepare_for
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.stop import StopProgress
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.check import Check
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import NOTHING_WRITTEN
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import SplitSpec
from tests.support.clock import FakeClock


def prepare(reader, spec: SplitSpec, options: WriteOptions, clock, receipt=NOTHING_WRITTEN, *, hold=False) -> Prepared:
    """Return the plan of a hand-over within one cluster, as it is before the wait for the source group."""
    wanted = MigrateRequest(file=SplitFile(content=b"", spec=spec, options=options), run=RunDir(Path("run")), hold=hold)
    return prepare_for(one_cluster(reader), wanted, receipt, None, clock)


def cut_over(reader, shown: Prepared, clock, progress: StopProgress = lambda reasons, looks, seconds: None) -> Prepared:
    """Wait up to 60 s for the source group to stop, and return the final plan. shown: the plan from `prepare`."""

    class Watching(Events):
        def still_running(self, *observed) -> None:
            progress(*observed)

    steps = CutOver(one_cluster(reader), shown, clock, wait=60, events=Watching())
    final = None
    while final is None:
        steps.wait_for_stop()
        final = steps.read()
    return final


@contextmanager
def connected(bootstrap_servers: str, *, timeout: float = 20) -> Iterator[KafkaPythonWriter]:
    """Yield a client that is connected to a broker, for making plans."""
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=timeout)
    with closing(KafkaPythonWriter(config)) as client:
        yield client


def old_group(world, group: str | None = None) -> tuple[TopicPartition, str]:
    """Return a partition of ten records, and a group without members that has committed offset 4 in it."""
    topic, group = world.create_topic(), group or world.name("old")
    world.produce(topic, 0, 10)
    world.commit(group, TopicPartition(topic, 0), 4)
    return TopicPartition(topic, 0), group


def handed_over(writer, old: str, new: str) -> SnapshotTable:
    """Return a snapshot of the source group ``old``, with its rows renamed to the target group ``new``."""
    return name_groups(take_snapshot(writer, [old], FakeClock()), [new], fan_out=False, restore=False)


def plan_of(writer, old: str, new: str, **options) -> Plan:
    """Return the plan that hands every partition of the group ``old`` over to the group ``new``."""
    return make_plan(writer, handed_over(writer, old, new), WriteOptions(**options))


def check(plan: Plan, name: str) -> Check:
    """Return the plan's check with this name."""
    (found,) = (each for each in plan.checks if each.name == name)
    return found


def refusing(plan: Plan) -> list[str]:
    """Return the names of the checks that refuse the write."""
    return [each.name for each in plan.refusals(at_the_write=True)]
