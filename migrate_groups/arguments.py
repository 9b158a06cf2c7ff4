"""Check types and values of arguments of the Python API.

The parameter ``name`` of each function is the argument's name, with which the error message begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, get_args

from migrate_groups.errors import UsageError

LONGEST = (2**31 - 1) / 1000
"""The longest duration in seconds: 24 days, because Kafka's protocol has 32 bits for milliseconds."""


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise `UsageError` if the value is not one of the values of the `Literal` type ``choices``."""
    if value not in get_args(choices):
        raise UsageError(f"{name} is {value!r}; expected one of {', '.join(get_args(choices))}")


def check_bool(name: str, value: object) -> None:
    """Raise `UsageError` if the value is not a `bool`."""
    # The text "false" would count as true.
    if not isinstance(value, bool):
        raise UsageError(f"{name} is {value!r}; expected True or False")


def check_whole_number(name: str, value: object, *, least: int | None = 0) -> None:
    """Raise `UsageError` if the value is not an `int`, or is below ``least``. None allows any."""
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        raise UsageError(f"{name} is {value!r}; expected a whole number{'' if least is None else f', {least} or more'}")


def checked_seconds(name: str, value: object) -> float:
    """Return the value as a float. Raises `UsageError` if it is not a number of seconds from 0 to 24 days."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        raise UsageError(f"{name} is {value!r}; expected a number of seconds from 0 to 24 days")
    return float(value)


def checked_timeout(name: str, value: object) -> float:
    """Return the time-out of a request in seconds. Raises `UsageError` if it is not a number from 1 ms to 24 days."""
    seconds = checked_seconds(name, value)
    if seconds < 0.001:
        raise UsageError(f"{name} is {seconds:g} s, in which no broker can answer: pass a longer one, such as 10 s")
    return seconds


def check_span(name: str, value: object) -> None:
    """Raise `UsageError` if the value is not a positive `timedelta`."""
    if not isinstance(value, timedelta) or value <= timedelta():
        raise UsageError(f"{name} is {value!r}; expected a positive timedelta, such as timedelta(hours=1)")


def check_moment(name: str, value: object) -> None:
    """Raise `UsageError` if the value is not a `datetime` with a time zone."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise UsageError(f"{name} is {value!r}; expected a datetime with a time zone, such as datetime.now(UTC)")


def checked_texts(name: str, value: object) -> tuple[str, ...]:
    """Return the texts as a tuple. Raises `UsageError` if the value is a single `str`, or is no iterable of `str`."""
    # A single text is refused, because Python would take it letter by letter.
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        found = tuple(value)
        if all(isinstance(each, str) for each in found):
            return found
    example = [value] if isinstance(value, str) else ["orders"]
    raise UsageError(f"{name} is {value!r}; expected a list of texts, such as {example}")
