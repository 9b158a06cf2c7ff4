"""Translate a committed offset to a mirror's copy of a partition from which compaction may have removed records.

A record that only one of the logs has does not speak against the copy if compaction can have removed it from the other
log. Compaction leaves the record's offset empty. It keeps the last record of each key. Only tombstones expire
(``delete.retention.ms``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from migrate_groups.mirrors.log_parts import CopyPart, LogPart
from migrate_groups.mirrors.matched import BEGUN_AGAIN, NO_RECORD, Matched
from migrate_groups.mirrors.position import Position, Status, different, undetermined
from migrate_groups.mirrors.walk import OLDER
from migrate_groups.model.records import NULL_KEY
from migrate_groups.text import counted

_IDENTICAL = "identical records in a topic that is compacted, or whose cleanup.policy can't be read"


def by_neighbours(source: LogPart, cut: int, copy: CopyPart, there: int | None) -> Position:
    """Return a committed offset translated to the copy, and how exact the translation is.

    It lies between two records that both logs have: the last one before the committed offset, and the first one at or
    after it.

    cut: the index in ``source`` of the first record at or after the committed offset. there: the group's committed
    offset on the target cluster, only used to count records; None if it has none.
    """
    if len({*source.prints}) < len(source.prints):
        return undetermined(_IDENTICAL)
    twins = _twins(source, copy)
    index_of = {each: index for index, each in enumerate(source.prints)}
    matched = Matched(source, cut, copy, [index_of.get(each, OLDER) for each in copy.prints])
    if matched.is_other_topic():
        return different(NO_RECORD)
    if twins:
        pairs = zip(copy.prints, matched.indices, strict=True)
        matched = replace(matched, indices=[OLDER if each in twins else index for each, index in pairs])
    absent = _Absent(matched, twins)
    if foreign := absent.foreign():
        return matched.different(foreign)
    if lost := absent.lost():
        return different(f"{counted(lost, 'record')} left out that compaction can't have removed", matched.compared)
    found = _between(matched, absent, there)
    if twins and found.status is Status.NOT_MIRRORED:  # the copy may have all records
        return replace(found, status=Status.UNDETERMINED, offset=None, reason=_IDENTICAL)
    return found


def _twins(source: LogPart, copy: CopyPart) -> set[bytes]:
    """Return the fingerprints of records of which the source may have had several, and compaction has left one.

    The copy has such a record more than once among consecutive records of one timestamp. In the source, an offset is
    empty among the records of this timestamp up to it, or before them.
    """
    alone: set[bytes] = set()
    before: tuple[int, int, bool] = -1, -1, source.from_start
    for offset, timestamp, each in zip(source.offsets, source.timestamps, source.prints, strict=True):
        is_alone = offset == before[0] + 1 and (timestamp != before[1] or before[2])
        if is_alone or not source.compacted:
            alone.add(each)
        before = offset, timestamp, is_alone
    twins: set[bytes] = set()
    seen: set[bytes] = set()
    previous = None
    for timestamp, each in zip(copy.timestamps, copy.prints, strict=True):
        if timestamp != previous:
            seen, previous = set(), timestamp
        if each in seen:
            twins.add(each)
        seen.add(each)
    return twins.intersection(source.prints) - alone


def _between(matched: Matched, absent: _Absent, there: int | None) -> Position:
    cut, indices = matched.cut, matched.indices
    before = max((number for number, index in enumerate(indices) if OLDER < index < cut), default=-1)
    after = next((number for number in range(before + 1, len(indices)) if indices[number] >= cut), len(indices))
    position = Position(status=Status.EXACT, counts=matched.counts(there, before + 1), compared=matched.compared)
    if after == len(indices) and (before < 0 or indices[before] < cut - 1):
        reason = "the mirror has not delivered a record that both logs have, from after the committed offset"
        # If the mirror may have begun again, records before this one may be unread.
        known = [index for index in indices if index != OLDER]
        offset = matched.offset(before + 1) if before >= 0 and known == sorted({*known}) else None
        return replace(position, status=Status.NOT_MIRRORED, offset=offset, reason=reason)
    if matched.only_before(before + 1):
        return replace(position, status=Status.NOT_MIRRORED, reason=BEGUN_AGAIN)
    is_first = before < 0 and indices[after] != cut
    if is_first and (matched.copy.is_cut_off or not absent.is_start_compacted(after)):
        return replace(position, status=Status.GONE, reason="the target's log starts later, or may do so")
    if orphans := absent.orphans(before + 1):
        reason = (
            f"{counted(orphans, 'record')} from the translated offset on with a key that the source no longer has: a "
            "tombstone has expired there, or other producers write to the target"
        )
        return replace(position, status=Status.UNDETERMINED, reason=reason)
    following = indices[before + 1 :]
    known = [index for index in following if index != OLDER]
    # A mirror that begins again delivers records from before the committed offset once more. If the source has
    # compacted them away, they can't be matched. But the mirror has not begun again if the matched records from the
    # translated offset on are in order, each once, and the last record is one of them.
    is_once = known == sorted({*known}) and following[-1:] != [OLDER]
    unknown = after - before - 1 if is_once else following.count(OLDER)
    offset = matched.offset(before + 1)
    if unknown:
        reason = f"compaction has removed the source's {counted(unknown, 'record')} beside the translated offset"
        return replace(position, status=Status.BOUNDED, offset=offset, reread=unknown, reason=reason)
    return replace(position, offset=offset)


class _Stretch(NamedTuple):
    """Records of the copy without a match, between two records of the copy that have one.

    - numbers: the indices of these records in the copy.
    - i, j: the indices of the source records of the records around them; None at the copy's start and end.
    """

    numbers: range
    i: int | None
    j: int | None


class _Absent:
    """The records that only one of the logs has, and whether compaction can have removed them from the other one.

    Where the mirror has not begun again, each record of the source takes an offset of the copy, and each record of the
    copy comes from an offset of the source.

    twins: fingerprints of records that are not matched, although the source may have them.
    """

    def __init__(self, matched: Matched, twins: set[bytes]) -> None:
        self._of, self._twins = matched, twins
        self._source, self._copy = matched.source, matched.copy
        known = [(number, index) for number, index in enumerate(matched.indices) if index != OLDER]
        around: list[tuple[int, int | None]] = [(-1, None), *known, (len(matched.indices), None)]
        self._stretches = [_Stretch(range(p + 1, q), i, j) for (p, i), (q, j) in pairwise(around)]

    @property
    def _forward(self) -> Iterator[tuple[_Stretch, int, int]]:
        """The stretches in which the mirror has certainly not begun again, with the source records around each."""
        for each in self._stretches:
            # If the mirror had begun again, the copy would have the record `i` once more, after the first one.
            if each.i is not None and each.j is not None and each.i < each.j:
                yield each, each.i, each.j

    def foreign(self) -> int:
        """Return how many records of the copy the source can never have had."""
        source, found, forward = self._source, 0, set[range]()
        for each, i, j in self._forward:
            forward.add(each.numbers)
            empty = source.offsets[j] - source.offsets[i] - (j - i) if source.compacted else 0
            found += max(0, len(self._unknown(each)) - empty)
        others = set[bytes]().union(*(self._unknown(each) for each in self._stretches if each.numbers not in forward))
        empty = source.end - (0 if source.from_start else source.offsets[0]) - len(source.offsets)
        return found + max(0, len(others) - (empty if source.compacted else 0))

    def _unknown(self, stretch: _Stretch) -> set[bytes]:
        """Return the fingerprints of records that the source does not have, and that can't be older than the first."""
        # Older records before the first match are harmless, because the translated offset is after them.
        is_harmless = stretch.i is None and not self._source.from_start
        return {self._copy.prints[number] for number in self._strange(stretch) if not is_harmless}

    def _strange(self, stretch: _Stretch) -> Iterator[int]:
        return (
            number
            for number in stretch.numbers
            if self._copy.prints[number] not in self._twins and not self._of.can_be_older(number)
        )

    def lost(self) -> int:
        """Return how many records of the source the mirror has left out, although it has delivered later ones."""
        lost = 0
        for each, i, j in self._forward:
            absent = [k for k in range(i + 1, j) if self._source.prints[k] not in self._twins]
            if absent:
                offsets = self._copy.offsets[each.numbers.start - 1], self._copy.offsets[each.numbers.stop]
                empty = offsets[1] - offsets[0] - 1 - len(each.numbers) if self._copy.compacted else 0
                plain = (k for k in absent if not self._source.tombstones[k])
                kept = sum(not self._is_superseded(k, each.numbers.stop) for k in plain)
                lost += max(len(absent) - empty, kept)
        return lost

    def is_start_compacted(self, after: int) -> bool:
        """Return whether compaction can have removed all copies from the committed offset to the first match.

        after: the index of this match in the copy.
        """
        absent = range(self._of.cut, self._of.indices[after])
        return self._copy.compacted and all(self._is_superseded(k, after) for k in absent)

    def _is_superseded(self, k: int, number: int) -> bool:
        """Return whether the mirror has delivered a later record with the key of a source record.

        k: the index of the source record. number: the index in the copy from which on the later record may be.
        """
        key = self._source.keys[k]
        return key == NULL_KEY or self._last_in_copy.get(key, -1) >= number or self._last_delivered.get(key, -1) > k

    @cached_property
    def _last_in_copy(self) -> dict[bytes, int]:
        return {key: number for number, key in enumerate(self._copy.keys)}

    @cached_property
    def _last_delivered(self) -> dict[bytes, int]:
        last = max(self._of.indices, default=OLDER)
        return {key: index for index, key in enumerate(self._source.keys[: last + 1])}

    def orphans(self, start: int) -> int:
        """Return how many records of the copy have a key that neither log has again later.

        Only records from the index ``start`` on, which the source does not have. Compaction would have kept them,
        unless there was a tombstone, which has expired.
        """
        last = {key: index for index, key in enumerate(self._source.keys)}
        forward = {each.numbers: i for each, i, _ in self._forward}
        return sum(
            last.get(key, OLDER) <= forward.get(each.numbers, OLDER)
            for each in self._stretches
            for number in self._strange(each)
            if number >= start
            if (key := self._copy.keys[number]) != NULL_KEY
            if not self._copy.tombstones[number] and self._last_in_copy[key] == number
        )
