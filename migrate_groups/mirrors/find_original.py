"""Translate a committed offset in a mirror's copy back to the partition that was copied, by comparing records.

The copy has each record of the original in order. After a restart the mirror may have copied some of them again, and
other producers may have written to the copy. The group must continue after the last record that it has read.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from migrate_groups.mirrors.find_position import find_position
from migrate_groups.mirrors.log_parts import CopyPart, LogPart
from migrate_groups.mirrors.position import Counts, Method, Position, Status, different, undetermined
from migrate_groups.mirrors.walk import TooLong, walk
from migrate_groups.text import counted


class Original(NamedTuple):
    """A committed offset in a mirror's copy, translated back to the original partition.

    - is_certain: whether more records of the copy can't change the position.
    - following: the timestamp of the original's first record that the group has not read; None if there is none, or if
      no offset is known. If the copy has an earlier record with this timestamp, it must be read from there on.
    """

    position: Position
    is_certain: bool = False
    following: int | None = None


def find_original(copy: LogPart, committed: int, original: CopyPart, there: int | None) -> Original:
    """Return a committed offset in a mirror's copy translated back to the original, and how exact the translation is.

    - copy: the mirror's copy, up to its log end offset. The records begin before ``committed``, if the log does.
    - committed: the group's committed offset in the copy.
    - original: the records of the original partition up to its last stable offset. They include all records in
      ``copy`` that the mirror has copied.
    - there: the group's committed offset in the original; None if it has none.
    """
    known = {*original.prints}
    copy = copy.without(copy.aborted)
    others = [index for index, each in enumerate(copy.prints) if each not in known]
    if unread := sum(copy.offsets[index] >= committed for index in others):
        reason = (
            f"{counted(unread, 'record')} from the committed offset on not on the target: if producers write to this "
            "copy, stop them, and let the group read the copy to its end"
        )
        return Original(different(reason, len(copy.prints) - len(others)))
    if copy.compacted or original.compacted:
        return _with_following(_compacted(copy, committed, original, there), original, is_certain=True)
    copy = copy.without(others)
    cut = bisect_left(copy.offsets, committed)
    if not cut and not (copy.from_start and copy.prints):
        return Original(undetermined("no record before the committed offset is left to compare"))
    try:
        everything, until = (
            walk(original.prints, 0, prints, older=False) for prints in (copy.prints, copy.prints[:cut])
        )
    except TooLong:
        return Original(undetermined("too many identical records to tell them apart"))
    if everything is None or until is None:
        return Original(different("the records do not follow each other as on the target", len(copy.prints)))
    if cut and until.restarts == 0 and len(until.ends) == 1:
        start = until.indices[-1] + 1
    else:
        # Identical records can't be told apart here, so it must be another one that is the last, or the first.
        indexed = [*enumerate(original.prints)]
        last, first = ({each: index for index, each in pairs} for pairs in (indexed, reversed(indexed)))
        start = max(last[each] for each in copy.prints[:cut]) + 1 if cut else min(first[each] for each in copy.prints)
        if original.prints.count(original.prints[start - 1 if cut else start]) > 1:
            return Original(undetermined("too many identical records to tell them apart"))
    found = Position(
        status=Status.EXACT,
        offset=_offset(original, start),
        method=Method.WALK,
        compared=len(copy.prints),
        counts=_counts(original, there, start),
        before=copy.prints[cut - 1] if cut else None,
        after=copy.prints[cut] if cut < len(copy.prints) else None,
    )
    # After the committed offset the mirror may have begun again with records that were read before those in `copy`.
    missed = {index for index in everything.indices[cut:] if index < start} - {*until.indices}
    if missed and copy.from_start:
        reason = f"the copy begins with later records than {counted(len(missed), 'record')} that the group has not read"
        return Original(different(reason, len(copy.prints)))
    return _with_following(found, original, is_certain=not missed)


def _with_following(position: Position, original: CopyPart, *, is_certain: bool) -> Original:
    if position.status is not Status.EXACT or position.offset is None:
        return Original(position)
    index = bisect_left(original.offsets, position.offset)
    return Original(position, is_certain, original.timestamps[index] if index < len(original.offsets) else None)


def _compacted(copy: LogPart, committed: int, original: CopyPart, there: int | None) -> Position:
    found = find_position(copy, committed, original, there)
    if found is None or found.status is Status.NOT_MIRRORED:
        return undetermined("compaction has removed the records beside the committed offset")
    return found


def _offset(original: CopyPart, index: int) -> int:
    return original.offsets[index - 1] + 1 if index else original.offsets[0]


def _counts(original: CopyPart, there: int | None, start: int) -> Counts:
    if there is None:
        return Counts()
    at = bisect_left(original.offsets, there)
    return Counts(again=max(0, start - at), skipped=max(0, at - start))
