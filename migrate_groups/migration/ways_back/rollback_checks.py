"""The checks of a rollback: whether the target groups have started, and where the source groups continue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset, LogRange, TopicPartition
from migrate_groups.model.topics import TopicDescription, is_same_topic
from migrate_groups.planning.change import Change, Order, Relation
from migrate_groups.planning.checks.source import NO_SOURCE_GROUP, running
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.partition_states import PartitionState
from migrate_groups.planning.plan import Check
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.text import named, shell_command, some


def source_group(
    reader: GroupReader,
    execution: Execution,
    stopped: Mapping[Order, Change],
    now: Mapping[Order, CommittedOffset | None],
) -> Check:
    """Return a check of whether the source groups will continue from the offsets at which they stopped.

    The check refuses if a source group lost an offset and has members, so that the offset can't be set again. It warns
    if a lost offset will be set again, or if a source group has committed since the hand-over. The verdict is
    ``not known`` if the group is on another cluster.

    stopped: the changes that set lost offsets again. now: the current committed offsets.
    """
    name = "source group"
    if (there := execution.translation) is not None:
        reason = f"group {there.group} on cluster {there.cluster_id} is not read: check its offsets with describe"
        return Check.not_known(name, reason)
    if not stopped:
        return Check.not_applicable(name, NO_SOURCE_GROUP)
    lost: dict[str, list[str]] = defaultdict(list)
    moved: dict[str, list[str]] = defaultdict(list)
    for order, change in stopped.items():
        committed, after = now[order], change.after
        if committed is None:
            lost[change.group].append(str(change.topic_partition))
        elif after is not None and committed.offset != after.offset:
            moved[change.group].append(f"{change.topic_partition} {after.offset} → {committed.offset}")
    live = [
        # Brokers accept an offset only for a consumer group without members.
        f"{group} no longer has a committed offset for {some(partitions)}, and {reason}"
        for group, partitions in lost.items()
        if (described := reader.describe_group(group)).exists
        for reason in _live(described)
    ]
    if live:
        reason = f"{some(live, most=3)}; stop its members, so that these offsets can be set again"
        return Check.refused(name, reason)
    found = [
        f"{meaning}: " + "; ".join(f"{group} {some(partitions)}" for group, partitions in of_group.items())
        for meaning, of_group in (
            ("expired or deleted, set again from the receipt", lost),
            ("committed since the hand-over, and left as it is", moved),
        )
        if of_group
    ]
    if found:
        return Check.warned(name, "; ".join(found))
    return Check.passed(name, "the source group has its committed offsets")


def _live(group: GroupDescription) -> list[str]:
    return [reason] if (reason := group.not_a_consumer_group) else running(group, None)


def in_range(
    reader: GroupReader,
    restored: Sequence[Change],
    changes: Sequence[Change],
    now: Mapping[Order, CommittedOffset | None],
) -> Check:
    """Return a check of whether all groups continue within the log; outside it, consumers apply auto.offset.reset.

    The check refuses if an offset in ``restored`` is outside the log, and warns about other offsets. The verdict is
    ``not known`` if the log of another offset can't be read. restored: the changes that restore a source group's lost
    offset. changes: the changes of the target groups' offsets. now: the source groups' offsets.
    """
    lost = [(change.group, change.topic_partition, change.after) for change in restored]
    others = [(change.group, change.topic_partition, change.after) for change in changes]
    others += [(group, TopicPartition(topic, number), each) for (group, topic, number), each in now.items()]
    name, bounds = "in range", reader.log_ranges({partition for _, partition, _ in lost})
    if missing := [str(partition) for _, partition, _ in lost if partition not in bounds]:
        return Check.refused(name, f"{some(missing, 3)}: no leader, so the log end is not known: run again later")
    if out := _outside(lost, bounds):
        advice = "set an offset of the source group there with rewind and apply, and run again"
        return Check.refused(name, f"{some(out, 3)}: outside the log by now: {advice}")
    try:
        bounds = reader.log_ranges({partition for _, partition, _ in others})
    except ClusterUnavailable as error:  # these are only warned about
        reason = f"the logs could not be read, so it is not known whether offsets are within: {error}"
        return Check.not_known(name, reason)
    if out := _outside(others, bounds):
        return Check.warned(name, f"{some(out, 3)}: outside the log by now, so auto.offset.reset decides there")
    compared = [str(partition) for _, partition, committed in (*lost, *others) if committed is not None]
    without_leader = [str(partition) for _, partition, committed in others if committed and partition not in bounds]
    if without_leader:
        return Check.not_known(name, f"{some(without_leader, 3)}: no leader, so the log end is not known")
    return Check.of(name, (), "", "the offsets of all groups are within the log", compared=compared)


def _outside(
    offsets: Iterable[tuple[str, TopicPartition, CommittedOffset | None]], bounds: Mapping[TopicPartition, LogRange]
) -> list[str]:
    """Return the groups' offsets that are outside the log, as texts. A partition without a leader is left out."""
    return [
        f"{group} {partition} at {committed.offset}"
        for group, partition, committed in offsets
        if committed is not None
        and (log := bounds.get(partition)) is not None
        and not log.start <= committed.offset <= log.end
    ]


