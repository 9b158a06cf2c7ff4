"""Select rows of a snapshot: topics by glob or regular expression, partitions by number or range."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.snapshots.snapshot import Snapshot
from migrate_groups.text import some

_MOST_PARTITIONS = 2**31 - 1


_NAME = re.compile(r"[a-zA-Z0-9._-]+")  # the characters of topic names


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A pattern for whole topic names: a glob (``payments.*``, or a plain name) or a regular expression.

    Patterns are case-sensitive, like Kafka's names. Regular expressions are RE2's, which match in time linear to the
    length of a name, so that no pattern from a pull request can hang a CI job. Raises `InvalidInput` for an empty
    pattern, or a regular expression that RE2 does not accept.
    """

    pattern: str
    is_regex: bool = False

    def __post_init__(self) -> None:
        if not self.pattern:
            raise InvalidInput("a topic pattern is empty")
        self.matching([""])  # RE2 checks a regular expression only when it has a text to match

    def __str__(self) -> str:
        return f"regex {self.pattern}" if self.is_regex else self.pattern

    @property
    def name(self) -> str | None:
        """The pattern if it is a plain topic name; None if it may match several topics."""
        return self.pattern if not self.is_regex and _NAME.fullmatch(self.pattern) else None

    def matching(self, topics: Collection[str]) -> list[str]:
        """Return the topics whose whole name the pattern matches, sorted. A plain name is only looked up."""
        if self.name is not None:
            return [self.name] if self.name in topics else []
        if self.is_regex:
            return sorted(self._matching_regex(list(topics)))
        matches = re.compile(fnmatch.translate(self.pattern)).fullmatch
        return sorted(topic for topic in topics if matches(topic))

    def _matching_regex(self, topics: list[str]) -> list[str]:
        import pyarrow as pa
        import pyarrow.compute as pc

        names = pa.array(topics, pa.string())
        try:
            pc.match_substring_regex(names, self.pattern)  # first without the added parentheses: "a)|(b" is refused
            found = pc.match_substring_regex(names, rf"\A(?:{self.pattern})\z")
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression: ")
            raise InvalidInput(
                f"topics_regex {self.pattern[:60]!r} is no regular expression of RE2's (no look-around, no "
                f"back-references): {reason[:100]}"
            ) from error
        return [topic for topic, matches in zip(topics, found.to_pylist(), strict=True) if matches]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows of a snapshot to keep: those that match all fields. An empty field restricts nothing.

    Every pattern and every group must match something; a range of partitions need not.
    """

    topics: tuple[TopicPattern, ...] = ()
    excluded_topics: tuple[TopicPattern, ...] = ()
    groups: tuple[str, ...] = ()
    partitions: tuple[range, ...] = ()


def select(snapshot: Snapshot, selection: Selection) -> Snapshot:
    """Return the rows of a snapshot that the selection keeps.

    Raises `InvalidInput` for a pattern or group without a match, or if no row is left.
    """
    missing = sorted(set(selection.groups) - {group for group in snapshot.groups() if group is not None})
    if missing:
        raise InvalidInput(f"no group {some(missing)} in the file; it has {_names(snapshot.groups())}")
    wanted: dict[str, Collection[object]] = {}
    if selection.groups:
        wanted["group"] = selection.groups
    if selection.topics or selection.excluded_topics:
        wanted["topic"] = matching_topics(snapshot.topics(), selection.topics, selection.excluded_topics)
    if selection.partitions:
        present = set(snapshot.table["partition"].to_pylist())
        wanted["partition"] = {number for number in present if any(number in span for span in selection.partitions)}
    selected = snapshot.keep(wanted)
    if not len(selected):
        raise InvalidInput("nothing in the file is selected by these options")
    return selected


def matching_topics(
    topics: Iterable[str], patterns: Iterable[TopicPattern], excluded: Iterable[TopicPattern] = ()
) -> set[str]:
    """Return the topics that a pattern matches (all topics if there is no pattern) and that no exclusion matches.

    Raises `InvalidInput` naming each pattern that matches nothing.
    """
    present = {*topics}
    matches = {pattern: pattern.matching(present) for pattern in [*patterns, *excluded]}
    useless = [str(pattern) for pattern, found in matches.items() if not found]
    if useless:
        raise InvalidInput(f"no topic matches {some(useless)}; the topics are {some(present) or 'none'}")
    kept = {topic for pattern in patterns for topic in matches[pattern]} or present
    return kept - {topic for pattern in excluded for topic in matches[pattern]}


def parse_partitions(text: str) -> range:
    """Parse a partition number (``7``) or a range (``3-5``, both ends included). Raises `UsageError`."""
    match = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last or last > _MOST_PARTITIONS:
        raise UsageError(f"not a partition: {text!r}; expected a number such as 7, or a range such as 3-5")
    return range(first, last + 1)


def _names(groups: Iterable[str | None]) -> str:
    return some([group for group in groups if group is not None]) or "no group names"
