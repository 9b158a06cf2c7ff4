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
    """There is exactly one place, and all records that were read agree with it."""
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
    """The topic is compacted. The place lies between the nearest records that both logs have."""
    NONE = ""
    """No records were compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart(Records):
    """The records of a source partition from a first offset to the log end.

    - from_start: whether the first offset is 0, so that no earlier record ever existed.
    - aborted: the indices of records that belong to aborted transactions, or possibly to open ones.
    """

    from_start: bool
    aborted: Collection[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPart(Records):
    """The records of a mirror's copy of a partition, from the offset ``start`` to its last stable offset.

    is_cut_off: whether ``start`` is the log start offset, and records before it were deleted.
    """

    start: int
    is_cut_off: bool


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
    - before, after: the hashes of the source's last record before the committed offset, and of its first record at or
      after it; None if the record was not found.
    """

    status: Status
    offset: int | None = None
    reread: int = 0
    counts: Counts = _NO_COUNTS
    reason: str = ""
    method: Method = Method.NONE
    before: bytes | None = None
    after: bytes | None = None
