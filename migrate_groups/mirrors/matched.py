"""Records of a mirror's copy, each matched with its source record, and what follows for an offset in the copy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, takewhile

from migrate_groups.mirrors.log_parts import CopyPart, LogPart
from migrate_groups.mirrors.position import Counts, Position, different
from migrate_groups.mirrors.walk import OLDER

BEGUN_AGAIN = "the mirror has begun again, and not delivered again all that it had delivered"
NO_RECORD = "no record on the target is on the source"


@dataclass(frozen=True)
class Matched:
    """Records of a mirror's copy, each matched with its source record.

    - cut: the index in ``source`` of the first record at or after the committed offset.
    - indices: for each record of the copy, the index of its source record; `OLDER` if ``source`` has no such record.
    """

    source: LogPart
    cut: int
    copy: CopyPart
    indices: Sequence[int]

    @cached_property
    def compared(self) -> int:
        """The number of records of the copy that have a source record."""
        return sum(index != OLDER for index in self.indices)

    @cached_property
    def first(self) -> int:
        """The index of the copy's first record that has a source record; the length of the copy if there is none."""
        return next((number for number, index in enumerate(self.indices) if index != OLDER), len(self.indices))

    def offset(self, index: int) -> int:
        """Return the offset of the copy at which a group starts that reads the copy from the record ``index`` on."""
        if index:
            return self.copy.offsets[index - 1] + 1
        return self.copy.offsets[0] if self.copy.offsets else self.copy.start

    @cached_property
    def read_until(self) -> int | None:
        """The offset before which the copy has only records from before the committed offset; None if not known.

        It is after the last copy of such a record, because later records that match none may be altered. It is not
        known if no record was compared, unless the copy has never had one.
        """
        if not self.compared:
            return 0 if not self.copy.prints and not self.copy.start else None
        read, unread = {*self.source.prints[: self.cut]}, {*self.source.prints[self.cut :]}
        until_unread = takewhile(lambda each: each not in unread, self.copy.prints)
        last = max((number for number, each in enumerate(until_unread) if each in read), default=None)
        return None if last is None else self.offset(last + 1)

    def counts(self, there: int | None, start: int) -> Counts:
        """Return numbers of records of the copy.

        there: the group's committed offset on the target cluster; None if it has none. start: the index of the first
        record of the copy that the group must read.
        """
        known = [index for index in self.indices if index != OLDER]
        aborted = self.source.aborted
        counts = Counts(
            copies=len(known) - len(set(known)),
            aborted=sum(index in aborted for index in self.indices[start:]) if aborted else 0,
        )
        if there is None:
            return counts
        at = bisect_left(self.copy.offsets, there)
        return counts._replace(again=max(0, start - at), skipped=len(self.only_before(at)))

    def only_before(self, start: int) -> set[int]:
        """Return the indices of source records that the copy has before ``start``, and not again later.

        Only source records at or after the committed offset. start: an index in the copy.
        """
        return {index for index in self.indices[:start] if index >= self.cut} - set(self.indices[start:])

    @cached_property
    def _latest_older(self) -> float:
        """The latest timestamp that a record before the first source record can have.

        Timestamps are assumed to be out of order no further than those of the records that were read.
        """
        if self.source.from_start:
            return float("-inf")
        timestamps = self.source.timestamps
        late = max(highest - each for highest, each in zip(accumulate(timestamps, max), timestamps, strict=True))
        return timestamps[0] + late

    def can_be_older(self, index: int) -> bool:
        """Return whether a record of the copy may come from before the first source record that was read."""
        return self.copy.timestamps[index] <= self._latest_older

    def is_other_topic(self) -> bool:
        """Return whether the copy has no record of the source, although it is new enough to have some."""
        if self.compared or not (self.source.timestamps and self.copy.timestamps):
            return False
        return max(self.copy.timestamps) >= min(self.source.timestamps)

    def different(self, unknown: int) -> Position:
        """Return that the copy is not a copy of the source. unknown: how many of its records are not on the source."""
        reason = f"{unknown:,} of {len(self.copy.prints):,} records on the target are not on the source"
        return different(reason, self.compared)
