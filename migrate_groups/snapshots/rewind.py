"""Where a replay begins: from what a person asks for, and what the log holds, to one offset a partition.

Pure: the log's ends and the record found for a time are handed in. The result claims no source group, so nothing is
asked of the group whose offsets it began with, and nothing is written to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import assert_never

from msgspec import structs

from migrate_groups.errors import Refused
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, TopicPartition
from migrate_groups.snapshots.rewind_to import (
    PastEnd,
    RewindTo,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from migrate_groups.snapshots.snapshot import Row
from migrate_groups.snapshots.times import rfc_3339, span_in_words
from migrate_groups.text import counted, some


class Note(StrEnum):
    """What a person must know of an offset besides its number."""

    EMPTY = "empty"
    PAST_END = "past end"
    SKIPPED = "skipped"
    GONE = "gone"
    CLAMPED = "clamped"
    NO_COMMIT = "no commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindDecision:
    """Where one partition is set to. ``offset`` None: it is left to the new group's auto.offset.reset."""

    row: Row
    bounds: LogRange
    offset: int | None
    note: Note | None = None
    detail: str = ""

    @property
    def to_replay(self) -> int:
        """How many offsets lie before the log end; records, where the log has no gaps or transaction markers."""
        return 0 if self.offset is None else self.bounds.end - self.offset


def decide(
    row: Row, bounds: LogRange, target: RewindTo, found: OffsetAndTimestamp | None = None, past_end: PastEnd = "end"
) -> RewindDecision:
    """Return where a partition is set to; ``found`` is the first record at or after the time of a `ToTime`."""
    match target:
        case ToTime(moment=moment):
            return _at_time(row, bounds, moment, found, past_end)
        case ToEarliest():
            wanted: int | None = bounds.start
        case ToLatest():
            wanted = bounds.end
        case ToCurrent():
            wanted = row.offset
        case ShiftBy(offsets=offsets):
            wanted = None if row.offset is None else row.offset + offsets
        case ToOffset(offset=offset):
            wanted = offset
        case _:
            assert_never(target)
    if wanted is None:
        return RewindDecision(row=row, bounds=bounds, offset=None, note=Note.NO_COMMIT, detail="nothing is committed")
    return _clamped(row, bounds, wanted)


def rewound(decision: RewindDecision, target: RewindTo) -> Row:
    """Return the row of a decision: it belongs to no group yet and claims none.

    The committed offset as it is keeps its leader epoch and metadata; they are not true of another one.
    """
    stays = isinstance(target, ToCurrent) and decision.offset == decision.row.offset
    return structs.replace(
        decision.row,
        group=None,
        source_group=None,
        group_state=None,
        group_type=None,
        offset=decision.offset,
        leader_epoch=decision.row.leader_epoch if stays else None,
        metadata=decision.row.metadata if stays else "",
        log_start_offset=decision.bounds.start,
        log_end_offset=decision.bounds.end,
    )


def decide_all(
    rows: Sequence[Row],
    bounds: Mapping[TopicPartition, LogRange],
    target: RewindTo,
    found: Mapping[TopicPartition, OffsetAndTimestamp | None],
    *,
    past_end: PastEnd = "end",
    strict: bool = False,
) -> list[RewindDecision]:
    """Return where every partition is set to.

    Raises `Refused`: with ``past_end`` "fail" where a partition has no record at or after the time; with ``strict``
    where an offset is not exactly what was asked for.
    """
    decisions = [
        decide(row, bounds[row.topic_partition], target, found.get(row.topic_partition), past_end) for row in rows
    ]
    if past_end == "fail":
        _refuse(decisions, {Note.PAST_END}, "no record at or after the time; --past-end end or skip")
    if strict:
        _refuse(decisions, {Note.CLAMPED, Note.GONE, Note.NO_COMMIT}, "not what was asked for, and --strict is given")
    return decisions


def _at_time(
    row: Row, bounds: LogRange, moment: int, found: OffsetAndTimestamp | None, past_end: PastEnd
) -> RewindDecision:
    if bounds.start == bounds.end:
        detail = f"no records are left: the log starts at {bounds.start}" if bounds.start else "no records"
        return RewindDecision(row=row, bounds=bounds, offset=bounds.end, note=Note.EMPTY, detail=detail)
    if found is None:
        detail = "no record at or after the time"
        if past_end == "skip":
            return RewindDecision(row=row, bounds=bounds, offset=None, note=Note.SKIPPED, detail=detail)
        return RewindDecision(row=row, bounds=bounds, offset=bounds.end, note=Note.PAST_END, detail=detail)
    # The ends were read first: a record that has come since must not be stepped over.
    offset = min(found.offset, bounds.end)
    if offset <= bounds.start and bounds.start > 0 and found.timestamp > moment:
        missing = span_in_words(timedelta(milliseconds=found.timestamp - moment))
        detail = (
            f"up to {missing} of it: the log starts at {bounds.start}, "
            f"and the first record there is of {rfc_3339(found.timestamp)}"
        )
        return RewindDecision(row=row, bounds=bounds, offset=offset, note=Note.GONE, detail=detail)
    return RewindDecision(row=row, bounds=bounds, offset=offset)


def _clamped(row: Row, bounds: LogRange, wanted: int) -> RewindDecision:
    offset = max(bounds.start, min(wanted, bounds.end))
    if offset == wanted:
        return RewindDecision(row=row, bounds=bounds, offset=offset)
    end = f"starts at {bounds.start}" if wanted < bounds.start else f"ends at {bounds.end}"
    return RewindDecision(
        row=row, bounds=bounds, offset=offset, note=Note.CLAMPED, detail=f"{wanted} asked for, and the log {end}"
    )


def _refuse(decisions: Sequence[RewindDecision], notes: set[Note], complaint: str) -> None:
    named = [
        f"{decision.row.topic_partition} ({decision.note}: {decision.detail})"
        for decision in decisions
        if decision.note in notes
    ]
    if named:
        raise Refused(f"{counted(len(named), 'partition')}: {some(named, most=3)}: {complaint}; nothing was written")
