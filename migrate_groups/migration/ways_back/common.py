"""Functions that the commands rollback, hand-back and delete-offsets share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.change import Change
from migrate_groups.planning.checks.permission import Permissions, not_granted
from migrate_groups.planning.checks.source import running
from migrate_groups.planning.checks.target import is_trimmed
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check, Plan

_DELETE = frozenset({Operation.DESCRIBE, Operation.DELETE})
_WRITE = frozenset({Operation.DESCRIBE, Operation.READ})


def options_of_write(options: WriteOptions, groups: Iterable[str]) -> WriteOptions:
    """Return the options for a write to these groups, without confluent-kafka if it would misread a group's name.

    librdkafka changes some names (docs/kafka-behaviour.md#confluent-kafka).
    """
    return replace(options, second_client="none") if any(map(is_trimmed, groups)) else options


def same_cluster(reader: GroupReader, execution: Execution) -> Check:
    """Return a check that refuses if the reader's cluster is not the one to which ``execution`` wrote."""
    here, source = reader.cluster_id(), execution.translation
    if source is not None and here == source.cluster_id:
        reason = f"this is the old group's cluster, {here}: pass the new groups' cluster, {execution.cluster_id}"
        return Check.refused("cluster", f"{reason}, as --bootstrap-server")
    if here != execution.cluster_id:
        reason = f"the receipt is from cluster {execution.cluster_id}, this is {here}: check --bootstrap-server"
        return Check.refused("cluster", reason)
    return Check.passed("cluster", f"the receipt is from this cluster, {here}")


def both_clusters(source: GroupReader, target: GroupReader, execution: Execution) -> Check:
    """Return a check that refuses if a reader is not connected to its cluster of a hand-over.

    source: reads the source group. target: reads the target groups. execution: the hand-over.
    """
    if execution.translation is None:
        return same_cluster(target, execution)
    wanted = execution.translation.cluster_id, execution.cluster_id
    here = source.cluster_id(), target.cluster_id()
    named = ("the old group is", "--bootstrap-server"), ("the new groups are", "--to-bootstrap-server")
    wrong = [
        f"{groups} on cluster {right}, {option} is {given}"
        for (groups, option), right, given in zip(named, wanted, here, strict=True)
        if right != given
    ]
    if wrong:
        return Check.refused("cluster", "; ".join(wrong))
    return Check.passed("cluster", f"the old group is on this cluster, {here[0]}, the new groups are on {here[1]}")


def plan_for_wrong_cluster(reader: GroupReader, execution: Execution, check: Check) -> Plan:
    """Return a plan without changes, with only ``check``, which refuses the cluster of the reader."""
    # Other checks would mislead: another cluster may have groups of the same names.
    return Plan(cluster_id=reader.cluster_id(), options=execution.options, changes=(), checks=(check,))


def permissions_wanted(
    changes: Sequence[Change], looked_at: Iterable[str] = ()
) -> Mapping[Resource, frozenset[Operation]]:
    """Return, for each group and topic, the operations that the client's principal needs to write these changes.

    looked_at: groups that only need Describe.
    """
    wanted = {Resource(ResourceType.GROUP, group): frozenset({Operation.DESCRIBE}) for group in looked_at}
    for change in changes:
        group, topic = Resource(ResourceType.GROUP, change.group), Resource(ResourceType.TOPIC, change.topic)
        wanted[group] = wanted.get(group, frozenset()) | (_DELETE if change.after is None else _WRITE)
        wanted[topic] = _WRITE
    return wanted


def permitted(reader: GroupReader, wanted: Mapping[Resource, frozenset[Operation]], permissions: Permissions) -> Check:
    """Return a check that refuses if the client's principal lacks a wanted permission.

    permissions: the operations that the principal may perform; if the brokers don't return them (None), the verdict is
    ``not known``.
    """
    name = "permission"
    fine = Check.passed(name, f"{reader.principal} has all permissions for the write")
    return not_granted(name, reader.principal, wanted, permissions) or fine


def nobody_holds(described: Mapping[str, GroupDescription], topics: Mapping[str, set[str]]) -> Check:
    """Return a check that refuses if a member of a group may still consume one of the group's ``topics``.

    topics: by group, the topics that the group must no longer consume.
    """
    live = [
        f"{group} {reason}"
        for group, held in topics.items()
        if described[group].exists
        for reason in running(described[group], held)
    ]
    return Check.of("stopped", live, "stop these consumers", "no member is on the topics", compared=topics)
