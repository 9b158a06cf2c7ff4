"""After a write, watch the groups that must have stopped: records that they still read are processed twice."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import (
    ClusterUnavailable,
    MigrateGroupsError,
    Refused,
    ShareGroupStarted,
    raise_first,
    without_errors,
)
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.model.partitions import CommittedOffsets, TopicPartition
from migrate_groups.planning.change import Change, by_group, partitions_by_group
from migrate_groups.planning.checks.source import running
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.outage import FirstSign, Sign
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.text import counted, some

_POLL_SECONDS = 1.0
# A rebalance waits this long for a member that does not poll: the default of max.poll.interval.ms.
_LONGEST_REBALANCE_SECONDS = 300.0
_NOT_READABLE = (ClusterUnavailable, Refused)


Stopped = Mapping[TopicPartition, int | None]
"""The partitions that a group must no longer consume, with the offset at which it stopped; None if not known."""


def watched(execution: Execution) -> Mapping[str, Stopped]:
    """Return the partitions that must no longer be consumed after a write, by group.

    - after a hand-over (to target groups): the source groups
    - after a rollback or hand-back: the target groups
    - after delete-offsets: the groups whose offsets were deleted

    There is none if the cluster of the source group is lost, or if the target groups got a copy (``--copy``).
    """
    if execution.options.copy or (execution.verb is Verb.HAND_OVER and execution.is_fail_over):
        return {}
    found: dict[str, dict[TopicPartition, int | None]] = defaultdict(dict)
    if execution.verb in (Verb.HAND_OVER, Verb.HAND_BACK):
        for source in chain.from_iterable(execution.sources().values()):
            found[source.group][source.partition] = source.stopped_at
    else:
        for change in execution.changes:
            if change.source_group is None:
                found[change.group][change.topic_partition] = change.after.offset if change.after else None
    return found


def look_at_watched(reader: GroupReader, execution: Execution) -> Execution:
    """After a write, check once whether groups that must no longer consume still do.

    Returns the record of the write. Its ``moved`` has messages about groups that still consume, and its
    ``not_watched`` about groups that can't be read.
    """
    execution = replace(execution, not_watched=(), guard_readings=0, longest_gap=None)
    return _check_once(reader, execution, watched(execution))[0]


class Consumed(NamedTuple):
    """What is known, at any time after a write, of groups that have consumed although they must have stopped.

    - signs: the signs as text; empty if there are none. Present is what brokers say now. What the record of the write
      says is past, with its time; it is left out if members may consume now.
    - is_live: whether members may consume now, so that they must be stopped.
    - not_watched: messages about groups that can't be read.
    """

    signs: str
    is_live: bool
    not_watched: tuple[str, ...]


def consumed_since(reader: GroupReader, execution: Execution) -> Consumed:
    """Check once, at any time after a write, whether groups that must no longer consume do, or have since the write."""
    now, unclear, is_live = _check_once(reader, replace(execution, moved=(), not_watched=()), watched(execution))
    signs = [some(now.moved, 3)] if now.moved else []
    if not is_live:
        if execution.moved and execution.moved[0] not in now.moved:
            signs.append(execution.moved_in_words)
        if signs and (unclear or now.not_watched):
            signs.append("see with describe whether it still does")
        elif signs:
            signs.append("no member is on the topics now (a consumer that uses assign() would not show)")
    return Consumed("; ".join(signs), is_live, now.not_watched)


def guard(clients: Clients, execution: Execution, seconds: float, clock: Clock) -> Execution:
    """After a write, watch the groups that must no longer consume, for ``seconds`` or until one of them consumes.

    They are read at least once, even if that time has passed before. Returns the record of the write. Its ``moved`` has
    messages about groups that still consume, and its ``not_watched`` about groups that can't be read; it also has the
    number of readings and the longest time between them. If a group rebalances, the watch may take up to 5 minutes
    longer.

    After a hand-over, the offsets of target groups without members are then read again. An offset that is missing or
    lower than written gets the outcome ``refused``.
    """
    reader, to_watch = clients.writer, clients.of_watched(execution.verb)
    read_at = clock.monotonic()
    deadline = read_at + seconds
    at, unclear, readings_before = watched(execution), list[str](), execution.guard_readings
    while not (execution.moved or execution.not_watched):
        left = deadline + (_LONGEST_REBALANCE_SECONDS if unclear else 0) - clock.monotonic()
        if left <= 0 and execution.guard_readings > readings_before:
            break
        # At full seconds, so that the readings of all groups of a fleet are sent together.
        clock.sleep(max(0, min(_POLL_SECONDS - clock.monotonic() % _POLL_SECONDS, left)))
        if execution.verb is Verb.HAND_OVER:
            # Before the source groups, so that the last reading of the guard is of them.
            execution = with_first_signs(reader, execution, clock)
        execution, unclear, _ = _check_once(to_watch, execution, at)
        read_at, before = clock.monotonic(), read_at
        execution = execution.with_reading(_rounded_up(read_at - before))
    execution = execution.with_moved(
        f"group {group!r} is still rebalancing, so it is not known which members have the topics: run describe"
        for group in unclear
    )
    return _compare_with_written(reader, execution) if execution.verb is Verb.HAND_OVER else execution


def _rounded_up(seconds: float) -> float:
    """Return the seconds with three decimals, never less than they are."""
    return math.ceil(seconds * 1000) / 1000


def _check_once(
    reader: GroupReader, execution: Execution, at: Mapping[str, Stopped]
) -> tuple[Execution, list[str], bool]:
    """Check once whether groups that must no longer consume still do; return the record of the write with messages.

    Also returns the groups whose assignment is not known, because they are rebalancing, and whether any other group has
    members that may consume. at: of `watched`.
    """
    topics = {group: {each.topic for each in stopped} for group, stopped in at.items()}
    # Each group is described before its offsets are read: a member that commits and then leaves between the two
    # readings shows in its commit. The other way round, neither would show it.
    found, failed = without_errors(reader.describe_with_offsets(at), *_NOT_READABLE)
    descriptions = {group: each.description for group, each in found.items()}
    # If a group keeps other topics, it may rebalance because of them. Whether a member has one of the watched topics
    # shows only after the rebalance.
    rebalancing = [group for group, each in descriptions.items() if each.state not in ("Stable", "Empty", "Dead")]
    answers = reader.committed(dict.fromkeys(rebalancing), wait=False) if rebalancing else {}
    every, not_read = without_errors(answers, *_NOT_READABLE)
    unclear = [group for group, offsets in every.items() if {each.topic for each in offsets} - topics[group]]
    committed: dict[str, CommittedOffsets] = {
        group: {partition: each.offsets.get(partition) for partition in at[group]} for group, each in found.items()
    }
    pending = {group: at[group] for group, each in found.items() if None in each.offsets.values()}
    settled, not_settled = without_errors(reader.committed(pending) if pending else {}, *_NOT_READABLE)
    committed |= settled
    failed |= not_read | not_settled
    is_live = False
    for group, stopped in at.items():
        if group in failed:
            error = failed[group]
            execution = execution.with_not_watched(f"group {group!r} could not be watched after the write: {error}")
            continue
        description = descriptions[group]
        consumes = running(description, topics[group]) if group not in unclear else []
        is_live = is_live or bool(consumes)
        reasons = [*consumes, *_commits_since(stopped, committed[group])]
        execution = execution.with_moved(f"group {group!r} {reason}" for reason in reasons)
    return execution, [group for group in unclear if group not in failed], is_live


def with_first_commits(
    reader: GroupReader, execution: Execution, source: str, before: CommittedOffsets, stay: Sequence[TopicPattern]
) -> Execution:
    """After the guard, return the record of a hand-over with a message if the source has committed on more partitions.

    No target group has an offset there. A consumer that uses ``assign()`` commits so, or a transaction that was open at
    the cut-over (docs/kafka-behaviour.md#pending-transactions). Does nothing if the write was not successful, or if the
    option ``guard`` is 0.

    before: the source group's offsets before the write. stay: patterns of topics that it keeps.
    """
    if not (execution.is_whole and execution.options.guard) or execution.options.copy:
        return execution
    try:
        now = raise_first(reader.committed({source: None}, wait=False))[source]
    except _NOT_READABLE as error:
        return execution.with_not_watched(f"group {source!r} could not be watched after the write: {error}")
    stopped = watched(execution).get(source, {})
    # Not said a second time, at another offset.
    reasons = [] if execution.moved else _commits_since(stopped, {each: now.get(each) for each in stopped})
    new = [each for each, found in now.items() if found and not before.get(each) and each not in stopped]
    kept = {topic for pattern in stay for topic in pattern.matching({each.topic for each in new})}
    if new := [each for each in new if each.topic not in kept]:
        what = f"has committed since its offsets were read on {some(sorted(new))}, not handed over"
        reasons.append(f"{what}: the same command takes all after a rollback")
    return execution.with_moved(f"group {source!r} {reason}" for reason in reasons)


def _commits_since(stopped: Stopped, committed: CommittedOffsets) -> list[str]:
    """Return the sign that a group has committed since it stopped, as the end of a sentence; empty without a commit."""
    moved = [
        f"{partition} {_from_to(offset, now.offset)}"
        for partition, offset in stopped.items()
        if (now := committed[partition]) and now.offset != offset
    ]
    if not moved:
        return []
    return [f"has committed on {counted(len(moved), 'partition')} since its offsets were read: {some(moved)}"]


def _from_to(before: int | None, now: int) -> str:
    if before is None:
        return f"no offset → {now}"
    return f"{before} → {now} ({counted(abs(now - before), 'record')}{'' if now > before else ' back'})"


def with_first_signs(reader: GroupReader, execution: Execution, clock: Clock) -> Execution:
    """Return the record of a hand-over with the target groups that have begun to consume since the previous reading.

    The groups that have begun are not read again. A group that can't be read has no sign, and raises no error, because
    the offsets are in place and the guard is about the source groups.
    """
    groups = by_group(execution.changes)
    outage = execution.outage
    if not outage.first_signs:
        none_yet = tuple(FirstSign(group=group, at=None, sign=None) for group in sorted(groups))
        outage = structs.replace(outage, first_signs=none_yet)
    without_sign = [each.group for each in outage.first_signs if each.at is None and each.group in groups]
    if without_sign:
        signs = _signs(reader, {group: groups[group] for group in without_sign})
        outage = outage.with_signs(signs, clock.now())
    return replace(execution, outage=outage)


def _signs(reader: GroupReader, groups: dict[str, list[Change]]) -> dict[str, Sign]:
    """Return the sign of each group that consumes: a member with one of the partitions, or else a commit."""
    signs: dict[str, Sign] = {}
    for group, described in reader.describe_groups(groups).items():
        written = {change.topic_partition for change in groups[group]}
        if not isinstance(described, MigrateGroupsError) and any(
            member.assignment & written for member in described.members
        ):
            signs[group] = "member"
    # A consumer that uses assign() is never a member.
    others = {
        group: [change.topic_partition for change in changes] for group, changes in groups.items() if group not in signs
    }
    for group, found in (reader.committed(others, wait=False) if others else {}).items():
        if isinstance(found, ShareGroupStarted):  # the members of a share group can't be read
            signs[group] = "member"
        elif not isinstance(found, MigrateGroupsError) and any(
            (now := found.get(change.topic_partition)) is not None and now != change.after for change in groups[group]
        ):
            signs[group] = "commit"
    return signs


def _compare_with_written(reader: GroupReader, execution: Execution) -> Execution:
    """Read the offsets of target groups without members again, and return the record of the write with the differences.

    An offset that is missing or lower than written gets the outcome ``refused``. Any other difference is added to
    ``remarks``.
    """
    groups = by_group(execution.changes)
    found = reader.committed(partitions_by_group(execution.changes))
    for group, put in groups.items():
        now = found[group]
        if isinstance(now, ShareGroupStarted):
            continue
        try:
            if isinstance(now, MigrateGroupsError):
                raise now
            is_as_written = all(now[change.topic_partition] == change.after for change in put)
            if is_as_written or describe_group(reader, group).members:
                continue
        except _NOT_READABLE as error:
            execution = execution.remarked(
                f"group {group!r} could not be read again after the watch: {error}; check it with snapshot"
            )
            continue
        # Another client has lowered or deleted these offsets. Any other difference may come from an application that
        # has started and stopped again.
        behind = [change for change in put if change.is_lowered(now[change.topic_partition])]
        execution = execution.updated(
            change.refused("lowered or deleted by another client after it was confirmed", sent=True)
            for change in behind
        )
        elsewhere = [
            str(change.topic_partition)
            for change in put
            if change not in behind and now[change.topic_partition] != change.after
        ]
        if elsewhere:
            execution = execution.remarked(
                f"group {group!r} has no members, and the committed offset of {counted(len(elsewhere), 'partition')} "
                f"is not the one written: {some(elsewhere)}; either its application has started and stopped again, or "
                "another run has written: check that only this run writes to the group"
            )
    return execution
