"""Checks of the offsets to write: each lies within the log, and no partition of the topics lacks an offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Change, Origin
from migrate_groups.planning.checks.advice import Advice
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check
from migrate_groups.planning.survey import Survey
from migrate_groups.text import counted, some

Offset = tuple[TopicPartition, CommittedOffset]
"""A partition, and an offset to write or to translate."""


def in_range(decisions: Sequence[Change], offsets: Iterable[Offset], survey: Survey) -> Check:
    """Check that every offset to write lies between the log start offset and the log end offset.

    Brokers accept other offsets too (docs/kafka-behaviour.md#altering-offsets). The check also refuses a partition
    without a leader, and an offset below which an unclean leader election has replaced records. It warns if offsets in
    ``decisions`` were raised to the log start offset.
    """
    below, beyond, unknown, cut = [], [], [], []
    # A topic that does not exist is refused by the check `topics`.
    written = [(partition, committed) for partition, committed in offsets if partition.topic in survey.topics]
    for partition, committed in written:
        bounds, offset = survey.bounds.get(partition), committed.offset
        if bounds is None:
            unknown.append(str(partition))
        elif offset < bounds.start:
            below.append(_gone(partition, offset, bounds.start))
        elif offset > bounds.end:
            beyond.append(f"{partition} at {offset}: the log end offset is {bounds.end}")
        elif survey.cut and (end := survey.cut.get((partition, committed))) is not None:
            cut.append(f"{partition} at {offset}: from {end} on there are other records than the group has read")
    reasons = [
        f"{counted(len(found), 'offset')} {meaning}: {some(found, most=3)}; {advice}"
        for found, meaning, advice in (
            (
                unknown,
                "in partitions that do not exist or have no leader",
                "check the partition numbers, and run again once every partition has a leader",
            ),
            (beyond, "beyond the log end offset", "rewind --to-current lowers each to the log end offset"),
            (
                cut,
                "above the end of a log that an election has cut, and that has grown again since",
                "reset the old group to it (kafka-consumer-groups --reset-offsets --to-offset), and run again",
            ),
            (below, "below the log start offset", "pass --out-of-range earliest to write the log start offset"),
        )
        if found
    ]
    if reasons:
        return Check.refused("in range", "; ".join(reasons))
    if raised := list(dict.fromkeys(_raised(decisions))):
        reason = f"{counted(len(raised), 'offset')} set to the log start offset: {some(raised, most=3)}"
        return Check.warned("in range", reason)
    if not written:
        return Check.not_applicable("in range", "no offset is written")
    return Check.passed("in range", f"{counted(len(written), 'offset')} within the log")


def _raised(decisions: Sequence[Change]) -> Iterator[str]:
    for each in decisions:
        if each.raised_from is not None and each.after is not None:
            yield _gone(each.topic_partition, each.raised_from, each.after.offset)


def _gone(partition: TopicPartition, offset: int, start: int) -> str:
    return f"{partition} at {offset}: {counted(start - offset, 'record')} deleted already"


def complete(decisions: Sequence[Change], survey: Survey, options: WriteOptions, advice: Advice) -> Check:
    """Check that every partition of the topics has an offset to write.

    In a partition without an offset, the target group's auto.offset.reset decides, and may skip records
    (docs/kafka-behaviour.md#logs). The check refuses such partitions, unless the option ``uncommitted`` allows them. It
    only warns if no source group hands them over.
    """
    name = "complete"
    missing = [each for each in decisions if each.start is None]
    left_out = _left_out(decisions, survey)
    if not decisions:
        return Check.not_applicable(name, "no topic to compare")
    if not (missing or left_out):
        return Check.passed(name, "every partition of the moved topics has an offset")
    # A set, because several target groups may get the same partition.
    partitions = {each.topic_partition for each in missing}
    is_only_warned = options.uncommitted == "refuse" and all(each.source_group is None for each in missing)
    if not missing or options.uncommitted == "leave" or is_only_warned:
        without = partitions | left_out
        count = counted(len(without), "partition")
        reason = f"no offset is written for {count}: {some(without)}; the new group's auto.offset.reset decides there"
        return Check.warned(name, reason)
    found = f"{counted(len(partitions), 'partition')} without a committed offset: {some(partitions)}"
    cut = {
        each.topic_partition
        for each in missing
        if each.origin is Origin.ABSENT and survey.committed[each.source_group or ""].get(each.topic_partition)
    }
    if cut:
        reason = f"the file lacks {counted(len(cut), 'partition')} with a committed offset: {some(cut)}"
        other = "pass --uncommitted leave to write no offset there"
        return Check.refused(name, f"{reason}; {advice.read_again}, or {other}")
    if options.uncommitted == "refuse":
        choices = (
            "pass --uncommitted earliest for the log start offset, latest (migrate only) for the log end offset, "
            "or leave to let the new group's auto.offset.reset decide"
        )
        return Check.refused(name, f"{found}; {choices}")
    if options.uncommitted == "latest":
        late = {each.topic_partition for each in missing if each.origin is not Origin.PROVEN_END}
        if late:
            reason = (
                f"the log end offset was never read with a member on the topic and no open transaction: {some(late)}; "
                "pass --uncommitted earliest or leave"
            )
            return Check.refused(name, reason)
    edge = "start" if options.uncommitted == "earliest" else "end"
    return Check.warned(name, f"{found}; the log {edge} offset is written (uncommitted = {options.uncommitted})")


def _left_out(decisions: Sequence[Change], survey: Survey) -> set[TopicPartition]:
    """Return the partitions for which no offset was decided and the target group has no committed offset.

    Only topics whose offsets are set without a source group are searched.
    """
    topics = {(each.group, each.topic) for each in decisions if each.source_group is None}
    # If a source group hands over a topic, every partition has a decision.
    if not topics:
        return set()
    known = {(each.group, each.topic_partition) for each in decisions}
    return {
        partition
        for group, topic in topics
        if topic in survey.topics
        for partition in (TopicPartition(topic, number) for number in survey.topics[topic].partitions)
        if (group, partition) not in known and survey.committed.get(group, {}).get(partition) is None
    }
