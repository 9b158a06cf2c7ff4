"""Functions that rollback, hand-back and delete-offsets share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.checks.permission import Permissions, missing
from migrate_groups.planning.execution import Execution, Order
from migrate_groups.planning.plan import Change, Check
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import some

_DELETE = frozenset({Operation.DESCRIBE, Operation.DELETE})
_WRITE = frozenset({Operation.DESCRIBE, Operation.READ})


def last_hand_over(receipt: Receipt) -> Execution:
    """Return the last execution in a receipt that is a hand-over. Raises `Refused` if it contains none."""
    executions = [execution for execution in receipt.executions if execution.verb is Verb.HAND_OVER]
    if not executions:
        raise Refused("this run wrote nothing")
    return executions[-1]


def committed_by_order(reader: GroupReader, orders: Iterable[Order]) -> dict[Order, CommittedOffset | None]:
    """Return the current committed offset for each group, topic and partition in ``orders``.

    Raises the errors of `OffsetsReader.committed`.
    """
    of_group: dict[str, list[TopicPartition]] = defaultdict(list)
    for group, topic, number in orders:
        of_group[group].append(TopicPartition(topic, number))
    return {
        (group, *partition): committed
        for group, partitions in of_group.items()
        for partition, committed in reader.committed(group, partitions).items()
    }


def same_cluster(reader: GroupReader, execution: Execution) -> Check:
    """Check that this is the cluster that the execution wrote to."""
    here = reader.cluster_id()
    return Check.of(
        "cluster", [] if here == execution.cluster_id else [execution.cluster_id], "another cluster", f"this is {here}"
    )


def permissions_wanted(
    changes: Sequence[Change], looked_at: Iterable[str] = (), *, written: Iterable[str] = ()
) -> Mapping[Resource, frozenset[Operation]]:
    """Return the permissions that these changes need, by group and topic.

    Also Describe on the groups in ``looked_at``, and Describe and Read on those in ``written``.
    """
    wanted = {Resource(ResourceType.GROUP, group): frozenset({Operation.DESCRIBE}) for group in looked_at}
    wanted |= {Resource(ResourceType.GROUP, group): _WRITE for group in written}
    for change in changes:
        group, topic = Resource(ResourceType.GROUP, change.group), Resource(ResourceType.TOPIC, change.topic)
        wanted[group] = wanted.get(group, frozenset()) | (_DELETE if change.after is None else _WRITE)
        wanted[topic] = _WRITE
    return wanted


def permitted(reader: GroupReader, wanted: Mapping[Resource, frozenset[Operation]], permissions: Permissions) -> Check:
    """Check that the principal has all wanted permissions."""
    lacking = missing(wanted, permissions)
    if not lacking:
        return Check.passed("permission", f"{reader.principal} may do all of it")
    reason = f"{reader.principal} lacks {some(lacking, most=20)}; grant it these permissions"
    return Check.refused("permission", reason)
