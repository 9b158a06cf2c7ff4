"""Checks of the offsets themselves: inside the log, and one for every partition of every moved topic."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_groups.offsets.snapshot import Row
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Action, Change, Check, Verdict
from migrate_groups.plan.propose import absent_partitions, end_while_a_member_was_seen
from migrate_groups.plan.survey import Survey
from migrate_groups.text import counted, some


def in_range(changes: Sequence[Change], survey: Survey) -> Check:
    """Every offset lies within the log; the broker itself accepts any (measured).

    Below the start, records are gone already; beyond the end, it is a wrong file.
    """
    below, beyond, unknown = [], [], []
    for change in changes:
        bounds = survey.bounds.get(change.topic_partition)
        if change.after is None or change.action is Action.UNCHANGED:
            continue
        offset = change.after.offset
        if bounds is None:
            unknown.append(str(change.topic_partition))
        elif offset < bounds.start:
            below.append(
                f"{change.topic_partition} at {offset}: {counted(bounds.start - offset, 'record')} gone already"
            )
        elif offset > bounds.end:
            beyond.append(f"{change.topic_partition} at {offset}: the log ends at {bounds.end}")
    for found, meaning in (
        (unknown, "in no log: the partition does not exist or has no leader"),
        (beyond, "beyond the log's end"),
        (below, "below the log's start"),
    ):
        if found:
            reason = f"{counted(len(found), 'offset')} {meaning}: {some(found, most=3)}"
            return Check(name="in range", verdict=Verdict.REFUSE, reason=reason)
    return Check(name="in range", verdict=Verdict.PASS, reason=f"{counted(len(changes), 'offset')} within the log")


def complete(rows: Sequence[Row], survey: Survey, options: WriteOptions) -> Check:
    """Every partition of every moved topic has an offset, or ``uncommitted`` says what it gets.

    Without one, the new group's auto.offset.reset decides: with ``latest``, what is produced between the old group's
    stop and the new group's start is lost (measured).
    """
    name = "complete"
    without = [row for row in rows if row.offset is None]
    missing = [*without, *absent_partitions(rows, survey)]
    if not missing:
        return Check(name=name, verdict=Verdict.PASS, reason="every partition of the moved topics has an offset")
    partitions = some(sorted({row.topic_partition for row in missing}))
    found = f"{counted(len(missing), 'partition')} without a commit: {partitions}"
    if all(row.source_group is None for row in missing):
        return Check(name=name, verdict=Verdict.WARN, reason=f"{found}; nothing is written for them")
    if options.uncommitted == "refuse":
        advice = (
            "--uncommitted start, end or leave says what they get; the new group's auto.offset.reset decides if left"
        )
        return Check(name=name, verdict=Verdict.REFUSE, reason=f"{found}; {advice}")
    if options.uncommitted == "end":
        late = [row.topic_partition for row in missing if end_while_a_member_was_seen(row) is None]
        if late:
            reason = f"no log end was read while a member was seen: {some(late)}; --uncommitted start or leave"
            return Check(name=name, verdict=Verdict.REFUSE, reason=reason)
    return Check(name=name, verdict=Verdict.WARN, reason=f"{found}; uncommitted = {options.uncommitted}")
