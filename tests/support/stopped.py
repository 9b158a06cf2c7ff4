"""A group without members on the in-memory cluster, and its hand-over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from migrate_groups.migration.write import write
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import plan_of

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def stopped(
    offsets: Mapping[TopicPartition, int], group: str = "old", *, kind: Callable[[], InMemoryCluster] = InMemoryCluster
) -> InMemoryCluster:
    """Return a cluster on which a group has committed these offsets, in partitions of ten records each."""
    made = kind()
    for topic in dict.fromkeys(partition.topic for partition in offsets):
        made.create_topic(topic, 1 + max(each.partition for each in offsets if each.topic == topic))
    for partition, offset in offsets.items():
        made.produce(partition.topic, partition.partition, 10)
        made.commit(group, partition, offset)
    return made


def carry_out(
    made: InMemoryCluster, plan: Plan, record: Callable[[Execution], None] = lambda execution: None
) -> Execution:
    """Write what a plan says, and return its execution. record: gets each state that a receipt would record."""
    assert plan.refusals(at_the_write=True) == ()
    return write(made.clients, Execution.of(plan, FakeClock().now()), record)


def hand_over(made: InMemoryCluster, **options: object) -> Execution:
    """Hand every partition of group ``old`` over to ``new``, and return the execution."""
    return carry_out(made, plan_of(made, "old", "new", **options))
