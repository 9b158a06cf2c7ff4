"""Load and write spec files (TOML), which split a group by topic, or list groups to move whole to another cluster."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.files.kinds import SPEC, mistaken
from migrate_groups.files.read import read_bytes, status
from migrate_groups.model.renames import Rename
from migrate_groups.planning.options import FleetLimits, WriteOptions
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import did_you_mean, named, one_line

_TARGET_KEYS = {"group", "type", "topics", "topics_regex"}
_MOST_BYTES = 16_000_000  # 200,000 topics with names of 80 bytes
# tomllib takes 1.6 GB for a key with 20,000 parts. A key of a spec has two parts.
_MANY_PARTS = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){8}")
# The strings and comments of a TOML file.
_NOT_KEYS = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:[^"\\\n]++|\\[^\n])*+"|'
    r"'[^'\n]*+'|"
    r"#[^\n]*+",
    re.DOTALL,
)
_STAY_KEYS = {"topics", "topics_regex"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFile:
    """The content of a spec file: the split of a source group by topic, and the options of the write.

    content: the bytes of the file.
    """

    content: bytes
    spec: SplitSpec
    options: WriteOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsFile:
    """The content of a spec file of a fleet: groups that hand over all their topics, each to one new group.

    - groups: names of groups, and globs.
    - renames: the rules that name the new groups. A group to which none applies keeps its name, on another cluster.
    - exclude: names and globs of groups that are left out.
    - is_share: whether the new groups are share groups (KIP-932).
    - limits: how many groups may be stopped at once, and how many may fail.
    - options: those of each write.
    """

    groups: tuple[str, ...]
    renames: tuple[Rename, ...]
    exclude: tuple[str, ...]
    is_share: bool
    limits: FleetLimits
    options: WriteOptions

    def of_group(self, group: str, target: str) -> SplitFile:
        """Return a split by which all topics of a group go to the group ``target``."""
        whole = SplitTarget(group=target, topics=(TopicPattern("*"),), is_share=self.is_share)
        spec = SplitSpec(source=group, targets=(whole,))
        return SplitFile(content=to_toml(spec, (), {}).encode(), spec=spec, options=self.options)


def load_groups(path: Path) -> GroupsFile:
    """Return the content of a spec file (TOML) that lists whole groups.

    Raises `InvalidInput` if the file can't be read, is not a valid spec, or is a split.
    """
    file = load_any(path)
    if isinstance(file, SplitFile):
        raise InvalidInput(f"{path} splits one group: list whole groups as groups = [...]")
    return file


def load(path: Path) -> SplitFile:
    """Return the content of a spec file (TOML): the split of a group by topic, and the options of the write.

    Raises `InvalidInput` if the file can't be read or is not a valid split.
    """
    file = load_any(path)
    if isinstance(file, GroupsFile):
        raise InvalidInput(f"{path} names whole groups, which are not split: pass it to migrate")
    return file


def load_any(path: Path) -> SplitFile | GroupsFile:
    """Return the content of a spec file (TOML): a split of a group by topic, or a list of whole groups.

    Raises `InvalidInput` if the file can't be read or is not a valid spec.
    """
    if path.suffix.lower() != ".toml" and status(path) is None:
        raise InvalidInput(
            f"{path} does not exist: name a split spec, a .toml file that says which topics go to which group"
        )
    found = status(path)
    if found is not None and found.st_size > _MOST_BYTES:
        raise InvalidInput(f"{path} is larger than {_MOST_BYTES:,} bytes: name a split spec, or write it with globs")
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")  # editors on Windows add a byte order mark
        if long := _MANY_PARTS.search(_NOT_KEYS.sub("s", text)):
            raise InvalidInput(f"{path}: the key {long[0]}… has more parts than any key of a spec: correct the key")
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a number of 5,000 digits raises no TOMLDecodeError
        not_toml = InvalidInput(f"{path} is not TOML: {' '.join(str(error).split())}")
        raise mistaken(content, str(path), SPEC) or not_toml from error
    try:
        options = _options(_table(document.get("options", {}), "options"))
        if "groups" in document:
            return _fleet(document, options)
        return SplitFile(content=content, spec=_spec(document), options=options)
    except (InvalidInput, UsageError) as error:
        raise InvalidInput(f"{path}: {error}") from error


def to_toml(spec: SplitSpec, heading: Sequence[str], notes: Mapping[str | None, Sequence[str]]) -> str:
    """Return the text of a split spec (TOML) with comments.

    heading: the lines of the comment at the start. notes: the lines of the comment above each target group, by group
    name; the key None has the comment above the topics that stay in the source group.
    """
    parts = [_comment(heading)] if heading else []
    parts.append([f"source = {_quoted(spec.source)}", *(["fan_out = true"] if spec.fan_out else [])])
    for target in spec.targets:
        group = f"group = {_quoted(target.group)}"
        lines = ["[[target]]", group, *(['type = "share"'] if target.is_share else []), *_lists(target.topics)]
        parts.append([*_comment(notes.get(target.group, ())), *lines])
    if spec.stay:
        parts.append([*_comment(notes.get(None, ())), "[stay]", *_lists(spec.stay)])
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _comment(lines: Sequence[str]) -> list[str]:
    return [f"# {one_line(line)}".rstrip() for line in lines]


def _lists(patterns: Sequence[TopicPattern]) -> list[str]:
    lines = []
    for key, is_regex in (("topics", False), ("topics_regex", True)):
        listed = [f"  {_quoted(each.pattern)}," for each in patterns if each.is_regex is is_regex]
        lines += [f"{key} = [", *listed, "]"] if listed else []
    return lines


def _quoted(text: str) -> str:
    """Return a text as a TOML string, with its quotes."""
    # JSON has the same escapes for ASCII, except that it does not escape DEL.
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)


def _spec(document: dict[str, Any]) -> SplitSpec:
    _only(document, {"source", "target", "stay", "fan_out", "options"}, "the file")
    source, fan_out = document.get("source"), document.get("fan_out", False)
    if not isinstance(source, str):
        raise InvalidInput('source is missing or not a text; expected source = "the old group"')
    if not isinstance(fan_out, bool):
        raise InvalidInput("fan_out is not true or false: write it without quotes")
    targets = document.get("target", [])
    if not isinstance(targets, list):
        raise InvalidInput("target is not a list of tables: write [[target]], in double brackets")
    stay = _table(document.get("stay", {}), "stay")
    _only(stay, _STAY_KEYS, "[stay]")
    return SplitSpec(
        source=source,
        targets=tuple(_target(_table(target, "[target]")) for target in targets),
        stay=_patterns(stay, "[stay]"),
        fan_out=fan_out,
    )


def _fleet(document: dict[str, Any], options: WriteOptions) -> GroupsFile:
    if also := sorted(document.keys() & {"source", "target", "stay", "fan_out"}):
        raise InvalidInput(f"groups names whole groups, and {also[0]} is for the split of one: write two files")
    _only(document, {"groups", "type", "rename", "exclude", "fleet", "options"}, "the file")
    groups = _strings(document["groups"], "groups")
    if not groups or not all(groups):
        raise InvalidInput('groups has no name, or an empty one; expected, for instance, ["billing", "search-*"]')
    limits = _table(document.get("fleet", {}), "fleet")
    _only(limits, {"max_stopped", "max_failures"}, "[fleet]")
    return GroupsFile(
        groups=tuple(groups),
        renames=tuple(Rename.parse(each, "rename") for each in _strings(document.get("rename", []), "rename")),
        exclude=tuple(_strings(document.get("exclude", []), "exclude")),
        is_share=_is_share(document, "the new groups"),
        limits=FleetLimits(**limits),
        options=options,
    )


def _options(table: dict[str, Any]) -> WriteOptions:
    switches = ("any_kind", "copy")
    known = {"on_uncommitted", "on_existing", "on_out_of_range", "on_removed", "settle", "guard", *switches}
    _only(table, known, "[options]")
    if quoted := [key for key in switches if not isinstance(table.get(key, False), bool)]:
        raise InvalidInput(f"{quoted[0]} in [options] is not true or false: write it without quotes")
    wrong = sorted(key for key, value in table.items() if key not in switches and not isinstance(value, str))
    if wrong:
        raise InvalidInput(f'{named("option", wrong)} must be text; expected, for instance, "refuse" or "10s"')
    options: dict[str, Any] = dict(table)
    options |= {key: parse_duration(table[key], key) for key in ("settle", "guard") if key in table}
    return WriteOptions(**options)


def _target(target: dict[str, Any]) -> SplitTarget:
    _only(target, _TARGET_KEYS, "[[target]]")
    group = target.get("group")
    if not isinstance(group, str):
        raise InvalidInput('a [[target]] has no group; expected group = "the new group"')
    is_share = _is_share(target, f"target {group!r}")
    return SplitTarget(group=group, topics=_patterns(target, f"target {group!r}"), is_share=is_share)


def _is_share(table: dict[str, Any], where: str) -> bool:
    if table.get("type", "share") != "share":
        raise InvalidInput(
            f'type of {where} is {table["type"]!r}: write type = "share" for a share group; leave it out for a '
            "consumer group"
        )
    return "type" in table


def _patterns(table: dict[str, Any], where: str) -> tuple[TopicPattern, ...]:
    return tuple(
        TopicPattern(pattern, is_regex=key == "topics_regex")
        for key in ("topics", "topics_regex")
        for pattern in _strings(table.get(key, []), f"{key} of {where}")
    )


def _strings(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidInput(f'{where} is not a list of names; expected, for instance, ["invoices", "payments.*"]')
    return value


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} is not a table of keys and values")
    return value


def _only(table: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if commands := sorted({"stop_command", "start_command", "restart_command"} & {*unknown}):
        # Otherwise whoever may edit the spec could run programs where migrate runs.
        option = f"--{commands[0].replace('_', '-')}"
        raise InvalidInput(f"{commands[0]} in {where}: a spec can't run a command; pass {option} to migrate")
    if unknown:
        advice = did_you_mean(unknown[:10], known) or f"expected {', '.join(sorted(known))}"
        raise InvalidInput(f"{named('unknown key', unknown)} in {where}: {advice}")
