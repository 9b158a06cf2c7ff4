"""Check arguments of the Python API. Python does not check their types.

The message of each error begins with the argument's name, the parameter ``name``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from migrate_groups.errors import UsageError

LONGEST = (2**31 - 1) / 1000
"""The longest duration in seconds: 24 days, because Kafka's protocol has 32 bits for milliseconds."""


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise `UsageError` if a value is not one of the choices. choices: a `Literal` type."""
    if value not in get_args(choices):
        raise UsageError(f"{name} is {value!r}; expected one of {', '.join(get_args(choices))}")


def check_bool(name: str, value: object) -> None:
    """Raise `UsageError` if a value is neither True nor False. The text ``"false"`` would count as true."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} is {value!r}; expected True or False")


def check_whole_number(name: str, value: object, *, negative: bool = False) -> None:
    """Raise `UsageError` if a value is not an `int`, or is below 0. negative: allow a number below 0."""
    if isinstance(value, bool) or not isinstance(value, int) or (value < 0 and not negative):
        raise UsageError(f"{name} is {value!r}; expected a whole number{'' if negative else ', 0 or more'}")


def checked_seconds(name: str, value: object) -> float:
    """Return a number of seconds as a float. Raises `UsageError` if it is no number, or not from 0 to 24 days."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        raise UsageError(f"{name} is {value!r}; expected a number of seconds from 0 to 24 days")
    return float(value)


def checked_timeout(name: str, value: object) -> float:
    """Return the seconds that one request may take. Raises `UsageError` for anything else, or for less than 1 ms."""
    seconds = checked_seconds(name, value)
    if seconds < 0.001:
        raise UsageError(f"{name} is {seconds:g} s, in which no broker can answer: pass a longer one, such as 10 s")
    return seconds


def checked_texts(name: str, value: object) -> tuple[str, ...]:
    """Return a list of texts as a tuple.

    Raises `UsageError` for anything else, such as a single text, which Python would take letter by letter.
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        found = tuple(value)
        if all(isinstance(each, str) for each in found):
            return found
    example = [value] if isinstance(value, str) else ["orders"]
    raise UsageError(f"{name} is {value!r}; expected a list of texts, such as {example}")
