"""Checks of the offsets: each lies within the log, and every partition of every moved topic has one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.decide import Decision
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Action, Change, Check
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.wanted import Origin, Wanted
from migrate_groups.text import counted, some


def in_range(decisions: Sequence[Decision], changes: Sequence[Change], survey: Survey) -> Check:
    """Check that every offset to write lies between the log start offset and the log end offset.

    Brokers do not check it (docs/kafka-behaviour.md#altering-offsets). An offset below the log start offset is refused,
    because the records from it to the log start were deleted; with ``out_of_range`` ``earliest``, the log start offset
    is written instead. An offset beyond the log end offset is always refused.
    """
    below, beyond, unknown = [], [], []
    written = [
        (change.topic_partition, change.after.offset)
        for change in changes
        if change.after is not None and change.action is not Action.UNCHANGED
    ]
    for partition, offset in written:
        bounds = survey.bounds.get(partition)
        if bounds is None:
            unknown.append(str(partition))
        elif offset < bounds.start:
            below.append(_gone(partition, offset, bounds.start))
        elif offset > bounds.end:
            beyond.append(f"{partition} at {offset}: the log ends at {bounds.end}")
    reasons = [
        f"{counted(len(found), 'offset')} {meaning}: {some(found, most=3)}"
        for found, meaning in (
            (unknown, "in no log: the partition does not exist or has no leader"),
            (beyond, "beyond the log end offset"),
            (below, "below the log start offset (--out-of-range earliest sets them to it)"),
        )
        if found
    ]
    if reasons:
        return Check.refused("in range", "; ".join(reasons))
    if raised := list(dict.fromkeys(_raised(decisions))):
        reason = f"{counted(len(raised), 'offset')} set to the log start offset: {some(raised, most=3)}"
        return Check.warned("in range", reason)
    return Check.passed("in range", f"{counted(len(written), 'offset')} within the log")


def _raised(decisions: Sequence[Decision]) -> Iterator[str]:
    for each in decisions:
        if each.raised_from is not None and each.after is not None:
            yield _gone(each.wanted.topic_partition, each.raised_from, each.after.offset)


def _gone(partition: TopicPartition, offset: int, start: int) -> str:
    return f"{partition} at {offset}: {counted(start - offset, 'record')} gone already"


def complete(decisions: Sequence[Decision], survey: Survey, options: WriteOptions) -> Check:
    """Check that every partition of every moved topic has an offset, or that ``uncommitted`` says what it gets.

    In a partition without an offset, the target group's auto.offset.reset decides. If that is ``latest``, records that
    are produced between the stop of the source group and the start of the target group are lost
    (docs/kafka-behaviour.md#logs).
    """
    name = "complete"
    missing = [each.wanted for each in decisions if each.wanted.offset is None]
    if not missing:
        return Check.passed(name, "every partition of the moved topics has an offset")
    partitions = {each.topic_partition for each in missing}  # a set: several target groups may get the same one
    count = counted(len(partitions), "partition")
    if options.uncommitted == "leave" or _nothing_is_claimed(missing, options):
        reason = f"nothing is written for {count}: {some(partitions)}; auto.offset.reset decides there"
        return Check.warned(name, reason)
    found = f"{count} without a commit: {some(partitions)}"
    cut = {
        each.topic_partition
        for each in missing
        if each.origin is Origin.ABSENT and survey.committed[each.source_group or ""].get(each.topic_partition)
    }
    if cut:
        reason = f"{counted(len(cut), 'partition')} with a commit missing from the file: {some(cut)}"
        advice = "take a new snapshot, or leave them out with --uncommitted leave"
        return Check.refused(name, f"{reason}; {advice}")
    if options.uncommitted == "refuse":
        advice = (
            "--uncommitted earliest or leave, with migrate also latest, says what they get; "
            "the new group's auto.offset.reset decides if left"
        )
        return Check.refused(name, f"{found}; {advice}")
    if options.uncommitted == "latest":
        late = {each.topic_partition for each in missing if each.origin is not Origin.PROVEN_END}
        if late:
            reason = (
                f"no log end was read while a member was seen and no transaction was open there: {some(late)}; "
                "--uncommitted earliest or leave"
            )
            return Check.refused(name, reason)
    return Check.warned(name, f"{found}; uncommitted = {options.uncommitted}")


def _nothing_is_claimed(missing: Sequence[Wanted], options: WriteOptions) -> bool:
    return options.uncommitted == "refuse" and all(each.source_group is None for each in missing)
