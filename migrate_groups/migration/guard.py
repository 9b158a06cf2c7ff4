"""Watch, after a write, the groups that must no longer consume: records that they process are processed twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from migrate_groups.clock import Clock
from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.partitions import CommittedOffset, CommittedOffsets, TopicPartition
from migrate_groups.planning.checks.source import running
from migrate_groups.planning.execution import Entry, Execution
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import counted, some

_POLL_SECONDS = 1.0
# A rebalance waits this long for a member that does not poll: the default of max.poll.interval.ms.
_LONGEST_REBALANCE_SECONDS = 300.0


class StoppedAt(msgspec.Struct, frozen=True, gc=False):
    """A partition that a group must no longer consume, and the offset at which it stopped (None: no commit)."""

    partition: TopicPartition
    offset: int | None


def watched(execution: Execution) -> dict[str, list[StoppedAt]]:
    """Return, by group, the partitions that the group must no longer consume after an execution.

    After a hand-over and a hand-back these are the groups that handed over, after a rollback the target groups, after
    delete-offsets the source group.
    """
    found: dict[str, dict[TopicPartition, StoppedAt]] = defaultdict(dict)
    if execution.verb in (Verb.HAND_OVER, Verb.HAND_BACK):
        for change in execution.handed_over():
            at = StoppedAt(change.topic_partition, change.handed_over_at)
            found[change.source_group or ""][at.partition] = at
    else:
        for change in (entry.change for entry in execution.entries if entry.change.source_group is None):
            at = StoppedAt(change.topic_partition, change.after.offset if change.after else None)
            found[change.group][at.partition] = at
    return {group: [*stopped.values()] for group, stopped in found.items()}


def look_at_watched(reader: GroupReader, execution: Execution) -> Execution:
    """Return the execution with what the watched groups have done since their offsets were read."""
    return _look(reader, execution)[0]


def guard(reader: GroupReader, execution: Execution, seconds: float, clock: Clock) -> Execution:
    """Watch these groups for ``seconds``, or until one of them moves, and return the execution with what they did.

    A group that is rebalancing at the end is watched for up to 5 more minutes, because its assignment shows only after
    the rebalance. If it still does not show, the group counts as moved.
    """
    deadline = clock.monotonic() + seconds
    unclear: list[str] = []
    while (
        not execution.moved
        and (left := deadline + (_LONGEST_REBALANCE_SECONDS if unclear else 0) - clock.monotonic()) > 0
    ):
        clock.sleep(min(_POLL_SECONDS, left))
        execution, unclear = _look(reader, execution)
    execution = execution.with_moved(
        f"group {group!r} still rebalances: it is not known which members have the topics" for group in unclear
    )
    return _look_at_written(reader, execution) if execution.verb is Verb.HAND_OVER else execution


def _look(reader: GroupReader, execution: Execution) -> tuple[Execution, list[str]]:
    """Return the execution as `look_at_watched` does, and the groups whose assignment a rebalance hides."""
    unclear = []
    for group, stopped in watched(execution).items():
        try:
            reasons, is_clear = _what_it_did(reader, group, stopped)
        except (ClusterUnavailable, Refused) as error:
            execution = execution.with_moved([f"group {group!r} could not be watched after the write: {error}"])
        else:
            execution = execution.with_moved(f"group {group!r} {reason}" for reason in reasons)
            if not is_clear:
                unclear.append(group)
    return execution, unclear


def _what_it_did(reader: GroupReader, group: str, stopped: list[StoppedAt]) -> tuple[list[str], bool]:
    """Return what the group did, and whether its assignment of these topics can be seen."""
    description = reader.describe_group(group)
    topics = {each.partition.topic for each in stopped}
    reasons = running(description, topics) if description.exists else []
    rebalances = description.state not in ("Stable", "Empty", "Dead")
    # The group keeps other topics. Whether it rebalances because of them or of these topics shows only later.
    is_clear = not (rebalances and {partition.topic for partition in reader.all_committed(group)} - topics)
    if not is_clear:
        reasons = []
    found = reader.committed(group, [each.partition for each in stopped])
    moved = [
        f"{each.partition} {_from_to(each.offset, now.offset)}"
        for each in stopped
        if (now := found[each.partition]) and now.offset != each.offset
    ]
    if moved:
        reasons.append(f"committed {counted(len(moved), 'partition')} after its offsets were read: {some(moved)}")
    return reasons, is_clear


def _from_to(before: int | None, now: int) -> str:
    if before is None:
        return f"nothing → {now}"
    return f"{before} → {now} ({counted(abs(now - before), 'record')}{'' if now > before else ' back'})"


def _look_at_written(reader: GroupReader, execution: Execution) -> Execution:
    """Return the execution with the changed offsets of target groups that have no member.

    A lower offset, or none, is a failure: another client has written it. Any other difference is a remark: the new
    application may have started and stopped again.
    """
    groups = _by_group(execution.entries)
    found = reader.committed_by_group(
        {group: [entry.change.topic_partition for entry in put] for group, put in groups.items()}
    )
    for group, put in groups.items():
        now = found[group]
        try:
            if isinstance(now, MigrateGroupsError):
                raise now
            if _is_as_written(now, put) or reader.describe_group(group).members:
                continue
        except (ClusterUnavailable, Refused) as error:
            execution = execution.remarked(f"group {group!r} could not be looked at again: {error}")
            continue
        behind = [entry for entry in put if _is_behind(now[entry.change.topic_partition], entry.change.after)]
        execution = execution.updated(
            entry.refused("moved back by another client after it was confirmed", sent=True) for entry in behind
        )
        elsewhere = [
            str(entry.change.topic_partition)
            for entry in put
            if entry not in behind and now[entry.change.topic_partition] != entry.change.after
        ]
        if elsewhere:
            execution = execution.remarked(
                f"group {group!r} has no member, and another committed offset than was written in "
                f"{counted(len(elsewhere), 'partition')}: {some(elsewhere)}; a new application that has stopped "
                "again, or another run that wrote at the same moment"
            )
    return execution


def _by_group(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.change.group].append(entry)
    return dict(sorted(groups.items()))


def _is_as_written(now: CommittedOffsets, put: Iterable[Entry]) -> bool:
    return all(now[entry.change.topic_partition] == entry.change.after for entry in put)


def _is_behind(now: CommittedOffset | None, put: CommittedOffset | None) -> bool:
    return put is not None and (now is None or now.offset < put.offset)
