"""The targets of a rewind, as the user asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What a partition without a record at or after the time gets: the log end offset, no offset, or an error.
PastEnd = Literal["end", "skip", "fail"]


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record at or after a moment, in milliseconds since 1970."""

    moment: int


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The log start offset: the first record that is still there."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """The log end offset."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """The committed offset, unchanged."""


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """The committed offset plus ``offsets``, which may be negative."""

    offsets: int


@dataclass(frozen=True, slots=True)
class ToOffset:
    """The same offset in every partition."""

    offset: int


RewindTo = ToTime | ToEarliest | ToLatest | ToCurrent | ShiftBy | ToOffset
