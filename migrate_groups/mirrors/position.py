"""A position: an offset in a log, how exactly it is known, and the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """How exactly an offset could be translated to a mirror's copy of the partition."""

    EXACT = "exact"
    """One offset is possible, and all records that were read agree with it. `Position.compared` says how many."""
    TRUSTED = "trusted"
    """The source has no record that could be compared. The offset is the end of the copy: the user trusts the copy."""
    AMBIGUOUS = "ambiguous"
    """Several offsets are possible, because records are identical."""
    BOUNDED = "bounded"
    """Compaction has removed the records that would show the offset. It lies within a known number of records."""
    NOT_MIRRORED = "not mirrored yet"
    """The mirror has not yet delivered the records up to the committed offset, or is just delivering them again."""
    GONE = "gone"
    """The offset is before the start of one of the logs, because records were deleted."""
    DIFFERENT = "different"
    """The copy has other records than the source: the mirror filters or alters them, or others write to the copy."""
    UNDETERMINED = "undetermined"
    """The offset can't be determined. `Position.reason` says why."""


class Method(StrEnum):
    """How an offset was translated to a mirror's copy of the partition."""

    WALK = "walk"
    """Each record of the copy was matched with a record of the source, by the order of the records (`walk`)."""
    NEIGHBOURS = "neighbours"
    """Compaction may have removed records. The offset lies between the nearest records that both logs have."""
    START = "start"
    """Neither log has ever had a record, so both begin at offset 0. There was nothing to compare."""
    NONE = ""
    """No records were compared."""


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
class Position:
    """An offset in a log, with the evidence for it.

    - offset: the offset; the lowest if several are possible; None if none is known. If the mirror has not delivered all
      records up to the committed offset, the offset before which the copy has only records that the group has read.
    - reread: the number of records from ``offset`` to the highest possible offset: so many the group reads again at
      most, if it starts at ``offset``.
    - reason: why the status is not `Status.EXACT`; otherwise empty.
    - compared: how many records of the copy were matched with a record of the source.
    - as_of: the last stable offset of the log when the position was searched for; None: the log was not read.
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
    as_of: int | None = None
    before: bytes | None = None
    after: bytes | None = None

    @property
    def is_known(self) -> bool:
        """Whether a group may start at ``offset``: it is exact and has evidence, or the user trusts it."""
        if self.status is Status.EXACT:
            return self.compared > 0 or self.method is Method.START
        return self.status is Status.TRUSTED

    def start(self, most_reread: int) -> int | None:
        """Return the offset at which a group may start; None if it is not known well enough.

        most_reread: how many records the group may read again.
        """
        if self.is_known or (self.offset is not None and 0 < self.reread <= most_reread):
            return self.offset
        return None

    def start_if_lost(self, most_reread: int) -> int | None:
        """Return the offset at which a group may start if the source cluster is lost; None if it is not known.

        Unlike `start`, it does not need the records that the mirror has not delivered, because they may never come. If
        they do come, the group reads them again. most_reread: as for `start`.
        """
        return self.offset if self.status is Status.NOT_MIRRORED else self.start(most_reread)


def undetermined(reason: str) -> Position:
    """Return that a position can't be determined, and why."""
    return Position(status=Status.UNDETERMINED, reason=reason)


def different(reason: str, compared: int = 0) -> Position:
    """Return that a copy has other records than the source. compared: how many records of the copy were matched."""
    return Position(status=Status.DIFFERENT, reason=reason, compared=compared)
