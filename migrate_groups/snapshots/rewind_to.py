"""Where a rewind goes to, as a person asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What a partition without a record at or after the time gets: the log end, nothing, or an error.
PastEnd = Literal["end", "skip", "fail"]


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record at or after a moment, in milliseconds since 1970."""

    moment: int


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The first record that is still there."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """The log end."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """The committed offset as it is."""


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many offsets on from the committed one; back, where it is negative."""

    offsets: int


@dataclass(frozen=True, slots=True)
class ToOffset:
    """One offset, the same in every partition."""

    offset: int


RewindTo = ToTime | ToEarliest | ToLatest | ToCurrent | ShiftBy | ToOffset
