"""Watch, after a write, the groups that must no longer consume, because what they still read is processed twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

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
    """A partition that a group must no longer consume, and the group's committed offset when it stopped.

    offset: None if nothing was committed for the partition.
    """

    partition: TopicPartition
    offset: int | None


def watched(execution: Execution) -> dict[str, list[StoppedAt]]:
    """Return, by group, the partitions that the group must no longer consume after an execution.

    The groups are the source groups after a hand-over or delete-offsets, and the target groups of the hand-over after a
    rollback or a hand-back. After a hand-over between two clusters, the partitions are those of the source group's
    cluster.
    """
    found: dict[str, dict[TopicPartition, StoppedAt]] = defaultdict(dict)
    if execution.verb in (Verb.HAND_OVER, Verb.HAND_BACK):
        for source in chain.from_iterable(execution.sources().values()):
            found[source.group][source.partition] = StoppedAt(source.partition, source.stopped_at)
    else:
        for change in (entry.change for entry in execution.entries if entry.change.source_group is None):
            at = StoppedAt(change.topic_partition, change.after.offset if change.after else None)
            found[change.group][at.partition] = at
    return {group: [*stopped.values()] for group, stopped in found.items()}


def look_at_watched(reader: GroupReader, execution: Execution) -> Execution:
    """Check once whether a group still consumes partitions that it must no longer consume; return the execution.

    The groups are the source groups after a hand-over or delete-offsets, and the target groups after a rollback or a
    hand-back. A group still consumes if it has members on the partitions' topics, or has committed since its offsets
    were read. Messages about such groups are added to ``moved`` of the returned execution. Messages in its
    ``not_watched`` name the groups that could not be read this time.
    """
    return _check_once(reader, replace(execution, not_watched=()))[0]


def guard(
    reader: GroupReader, execution: Execution, seconds: float, clock: Clock, elsewhere: GroupReader | None = None
) -> Execution:
    """Watch the groups that must no longer consume, for ``seconds`` or until one of them consumes.

    The groups are the source groups after a hand-over or delete-offsets, and the target groups after a rollback or a
    hand-back. ``moved`` of the returned execution says which of them consumed since the write, and ``not_watched``
    which of them could not be read; that ends the watch, too.

    A group that has other topics too and rebalances when the time is over is watched for up to 5 more minutes, because
    its assignment shows only after the rebalance. If the rebalance has not ended by then, ``moved`` names the group.

    After the watch of a hand-over, the offsets of target groups without members are read again. One that is missing or
    lower than written gets the outcome ``refused``; any other difference is added to ``remarks``.

    elsewhere: reads the source groups of a hand-over, if they are on another cluster.
    """
    deadline = clock.monotonic() + seconds
    unclear: list[str] = []
    while (
        not (execution.moved or execution.not_watched)
        and (left := deadline + (_LONGEST_REBALANCE_SECONDS if unclear else 0) - clock.monotonic()) > 0
    ):
        clock.sleep(min(_POLL_SECONDS, left))
        execution, unclear = _check_once(elsewhere or reader, execution)
    execution = execution.with_moved(
        f"group {group!r} is still rebalancing, so it is not known which members have the topics: run describe"
        for group in unclear
    )
    return _compare_with_written(reader, execution) if execution.verb is Verb.HAND_OVER else execution


def _check_once(reader: GroupReader, execution: Execution) -> tuple[Execution, list[str]]:
    """Check once whether groups consume that must no longer do so; return the execution, and the groups still unclear.

    In the execution, messages name the groups that consume (``moved``) and those that could not be read
    (``not_watched``). A group that has committed offsets for other topics too is unclear while it rebalances, because
    its assignment is not known then.
    """
    unclear = []
    for group, stopped in watched(execution).items():
        try:
            reasons, is_clear = _signs_of_consuming(reader, group, stopped)
        except (ClusterUnavailable, Refused) as error:
            execution = execution.with_not_watched(f"group {group!r} could not be watched after the write: {error}")
        else:
            execution = execution.with_moved(f"group {group!r} {reason}" for reason in reasons)
            if not is_clear:
                unclear.append(group)
    return execution, unclear


def _signs_of_consuming(reader: GroupReader, group: str, stopped: list[StoppedAt]) -> tuple[list[str], bool]:
    """Return the signs that a group still consumes these partitions, and whether its assignment is known.

    The signs are its members on the topics, and its commits since its offsets were read. Each is the end of a sentence
    that begins with the group's name; there are none if the group does not consume.
    """
    description = reader.describe_group(group)
    topics = {each.partition.topic for each in stopped}
    reasons = running(description, topics) if description.exists else []
    rebalances = description.state not in ("Stable", "Empty", "Dead")
    # If the group keeps other topics, it may rebalance because of them. Whether a member has one of the watched topics
    # shows only after the rebalance.
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
        reasons.append(
            f"has committed on {counted(len(moved), 'partition')} since its offsets were read: {some(moved)}"
        )
    return reasons, is_clear


def _from_to(before: int | None, now: int) -> str:
    if before is None:
        return f"no offset → {now}"
    return f"{before} → {now} ({counted(abs(now - before), 'record')}{'' if now > before else ' back'})"


def _compare_with_written(reader: GroupReader, execution: Execution) -> Execution:
    """Compare the committed offsets of target groups that have no members with those written; return the execution.

    If an offset is lower than the one written, or missing, another client has changed it: in the returned execution,
    the outcome of the partition is ``refused``. Any other difference is a remark, because the target group's
    application may have started and stopped again. A group that can't be read is a remark too.
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
            execution = execution.remarked(
                f"group {group!r} could not be read again after the watch: {error}; check it with snapshot"
            )
            continue
        behind = [entry for entry in put if _is_behind(now[entry.change.topic_partition], entry.change.after)]
        execution = execution.updated(
            entry.refused("lowered or deleted by another client after it was confirmed", sent=True) for entry in behind
        )
        elsewhere = [
            str(entry.change.topic_partition)
            for entry in put
            if entry not in behind and now[entry.change.topic_partition] != entry.change.after
        ]
        if elsewhere:
            execution = execution.remarked(
                f"group {group!r} has no members, and the committed offset of {counted(len(elsewhere), 'partition')} "
                f"is not the one written: {some(elsewhere)}; either its application has started and stopped again, or "
                "another run has written: check that only this run writes to the group"
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
