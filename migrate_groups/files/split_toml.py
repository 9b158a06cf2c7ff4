"""Load a split spec: a TOML file that is kept in Git and reviewed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.files.read import read_bytes
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import some

_TARGET_KEYS = {"group", "topics", "topics_regex"}
_STAY_KEYS = {"topics", "topics_regex"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFile:
    """The split of a source group by topic, and the options of the write; ``content`` is the bytes of the file."""

    content: bytes
    spec: SplitSpec
    options: WriteOptions


def load(path: Path) -> SplitFile:
    """Return the split and the options in a TOML file. Raises `InvalidInput`, which names the key that is wrong."""
    content = read_bytes(path)
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError: a number of 5,000 digits raises no TOMLDecodeError
        raise InvalidInput(f"{path} is not TOML: {' '.join(str(error).split())}") from error
    try:
        options = _options(_table(document.get("options", {}), "options"))
        return SplitFile(content=content, spec=_spec(document), options=options)
    except (InvalidInput, UsageError) as error:
        raise InvalidInput(f"{path}: {error}") from error


def _spec(document: dict[str, Any]) -> SplitSpec:
    _only(document, {"source", "target", "stay", "fan_out", "options"}, "the file")
    source, fan_out = document.get("source"), document.get("fan_out", False)
    if not isinstance(source, str):
        raise InvalidInput('expected source = "the old group"')
    if not isinstance(fan_out, bool):
        raise InvalidInput("fan_out is neither true nor false")
    targets = document.get("target", [])
    if not isinstance(targets, list):
        raise InvalidInput("expected [[target]], in double brackets")
    stay = _table(document.get("stay", {}), "stay")
    _only(stay, _STAY_KEYS, "[stay]")
    return SplitSpec(
        source=source,
        targets=tuple(_target(_table(target, "[target]")) for target in targets),
        stay=_patterns(stay, "[stay]"),
        fan_out=fan_out,
    )


def _options(table: dict[str, Any]) -> WriteOptions:
    known = {"uncommitted", "on_existing", "out_of_range", "vanished", "settle", "guard", "any_kind"}
    _only(table, known, "[options]")
    if not isinstance(table.get("any_kind", False), bool):
        raise InvalidInput("any_kind in [options] is neither true nor false")
    wrong = sorted(key for key, value in table.items() if key != "any_kind" and not isinstance(value, str))
    if wrong:
        raise InvalidInput(f'{some(wrong)} in [options] is no text; expected for instance "refuse" or "10s"')
    options: dict[str, Any] = dict(table)
    options |= {key: parse_duration(table[key], key) for key in ("settle", "guard") if key in table}
    return WriteOptions(**options)


def _target(target: dict[str, Any]) -> SplitTarget:
    _only(target, _TARGET_KEYS, "[[target]]")
    group = target.get("group")
    if not isinstance(group, str):
        raise InvalidInput('a [[target]] has no group; expected group = "the new group"')
    return SplitTarget(group=group, topics=_patterns(target, f"target {group!r}"))


def _patterns(table: dict[str, Any], where: str) -> tuple[TopicPattern, ...]:
    return tuple(
        TopicPattern(pattern, is_regex=key == "topics_regex")
        for key in ("topics", "topics_regex")
        for pattern in _strings(table.get(key, []), f"{key} of {where}")
    )


def _strings(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidInput(f'{where} is no list of names; expected for instance ["invoices", "payments.*"]')
    return value


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} is no table")
    return value


def _only(table: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise InvalidInput(f"unknown key {some(unknown)} in {where}; expected {', '.join(sorted(known))}")
