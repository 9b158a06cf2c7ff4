"""Decide the offset at which a replay begins in each partition, from the requested time or offset and the log."""

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
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.times import rfc_3339, span_in_words
from migrate_groups.text import counted, some


class Note(StrEnum):
    """Why the replay of a partition does not start exactly at the requested time or offset.

    - empty: the log has no records. The replay starts at the log end offset.
    - past end: no record is at or after the time. The replay starts at the log end offset.
    - skipped: no record is at or after the time. With ``--past-end skip`` the partition then gets no offset.
    - gone: the log starts after the time, because older records were deleted. The replay starts at the log start
      offset.
    - clamped: the requested offset is outside the log. The replay starts at the log start or log end offset.
    - no commit: the request needs a committed offset, and there is none. The partition gets no offset.
    """

    EMPTY = "empty"
    PAST_END = "past end"
    SKIPPED = "skipped"
    GONE = "gone"
    CLAMPED = "clamped"
    NO_COMMIT = "no commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindDecision:
    """The offset at which the replay of one partition begins.

    bounds: the log start and log end offsets. offset: None if auto.offset.reset of the replay group decides. note,
    detail: why the replay does not start exactly as requested, as a value and as a text; None and empty if it does.
    """

    row: Row
    bounds: LogRange
    offset: int | None
    note: Note | None = None
    detail: str = ""

    @property
    def to_replay(self) -> int:
        """The number of offsets from the start of the replay to the log end offset; 0 without a start offset."""
        return 0 if self.offset is None else self.bounds.end - self.offset


def decide(
    row: Row, bounds: LogRange, target: RewindTo, found: OffsetAndTimestamp | None = None, past_end: PastEnd = "end"
) -> RewindDecision:
    """Return the offset at which the replay of a partition begins.

    found: the first record at or after the time of a `ToTime`; None if there is none. past_end: the result if a
    partition has records, but none at or after the time: the log end offset (``end``), or no offset (``skip``).
    ``fail`` gives the same as ``end``, because `decide_all` raises the error.
    """
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
        return RewindDecision(row=row, bounds=bounds, offset=None, note=Note.NO_COMMIT, detail="no committed offset")
    return _clamped(row, bounds, wanted)


def rewound(decision: RewindDecision, target: RewindTo) -> Row:
    """Return the snapshot row with the decided offset, without a group and without a source group.

    Leader epoch and metadata are kept only if ``target`` is `ToCurrent` and the decided offset is the committed offset.
    """
    # Without a group, so that the group that the snapshot was taken from is neither checked nor written to.
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
    past_end: PastEnd,
    strict: bool,
) -> list[RewindDecision]:
    """Return the offset at which the replay begins, for the partition of each row.

    found: for a `ToTime`, each partition's first record at or after the time; None if there is none. past_end: the
    result if a partition has records, but none at or after the time: the log end offset (``end``), no offset
    (``skip``), or the error `Refused` (``fail``).

    With ``strict``, raises `Refused` if a requested offset is outside the log, if the log starts after the requested
    time, or if a needed committed offset is missing.
    """
    decisions = [
        decide(row, bounds[row.topic_partition], target, found.get(row.topic_partition), past_end) for row in rows
    ]
    if past_end == "fail":
        _refuse(decisions, {Note.PAST_END}, "without a record at or after the time", "pass --past-end end or skip")
    if strict:
        inexact = {Note.CLAMPED, Note.GONE, Note.NO_COMMIT}
        _refuse(decisions, inexact, "can't start exactly as requested", "drop --strict to allow this")
    return decisions


def _at_time(
    row: Row, bounds: LogRange, moment: int, found: OffsetAndTimestamp | None, past_end: PastEnd
) -> RewindDecision:
    if bounds.start == bounds.end:
        detail = f"no records are left: the log starts at {bounds.start}" if bounds.start else "no records"
        return RewindDecision(row=row, bounds=bounds, offset=bounds.end, note=Note.EMPTY, detail=detail)
    if found is None:
        detail = "no record at or after the time"
        # For "fail" the error is raised by `decide_all`.
        if past_end == "skip":
            return RewindDecision(row=row, bounds=bounds, offset=None, note=Note.SKIPPED, detail=detail)
        return RewindDecision(row=row, bounds=bounds, offset=bounds.end, note=Note.PAST_END, detail=detail)
    # The log end offset was read before the lookup by time, which may have found a later record. The lower offset is
    # used, so that no record produced in between is skipped.
    offset = min(found.offset, bounds.end)
    if offset <= bounds.start and bounds.start > 0 and found.timestamp > moment:
        missing = span_in_words(timedelta(milliseconds=found.timestamp - moment))
        detail = (
            f"up to {missing} of records deleted: the log starts at {bounds.start}, "
            f"with a record of {rfc_3339(found.timestamp)}"
        )
        return RewindDecision(row=row, bounds=bounds, offset=offset, note=Note.GONE, detail=detail)
    return RewindDecision(row=row, bounds=bounds, offset=offset)


def _clamped(row: Row, bounds: LogRange, wanted: int) -> RewindDecision:
    offset = max(bounds.start, min(wanted, bounds.end))
    if offset == wanted:
        return RewindDecision(row=row, bounds=bounds, offset=offset)
    end = f"starts at {bounds.start}" if wanted < bounds.start else f"ends at {bounds.end}"
    return RewindDecision(
        row=row, bounds=bounds, offset=offset, note=Note.CLAMPED, detail=f"{wanted} requested, but the log {end}"
    )


def _refuse(decisions: Sequence[RewindDecision], notes: set[Note], complaint: str, advice: str) -> None:
    found = [
        f"{decision.row.topic_partition} ({decision.note}: {decision.detail})"
        for decision in decisions
        if decision.note in notes
    ]
    if found:
        raise Refused(f"{counted(len(found), 'partition')} {complaint}: {some(found, most=3)}; {advice}")
