"""Cut-overs of a group on the in-memory cluster."""

from __future__ import annotations

from migrate_groups.migration.write import write
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import cut_over, prepare

INV, CAT, FRESH = TopicPartition("inv", 0), TopicPartition("cat", 0), TopicPartition("inv", 1)


def cluster(kind: type[InMemoryCluster] = InMemoryCluster) -> InMemoryCluster:
    """Return a cluster where group ``big`` has committed offset 5 in inv-0 and cat-0, of ten records each.

    It has no committed offset in inv-1, which has 50 records.
    """
    made = kind()
    made.create_topic("inv", 2)
    made.create_topic("cat", 1)
    for partition, records in ((INV, 10), (CAT, 10), (FRESH, 50)):
        made.produce(partition.topic, partition.partition, records)
    made.commit("big", INV, 5)
    made.commit("big", CAT, 5)
    return made


def spec(*stay: str) -> SplitSpec:
    targets = [SplitTarget(group="bill", topics=(TopicPattern("inv"),))]
    if not stay:
        targets.append(SplitTarget(group="shop", topics=(TopicPattern("cat"),)))
    return SplitSpec(source="big", targets=tuple(targets), stay=tuple(TopicPattern(topic) for topic in stay))


def member(name: str, *partitions: TopicPartition) -> Member:
    topics = frozenset(partition.topic for partition in partitions)
    return Member(member_id=name, client_id=name, host="/h", assignment=frozenset(partitions), subscription=topics)


def committed_offset(made: InMemoryCluster, group: str, partition: TopicPartition) -> int | None:
    found = made.offsets(group).get(partition)
    return None if found is None else found.offset


def migrate(made, wanted: SplitSpec, options: WriteOptions, *events, earlier: Execution | None = None) -> Execution:
    """Cut over, and return the execution. Each time the clock sleeps, the next of ``events`` is called."""
    receipt = Receipt((earlier,)) if earlier else NOTHING_WRITTEN
    left = list(events)
    clock = FakeClock(lambda: left.pop(0)() if left else None)
    shown = prepare(made, wanted, options, clock, receipt)
    final = cut_over(made, shown, clock)
    return write(made.clients, receipt.begun(Verb.HAND_OVER, final.plan, clock.now()), lambda execution: None)


LEAVE = WriteOptions(on_uncommitted="leave", settle=0)


def fully_committed(kind: type[InMemoryCluster] = InMemoryCluster) -> InMemoryCluster:
    """Return the same as `cluster`, with a committed offset in every partition."""
    made = cluster(kind)
    made.commit("big", FRESH, 20)
    return made
