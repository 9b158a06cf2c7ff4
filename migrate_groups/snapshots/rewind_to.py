"""The targets of a rewind: where the replay of each partition starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from migrate_groups.arguments import check_whole_number

# What a partition gets if it has no record at or after the time of a `ToTime`: the log end offset, no offset, or an
# error.
PastEnd = Literal["end", "skip", "fail"]


@dataclass(frozen=True, slots=True)
class ToTime:
    """Start at the first record with a timestamp at or after ``moment`` (milliseconds since 1970).

    Raises `UsageError` if ``moment`` is not a whole number.
    """

    moment: int

    def __post_init__(self) -> None:
        check_whole_number("ToTime", self.moment, least=None)  # `checked_moment` explains a time before 1970


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """Start at the log start offset, so that all records still in the log are replayed."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """Start at the log end offset, so that no record is replayed."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """Start at the committed offset in the snapshot."""


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """Start at the committed offset in the snapshot plus ``offsets``. A negative number goes back.

    Raises `UsageError` if ``offsets`` is not a whole number.
    """

    offsets: int

    def __post_init__(self) -> None:
        check_whole_number("ShiftBy", self.offsets, least=None)


@dataclass(frozen=True, slots=True)
class ToOffset:
    """Start at ``offset`` in every partition. Raises `UsageError` if ``offset`` is negative or not a whole number."""

    offset: int

    def __post_init__(self) -> None:
        check_whole_number("ToOffset", self.offset)


RewindTo = ToTime | ToEarliest | ToLatest | ToCurrent | ShiftBy | ToOffset
