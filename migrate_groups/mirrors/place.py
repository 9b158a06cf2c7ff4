"""The place of a committed offset: its translation to a mirror's copy of the partition."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from migrate_groups.model.records import Records


class Status(StrEnum):
    """How exactly a committed offset could be translated to its place, the matching offset in a mirror's copy."""

    EXACT = "exact"
    """There is exactly one place, and all records that were read agree with it. `Place.compared` says how many."""
    TRUSTED = "trusted"
    """The source has no record that could be compared. The place is the end of the copy, because the user trusts it."""
    AMBIGUOUS = "ambiguous"
    """There are several possible places, because records are identical."""
    BOUNDED = "bounded"
    """Compaction has removed the records that would show the place. It lies within a known number of records."""
    NOT_MIRRORED = "not mirrored yet"
    """The mirror has not yet delivered the records up to the committed offset, or is just delivering them again."""
    GONE = "gone"
    """The place is before the start of one of the logs, because records were deleted."""
    DIFFERENT = "different"
    """The copy has other records than the source: the mirror filters or alters them, or others write to the copy."""
    UNDETERMINED = "undetermined"
    """The place can't be determined. `Place.reason` says why."""


class Method(StrEnum):
    """How a committed offset was translated to its place, the matching offset in a mirror's copy."""

    WALK = "walk"
    """Each record of the copy was matched with a record of the source, by the order of the records (`walk`)."""
    NEIGHBOURS = "neighbours"
    """Compaction may have removed records. The place lies between the nearest records that both logs have."""
    START = "start"
    """Neither log has ever had a record, so both begin at offset 0. There was nothing to compare."""
    NONE = ""
    """No records were compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart(Records):
    """The records of a source partition from a first offset to the log end.

    - end: the log end offset.
    - from_start: whether the first offset is 0, so that no earlier record ever existed.
    - compacted: whether compaction may have removed some of these records: offsets are missing, and the topic's
      cleanup.policy contains compact, or could not be read.
    - aborted: the indices of records that belong to aborted transactions, or possibly to open ones.
    """

    end: int
    from_start: bool
    compacted: bool
    aborted: Collection[int] = ()

    def without_aborted(self) -> LogPart:
        """Return these records without those of aborted or open transactions."""
        kept = [index for index in range(len(self.prints)) if index not in self.aborted]
        return LogPart(
            offsets=[self.offsets[index] for index in kept],
            timestamps=[self.timestamps[index] for index in kept],
            prints=[self.prints[index] for index in kept],
            keys=[self.keys[index] for index in kept],
            tombstones=[self.tombstones[index] for index in kept],
            end=self.end,
            from_start=self.from_start,
            compacted=self.compacted,
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


class Counts(NamedTuple):
    """Numbers of records in a mirror's copy of a partition.

    - again, skipped: how many records the group would read again, or skip, if it started at its committed offset on the
      target cluster. None if that offset or the number is not known.
    - copies: how many records repeat a record that the mirror had delivered before.
    - aborted: how many records of aborted transactions the mirror has delivered from the translated offset on.
    """

    again: int | None = None
    skipped: int | None = None
    copies: int = 0
    aborted: int = 0


_NO_COUNTS = Counts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A committed offset translated to a mirror's copy of the partition, and how exact the translation is.

    - offset: the translated offset; the lowest if several are possible; None if none is known.
    - reread: the largest number of records that the group reads again if it starts at ``offset``.
    - reason: why the status is not `Status.EXACT`; otherwise empty.
    - compared: how many records of the copy were matched with a record of the source.
    - before, after: the hashes of the source's last record before the committed offset, and of its first record at or
      after it; None if the record was not found.
    """

    status: Status
    offset: int | None = None
    reread: int = 0
    counts: Counts = _NO_COUNTS
    reason: str = ""
    method: Method = Method.NONE
    compared: int = 0
    before: bytes | None = None
    after: bytes | None = None

    @property
    def is_told(self) -> bool:
        """Whether a group may start at ``offset``: it is exact and has evidence, or the user trusts it."""
        if self.status is Status.EXACT:
            return self.compared > 0 or self.method is Method.START
        return self.status is Status.TRUSTED