def is_deleted_or_recreated(topics: Mapping[str, TopicDescription], execution: Execution, topic: str) -> bool:
    """Return whether a topic was deleted or recreated since ``execution``. topics: the current topics."""
    now = topics.get(topic)
    return now is None or is_same_topic(execution.topic_ids.get(topic), now.topic_id) is False


def same_topics(topics: Mapping[str, TopicDescription], execution: Execution, changed: Collection[str]) -> Check:
    """Return a check that refuses if a topic was deleted or recreated since ``execution``, an earlier write.

    The verdict is ``not known`` if the id of a topic is not known. topics: the current topics. changed: the names of
    the topics whose offsets the rollback changes.
    """
    # A recreated topic has another topic id (KIP-516), and starts at offset 0.
    recreated = [topic for topic in sorted(changed) if is_deleted_or_recreated(topics, execution, topic)]
    write = _name_of(execution)
    complaint = f"deleted, or created again, since the {write}: set offsets on the new topic with rewind and apply"
    unknown = [
        topic
        for topic in sorted(changed)
        if topic in topics and is_same_topic(execution.topic_ids.get(topic), topics[topic].topic_id) is None
    ]
    if unknown and not recreated:
        reason = (
            f"the id of {named('topic', unknown)} is not known, so a topic that was created again since the {write} is "
            "not recognised: make sure that none was"
        )
        return Check.not_known("topics", reason)
    return Check.of("topics", recreated, complaint, f"the topics are those of the {write}", compared=changed)


def _name_of(execution: Execution) -> str:
    return "hand-over" if execution.verb is Verb.HAND_OVER else "deletion"


def nobody_in(reader: GroupReader, groups: set[str]) -> Check:
    """Return a check that refuses if one of these groups has members."""
    live = [
        f"{group} {reason}"
        for group in sorted(groups)
        if (described := reader.describe_group(group)).exists
        for reason in running(described, None)
    ]
    return Check.of("targets", live, "stop these members first", f"no members in {some(groups)}", compared=groups)


def not_committed_since(
    execution: Execution,
    states: Collection[PartitionState],
    now: Mapping[Order, CommittedOffset | None],
    added: Mapping[Order, CommittedOffset | None],
) -> Check:
    """Return a check that refuses if a group has committed since the run's write, or has lost an offset.

    states: the written partitions, with what the receipt (the record of the run) says about them. now: their current
    committed offsets. added: committed offsets on partitions that were added since; all must be None.
    """
    since = [f"{group} {topic}-{number}" for (group, topic, number), committed in added.items() if committed]
    gone: list[str] = []
    for partition in states:
        change, committed = partition.change, now[partition.change.order]
        relation = change.relation(committed)
        # The offset from before the run passes too, if the new one was not read back, or if the write is already
        # undone.
        is_replaced = partition.state is State.HANDED_OVER and change.replaced
        if relation is Relation.OURS or (relation is Relation.BEFORE and not is_replaced):
            continue
        (since if committed else gone).append(f"{change.group} {change.topic_partition}")
    if gone and not since:
        complaint = (
            "the committed offset expired or was deleted, so it is not known how far the group read: set it with apply"
        )
        return Check.refused("not committed since", f"{some(gone, 3)}: {complaint}")
    if execution.translation is not None and since:
        complaint = (
            "the group has committed since the move to this cluster, and a rollback would lose how far it has read: "
            "let it run on here"
        )
        return Check.refused("not committed since", f"{some(since, 3)}: {complaint}")
    if execution.verb is Verb.HAND_OVER and since and not any(partition.sources for partition in states):
        delete = shell_command("delete-group", sorted({partition.change.group for partition in states}))
        complaint = (
            "the group has committed since the write, and no old group can take that back: stop it, and delete it with "
            f"migrate-groups {delete}, or set other offsets with rewind and apply --on-existing overwrite"
        )
        return Check.refused("not committed since", f"{some(since, 3)}: {complaint}")
    if execution.verb is Verb.HAND_OVER:
        complaint = "the group has committed since the hand-over: use hand-back, which moves the source group forward"
        return Check.of(
            "not committed since",
            since,
            complaint,
            "no target group has committed since the hand-over",
            compared=states,
        )
    complaint = "the group has committed since the deletion: set the right offsets with apply"
    return Check.of(
        "not committed since", since, complaint, "the group has not committed since the deletion", compared=states
    )
