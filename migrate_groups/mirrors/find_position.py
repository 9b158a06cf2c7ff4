"""Translate a committed offset to a mirror's copy of the partition, by comparing hashes of records.

From an exactly translated offset, a group skips no record and reads none again. The mirror must keep the order of
records, and must not drop or alter records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace

from migrate_groups.mirrors.compacted import by_neighbours
from migrate_groups.mirrors.log_parts import CopyPart, LogPart
from migrate_groups.mirrors.matched import BEGUN_AGAIN, NO_RECORD, Matched
from migrate_groups.mirrors.position import Method, Position, Status, different, undetermined
from migrate_groups.mirrors.walk import OLDER, TooLong, Walk, walk
from migrate_groups.text import counted

# A position is exact if, when the copy is read, each delivered record from the committed offset on has a copy at or
# after it, and no earlier record has a copy there. The order of identical records tells which copy is of which record.


def find_position(source: LogPart, committed: int, copy: CopyPart, there: int | None) -> Position | None:
    """Return a committed offset translated to a mirror's copy of the partition, and how exact the translation is.

    The result is None if the source has no record that could be compared.

    - source: the records up to the log end, read after the end of the copy was known. They begin before ``committed``,
      if the log does.
    - committed: the group's committed offset on the source cluster.
    - copy: the records up to the last stable offset. They include all possible copies of records in ``source``, and all
      records from ``there`` on. If ``source`` has no record, they begin at the log start offset.
    - there: the group's committed offset on the target cluster; None if it has none.
    """
    source = _as_mirrored(source, copy)
    cut = bisect_left(source.offsets, committed)
    if not source.prints:
        return _without_records(source, copy)
    if source.compacted or copy.compacted:
        found, method = by_neighbours(source, cut, copy, there), Method.NEIGHBOURS
    else:
        found, method = _by_walk(source, cut, copy, there), Method.WALK
    return replace(
        found,
        method=method,
        before=source.prints[cut - 1] if cut else None,
        after=source.prints[cut] if cut < len(source.prints) else None,
    )


def same_offset(source: LogPart, committed: int, copy: CopyPart, found: Position, end: int) -> Position:
    """Return the position, with the committed offset itself if the mirror keeps offsets and nothing lies between both.

    Transaction markers and aborted records take offsets, which such a mirror copies too. A group that reads aborted
    records has read them up to its committed offset. found: an exact position; another one is returned unchanged.
    end: the last stable offset of the copy.
    """
    if found.status is not Status.EXACT or found.offset is None or not found.offset < committed <= end:
        return found
    kept, known = {*zip(source.prints, source.offsets, strict=True)}, {*source.prints}
    copied = [each for each in zip(copy.prints, copy.offsets, strict=True) if each[0] in known]
    keeps = kept.issuperset(copied) and bisect_left(copy.offsets, found.offset) == bisect_left(copy.offsets, committed)
    return replace(found, offset=committed) if keeps and copied else found


def _as_mirrored(source: LogPart, copy: CopyPart) -> LogPart:
    """Return ``source`` without records of aborted transactions; unchanged if the copy has any of these records."""
    if not source.aborted:
        return source
    live = {each for index, each in enumerate(source.prints) if index not in source.aborted}
    delivered = {source.prints[index] for index in source.aborted} - live
    return source if delivered & set(copy.prints) else source.without(source.aborted)


def _without_records(source: LogPart, copy: CopyPart) -> Position | None:
    if not source.from_start:
        return None
    if copy.prints:
        return Matched(source, 0, copy, [OLDER] * len(copy.prints)).different(len(copy.prints))
    if copy.start == 0:
        # Whatever a mirror delivers later comes from the committed offset or after it.
        return Position(status=Status.EXACT, offset=0, method=Method.START)
    return None


def _by_walk(source: LogPart, cut: int, copy: CopyPart, there: int | None) -> Position:
    known = set(source.prints)
    unread = Matched(source, cut, copy, [0 if each in known else OLDER for each in copy.prints])
    # Only a mirror that begins again delivers older records after newer ones.
    foreign = sum(
        unread.indices[number] == OLDER and not unread.can_be_older(number)
        for number in range(unread.first, len(copy.prints))
    )
    if foreign:
        return unread.different(foreign)
    try:
        found = walk(source.prints, cut, copy.prints, older=not source.from_start)
    except TooLong:
        return undetermined("too many identical records to tell them apart")
    if found is None:
        if source.from_start and (unknown := unread.indices.count(OLDER)):
            return unread.different(unknown)
        return different("the target's records do not follow each other as on the source")
    return _judged(Matched(source, cut, copy, found.indices), found, there)


def _judged(matched: Matched, found: Walk, there: int | None) -> Position:
    cut, copy, index, indices = matched.cut, matched.copy, found.lowest, matched.indices
    position = Position(status=Status.EXACT, counts=matched.counts(there, index), compared=matched.compared)
    if index == 0 and copy.is_cut_off and not _begins_with(matched):
        return replace(position, status=Status.GONE, reason="the target's log starts later, or may do so")
    if found.lowest != found.highest:
        if found.highest == len(indices) or matched.only_before(index):
            reason = (
                "the mirror has not delivered a record from after the committed offset that shows the translated offset"
            )
            return replace(position, status=Status.NOT_MIRRORED, offset=matched.read_until, reason=reason)
        reread = found.highest - found.lowest
        reason = f"{counted(reread + 1, 'possible offset')} among identical records"
        return replace(position, status=Status.AMBIGUOUS, offset=matched.offset(index), reread=reread, reason=reason)
    if index == 0 and indices and indices[0] > cut:
        lost = matched.source.offsets[indices[0]] - matched.source.offsets[cut]
        return replace(position, status=Status.GONE, reason=f"the target's log starts {counted(lost, 'offset')} later")
    if not _is_delivered(index, cut, indices, found.ends):
        if matched.is_other_topic():
            return replace(position, status=Status.DIFFERENT, reason=NO_RECORD)
        reason = "the mirror has not delivered the last record before the committed offset"
        if not indices:
            reason = "the mirror has delivered no record that could be compared"
        return replace(position, status=Status.NOT_MIRRORED, offset=matched.read_until, reason=reason)
    if matched.only_before(index):
        return replace(position, status=Status.NOT_MIRRORED, offset=matched.read_until, reason=BEGUN_AGAIN)
    return replace(position, offset=matched.offset(index))


def _is_delivered(index: int, cut: int, indices: Sequence[int], ends: Collection[int]) -> bool:
    """Return whether the mirror has certainly delivered the records before the committed offset.

    index: the index in the copy at which the group must continue. ends: the possible last values of ``indices``.
    """
    if not index:
        return bool(indices)
    # If no record follows this one, only the last record shows that the mirror has reached the committed offset.
    is_certain = index < len(indices) or (indices[-1] != OLDER and len(ends) == 1)
    return indices[index - 1] == cut - 1 and is_certain


def _begins_with(matched: Matched) -> bool:
    """Return whether a mirror's copy certainly begins with the first source record at or after the committed offset."""
    prints, cut, indices = matched.source.prints, matched.cut, matched.indices
    # If a later record is identical, the copy may begin with a copy of that one.
    return bool(indices) and indices[0] == cut and prints[cut] not in prints[cut + 1 :]
