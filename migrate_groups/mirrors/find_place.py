"""Translate a committed offset to a mirror's copy of the partition, by comparing hashes of records.

From an exactly translated offset, a group skips no record and reads none again. The mirror must keep the order of
records, and must not drop or alter records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from migrate_groups.mirrors.place import CopyPart, Counts, LogPart, Method, Place, Status
from migrate_groups.mirrors.walk import OLDER, TooLong, Walk, walk
from migrate_groups.text import counted

# A place is exact if, when the copy is read, each delivered record from the committed offset on has a copy at or after
# the place, and no earlier record has a copy there. The order of identical records tells which copy is of which record.

_BEGUN_AGAIN = "the mirror has begun again, and not delivered again all that it had delivered"


def find_place(source: LogPart, committed: int, copy: CopyPart, there: int | None, *, compacted: bool = False) -> Place:
    """Return a committed offset translated to a mirror's copy of the partition, and how exact the translation is.

    - source: the records up to the log end, read after the end of the copy was known. They begin before ``committed``,
      if the log does.
    - committed: the group's committed offset on the source cluster.
    - copy: the records up to the last stable offset. They include all possible copies of records in ``source``, and all
      records from ``there`` on.
    - there: the group's committed offset on the target cluster; None if it has none.
    - compacted: whether the topic is compacted on at least one cluster.
    """
    source = _as_mirrored(source, copy)
    cut = bisect_left(source.offsets, committed)
    found = _bounded(source, cut, copy, there) if compacted else _walked(source, cut, copy, there)
    return replace(
        found,
        method=Method.NEIGHBOURS if compacted else Method.WALK,
        before=source.prints[cut - 1] if cut else None,
        after=source.prints[cut] if cut < len(source.prints) else None,
    )


def _walked(source: LogPart, cut: int, copy: CopyPart, there: int | None) -> Place:
    try:
        found = walk(source.prints, cut, copy.prints, older=not source.from_start)
    except TooLong:
        return Place(status=Status.UNDETERMINED, reason="too many identical records to tell them apart")
    if found is None:
        return Place(status=Status.DIFFERENT, reason=_other(source, copy))
    return _judged(source, cut, copy, found, there)


def _as_mirrored(source: LogPart, copy: CopyPart) -> LogPart:
    """Return ``source`` without records of aborted transactions; unchanged if the copy has any of these records."""
    if not source.aborted:
        return source
    live = {each for index, each in enumerate(source.prints) if index not in source.aborted}
    delivered = {source.prints[index] for index in source.aborted} - live
    if delivered & set(copy.prints):
        return source
    kept = [index for index in range(len(source.prints)) if index not in source.aborted]
    return LogPart(
        offsets=[source.offsets[index] for index in kept],
        timestamps=[source.timestamps[index] for index in kept],
        prints=[source.prints[index] for index in kept],
        from_start=source.from_start,
    )


def _judged(source: LogPart, cut: int, copy: CopyPart, found: Walk, there: int | None) -> Place:
    index, indices = found.lowest, found.indices
    counts = _counts(source, cut, copy, indices, there, index)
    at_end = index == len(indices)
    if index == 0 and copy.is_cut_off and not _begins_with(source, cut, indices):
        return Place(status=Status.GONE, reason="the target's log starts later, or may do so", counts=counts)
    if found.lowest != found.highest:
        if found.highest == len(indices) or _only_before(indices, index, cut):
            reason = "the mirror has not delivered a record from after the committed offset that tells the place"
            return Place(status=Status.NOT_MIRRORED, reason=reason, counts=counts)
        reread = found.highest - found.lowest
        offset = _offset(copy, index)
        reason = f"{counted(reread + 1, 'place')} among identical records"
        return Place(status=Status.AMBIGUOUS, offset=offset, reread=reread, reason=reason, counts=counts)
    if index == 0 and indices and indices[0] > cut:
        lost = source.offsets[indices[0]] - source.offsets[cut]
        return Place(
            status=Status.GONE, reason=f"the target's log starts {counted(lost, 'offset')} later", counts=counts
        )
    if index:
        # If no record follows the place, only the last record shows that the mirror has reached the committed offset.
        is_certain = not at_end or (indices[-1] != OLDER and len(found.ends) == 1)
        is_delivered = indices[index - 1] == cut - 1 and is_certain
    else:
        is_delivered = bool(indices) or (cut == 0 and source.from_start)
    if not is_delivered:
        if _is_foreign(source, copy, indices):
            return Place(status=Status.DIFFERENT, reason="no record on the target is on the source", counts=counts)
        reason = "the mirror has not delivered the last record before the committed offset"
        return Place(status=Status.NOT_MIRRORED, reason=reason, counts=counts)
    if _only_before(indices, index, cut):
        return Place(status=Status.NOT_MIRRORED, reason=_BEGUN_AGAIN, counts=counts)
    return Place(status=Status.EXACT, offset=_offset(copy, index), counts=counts)


def _is_foreign(source: LogPart, copy: CopyPart, indices: Sequence[int]) -> bool:
    """Return whether a mirror's copy has no record of ``source``, although the copy is new enough to have some.

    indices: for each record of the copy, the index of its source record; `OLDER` if ``source`` has no such record.
    """
    if not (source.timestamps and copy.timestamps) or any(index != OLDER for index in indices):
        return False
    return max(copy.timestamps) >= min(source.timestamps)


def _begins_with(source: LogPart, cut: int, indices: Sequence[int]) -> bool:
    """Return whether a mirror's copy certainly begins with the first source record at or after the committed offset.

    cut: the index of this record in ``source``. indices: for each record of the copy, the index of its source record.
    """
    # If a later record is identical, the copy may begin with a copy of that one.
    return bool(indices) and indices[0] == cut and source.prints[cut] not in source.prints[cut + 1 :]


def _offset(copy: CopyPart, index: int) -> int:
    if index:
        return copy.offsets[index - 1] + 1
    return copy.offsets[0] if copy.offsets else copy.start


def _counts(source: LogPart, cut: int, copy: CopyPart, indices: Sequence[int], there: int | None, place: int) -> Counts:
    known = [index for index in indices if index != OLDER]
    counts = Counts(
        copies=len(known) - len(set(known)),
        aborted=sum(index in source.aborted for index in indices[place:]) if source.aborted else 0,
    )
    if there is None:
        return counts
    start = bisect_left(copy.offsets, there)
    return counts._replace(again=max(0, place - start), skipped=len(_only_before(indices, start, cut)))


def _only_before(indices: Sequence[int], start: int, cut: int) -> set[int]:
    """Return the indices, from ``cut`` on, of source records that a mirror copied before ``start`` and not again later.

    start: an index in the copy. indices: for each record of the copy, the index of its source record.
    """
    return {index for index in indices[:start] if index >= cut} - set(indices[start:])


def _other(source: LogPart, copy: CopyPart) -> str:
    known = set(source.prints)
    unknown = sum(each not in known for each in copy.prints)
    if source.from_start and unknown:
        return f"{counted(unknown, 'record')} of {len(copy.prints):,} on the target are not on the source"
    return "the target's records do not follow each other as on the source"


def _bounded(source: LogPart, cut: int, copy: CopyPart, there: int | None) -> Place:
    """Return a committed offset translated to the copy of a compacted topic, and how exact the translation is.

    cut: the index in ``source`` of the first record at or after the committed offset. there: the group's committed
    offset on the target cluster, only used to count records; None if it has none.
    """
    index_of = {each: index for index, each in enumerate(source.prints)}
    if len(index_of) < len(source.prints):
        return Place(status=Status.UNDETERMINED, reason="identical records in a compacted topic")
    indices = [index_of.get(each, OLDER) for each in copy.prints]
    # The place lies between two records that both logs have: the last one before the committed offset, and the first
    # one at or after it.
    before = max((number for number, index in enumerate(indices) if OLDER < index < cut), default=-1)
    after = next((number for number in range(before + 1, len(indices)) if indices[number] >= cut), len(indices))
    if after == len(indices) and (before < 0 or indices[before] < cut - 1):
        reason = "the mirror has not delivered a record that both logs have, from after the committed offset"
        return Place(status=Status.NOT_MIRRORED, reason=reason)
    if _only_before(indices, before + 1, cut):
        return Place(status=Status.NOT_MIRRORED, reason=_BEGUN_AGAIN)
    if before < 0 and copy.is_cut_off and indices[after] != cut:
        return Place(status=Status.GONE, reason="the target's log starts later, or may do so")
    behind = indices[before + 1 :]
    known = [index for index in behind if index != OLDER]
    # A mirror that begins again delivers records from before the committed offset once more. If the source has
    # compacted them away, they can't be matched. But the mirror has not begun again if the matched records behind the
    # place are in order, each once, and the last record is one of them.
    is_once = known == sorted({*known}) and behind[-1:] != [OLDER]
    unknown = after - before - 1 if is_once else behind.count(OLDER)
    offset = _offset(copy, before + 1)
    if unknown:
        reason = f"compaction has removed the source's {counted(unknown, 'record')} beside the place"
        return Place(status=Status.BOUNDED, offset=offset, reread=unknown, reason=reason)
    return Place(status=Status.EXACT, offset=offset, counts=_counts(source, cut, copy, indices, there, before + 1))
