"""The records of a source partition and of a mirror's copy that are compared to translate an offset."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from migrate_groups.model.records import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart(Records):
    """The records of a source partition from a first offset to the log end.

    - end: the log end offset.
    - from_start: whether the first offset is 0, so that no earlier record ever existed.
    - compacted: whether compaction may have removed some of these records: offsets are missing, and the topic's
      cleanup.policy contains compact, or could not be read.
    - aborted: the indices of records that belong to aborted transactions, or possibly to open ones.
    - is_anchored: False if an earlier record, which was not read, may be identical with one of these records. This
      assumes that timestamps ascend.
    """

    end: int
    from_start: bool
    compacted: bool
    aborted: Collection[int] = ()
    is_anchored: bool = True

    def without(self, indices: Collection[int]) -> LogPart:
        """Return these records without some of them. indices: their indices."""
        left_out = frozenset(indices)
        kept = [index for index in range(len(self.prints)) if index not in left_out]
        return LogPart(
            offsets=[self.offsets[index] for index in kept],
            timestamps=[self.timestamps[index] for index in kept],
            prints=[self.prints[index] for index in kept],
            keys=[self.keys[index] for index in kept],
            tombstones=[self.tombstones[index] for index in kept],
            end=self.end,
            from_start=self.from_start,
            compacted=self.compacted,
            aborted=frozenset(now for now, index in enumerate(kept) if index in self.aborted),
            is_anchored=self.is_anchored,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPart(Records):
    """The records of a mirror's copy of a partition, from the offset ``start`` to its last stable offset.

    - is_cut_off: whether ``start`` is the log start offset, and records before it were deleted.
    - compacted: as for `LogPart`.
    """

    start: int
    is_cut_off: bool
    compacted: bool
