"""The targets of a rewind: which offset the user wants in each partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What a partition gets if it has no record at or after the time of a `ToTime`: the log end offset, no offset, or an
# error.
PastEnd = Literal["end", "skip", "fail"]


@dataclass(frozen=True, slots=True)
class ToTime:
    """Rewind to the first record whose timestamp is at or after ``moment``, in milliseconds since 1970."""

    moment: int


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """Rewind to the log start offset, which is the offset of the first record that is still in the log."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """Start at the log end offset, so that no record is replayed."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """Start at the committed offset in the snapshot."""


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """Start at the committed offset in the snapshot plus ``offsets``. A negative number goes back."""

    offsets: int


@dataclass(frozen=True, slots=True)
class ToOffset:
    """Start at ``offset`` in every partition."""

    offset: int


RewindTo = ToTime | ToEarliest | ToLatest | ToCurrent | ShiftBy | ToOffset
