"""Delete a group's committed offsets of some topics, for instance of topics that the group no longer consumes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from migrate_groups.errors import Refused, UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.hints import hidden_topics_named
from migrate_groups.migration.reading.requests import describe_group, existing_group, read_all_committed, read_committed
from migrate_groups.migration.reading.survey import facts_of_way_back, permissions_unless_hidden, unread
from migrate_groups.migration.receipt_refusals import refuse_by_record
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.topics import TopicDescription, partitions_of
from migrate_groups.planning.change import Change, sorted_changes
from migrate_groups.planning.checks.facts import GroupDeletionFacts
from migrate_groups.planning.checks.permission import of_deletion
from migrate_groups.planning.checks.registry import planned, read_on
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.checks.target import options_of_write
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.snapshots.selection import NoTopicMatches, TopicPattern
from migrate_groups.text import named


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsToDelete:
    """The group whose committed offsets are deleted, and patterns of the topics.

    settle: seconds for which the group must not commit on these topics before the deletion.
    """

    group: str
    topics: tuple[TopicPattern, ...]
    settle: float = 10.0


def plan_deletion(reader: GroupReader, wanted: OffsetsToDelete, file: ReceiptFile, shown: Plan | None = None) -> Plan:
    """Return the plan that deletes the group's committed offsets of the topics in ``wanted``.

    The plan has no changes if an earlier run has already deleted these offsets. shown: the plan that the user agreed
    to. A check refuses if a committed offset has changed since.

    Raises `UsageError` if the receipt is of another write; `InvalidInput` if a pattern matches no topic of the group;
    `Refused` if a rollback in the receipt has not finished, or the group is not a consumer group; `GroupNotFound`.
    """
    receipt = file.receipt
    _refuse_other_receipt(file, wanted.group)
    refuse_by_record(receipt, Verb.DELETE_OFFSETS)
    earlier = receipt.executions[-1] if receipt.executions else None
    facts = GroupDeletionFacts(
        survey=unread(reader),
        options=WriteOptions(settle=wanted.settle, guard=0.0),
        receipt=receipt,
        earlier=earlier,
        shown=None if shown is None else shown.changes,
    )
    facts = read_on(Scope.DELETE_OF_GROUP, facts, lambda known: _read(reader, wanted, file, known))
    return planned(Scope.DELETE_OF_GROUP, facts)


def _read(
    reader: GroupReader, wanted: OffsetsToDelete, file: ReceiptFile, facts: GroupDeletionFacts
) -> GroupDeletionFacts:
    """Return the facts with what was read of the cluster, and with the deletions that follow from it."""
    group, receipt = wanted.group, facts.receipt
    by_name = {pattern.name for pattern in wanted.topics if pattern.name is not None}
    permissions_unless_hidden(reader, of_deletion(group, by_name))
    described = _described(reader, group, receipt)
    committed = read_all_committed(reader, [group])[group]
    with hidden_topics_named(reader):
        matched = _matched(wanted, {each.topic for each in committed}, receipt)
    unfinished = {each for each, state in _states(receipt).items() if state is State.DELETING}
    others = {each.topic for each in unfinished} - matched
    if others:
        raise UsageError(
            f"{file.path}: the deletion for {named('topic', others)} has not finished: run that command again, or name "
            "another receipt with --receipt"
        )
    topics = reader.describe_topics(matched)
    now = _with_pending(reader, group, committed, topics)
    changes = sorted_changes(
        Change(source_group=None, group=group, topic=each.topic, partition=each.partition, before=found, after=None)
        for each, found in {**dict.fromkeys(unfinished), **now}.items()
        if each.topic in matched and (found is not None or each in unfinished)
    )
    needed = of_deletion(group, matched)
    permissions = permissions_unless_hidden(reader, needed)
    return replace(
        facts,
        survey=replace(
            facts.survey,
            cluster_facts=facts_of_way_back(reader, permissions),
            groups={group: described},
            topics=topics,
        ),
        options=options_of_write(facts.options, {group}),
        changes=changes,
        needed=needed,
        topics={group: matched},
    )


def _refuse_other_receipt(file: ReceiptFile, group: str) -> None:
    receipt = file.receipt
    if receipt.executions and not receipt.is_of_deletion:
        raise UsageError(
            f"{file.path} is the receipt of a hand-over: pass it as RUN, or name another receipt with --receipt"
        )
    others = {change.group for execution in receipt.executions for change in execution.changes} - {group}
    if others:
        raise UsageError(f"{file.path} is the receipt of {named('group', others)}: name another receipt with --receipt")


def _described(reader: GroupReader, group: str, receipt: Receipt) -> GroupDescription:
    """Return the group's description. Raises `Refused` if it is not a consumer group.

    Raises `GroupNotFound` if the group does not exist and the receipt records no deletion.
    """
    # After a deletion the group may be gone: brokers delete an Empty group with its last committed offset.
    described = describe_group(reader, group) if receipt.partition_states else existing_group(reader, group)
    if reason := described.not_a_consumer_group:
        raise Refused(f"group {group!r} {reason}; nothing was deleted")
    return described


def _states(receipt: Receipt) -> Mapping[TopicPartition, State]:
    return {partition.change.topic_partition: partition.state for partition in receipt.partition_states.values()}


def _matched(wanted: OffsetsToDelete, committed: Collection[str], receipt: Receipt) -> set[str]:
    """Return the matching topics for which the group has committed offsets, or for which an earlier run deleted them.

    committed: the topics with a committed offset. Raises `NoTopicMatches` if a pattern matches no topic.
    """
    known = {each.topic for each, state in _states(receipt).items() if state is not State.RESTORED}
    present = {*committed} | known
    found = {pattern: pattern.matching(present) for pattern in wanted.topics}
    useless = [str(pattern) for pattern, topics in found.items() if not topics]
    if useless:
        raise NoTopicMatches(
            f"group {wanted.group!r} has no committed offset for {named('topic', useless)}; it has committed offsets "
            f"for {named('topic', committed) if committed else 'no topic'}"
        )
    return {topic for topics in found.values() for topic in topics}


def _with_pending(
    reader: GroupReader,
    group: str,
    committed: Mapping[TopicPartition, CommittedOffset | None],
    topics: Mapping[str, TopicDescription],
) -> Mapping[TopicPartition, CommittedOffset | None]:
    """Return the offsets in ``committed``, and the committed offsets of all other partitions of the topics.

    In the result, None means no committed offset. Waits for pending transactional commits. Raises `PendingCommits` if
    one is still pending at the time-out.
    """
    partitions = partitions_of(topics)
    # Read by name, because `read_all_committed` leaves out a partition whose first commit is still pending
    # (docs/kafka-behaviour.md#pending-transactions).
    unknown = [each for each in partitions if committed.get(each) is None]
    rest = read_committed(reader, {group: unknown})[group]
    return {**{each: found for each, found in committed.items() if found is not None}, **rest}
