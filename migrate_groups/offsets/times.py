"""Durations as people write them."""

from __future__ import annotations

import re

from migrate_groups.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str, name: str) -> float:
    """Return the seconds that ``10s``, ``500ms``, ``1m30s`` mean; ``name`` is the option's, for the error.

    Raises `UsageError`, for a bare number as well: Kafka's own tools take those as milliseconds, and a number without
    its unit is a misunderstanding to come.
    """
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", text)
    if not parts or "".join(map("".join, parts)) != text:
        raise UsageError(f"{name} is {text!r}; expected a duration with its unit, such as 10s, 500ms or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
