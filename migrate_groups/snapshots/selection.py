"""Select rows of a snapshot: topics by glob or regular expression, partitions by number or range."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.text import did_you_mean, is_unicode, named, some

if TYPE_CHECKING:
    from migrate_groups.snapshots.snapshot import SnapshotTable

_MOST_PARTITIONS = 2**31 - 1


_NAME = re.compile(r"[a-zA-Z0-9._-]+")  # the characters of topic names
_WITH_PARTITIONS = re.compile(r"([a-zA-Z0-9._-]+):([0-9]+(?:,[0-9]+)*)")  # as --topic of kafka-consumer-groups takes it


class NoTopicMatches(InvalidInput):
    """A topic pattern matches no topic."""


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A case-sensitive pattern for whole topic names: a name, a glob (``payments.*``) or an RE2 regular expression.

    Raises `InvalidInput` for a pattern that is empty or not UTF-8, that names a partition (``orders:0``), or that RE2
    does not accept.
    """

    pattern: str
    is_regex: bool = False

    def __post_init__(self) -> None:
        if not self.pattern:
            raise InvalidInput("a topic pattern is empty: name a topic or a glob")
        if not is_unicode(self.pattern):
            raise InvalidInput(f"topic pattern {self.pattern!r} is not UTF-8 text: name a topic or a glob in UTF-8")
        if not self.is_regex and (match := _WITH_PARTITIONS.fullmatch(self.pattern)):
            numbers = " --partition ".join(match[2].split(","))
            raise InvalidInput(
                f"{self.pattern} names a partition: pass --topic {match[1]} --partition {numbers} to filter or rewind; "
                "other commands take whole topics"
            )
        self.matching([""])  # RE2 checks a regular expression only when it has a text to match

    def __str__(self) -> str:
        return f"regex {self.pattern}" if self.is_regex else self.pattern

    @property
    def name(self) -> str | None:
        """The pattern if it is a plain topic name; None for a glob or a regular expression."""
        return self.pattern if not self.is_regex and _NAME.fullmatch(self.pattern) else None

    def matching(self, topics: Collection[str]) -> list[str]:
        """Return the topics whose whole name the pattern matches, sorted."""
        if self.name is not None:
            return [self.name] if self.name in topics else []
        if self.is_regex:
            return sorted(self._matching_regex(list(topics)))
        matches = re.compile(fnmatch.translate(self.pattern)).fullmatch
        return sorted(topic for topic in topics if matches(topic))

    def would_match_as_regex(self, topics: Collection[str]) -> bool:
        """Return whether a glob would match one of the topics if it were a regular expression.

        False for a plain name and for a regular expression.
        """
        if self.is_regex or self.name is not None:
            return False
        try:
            return bool(TopicPattern(self.pattern, is_regex=True).matching(topics))
        except InvalidInput:
            return False

    def _matching_regex(self, topics: list[str]) -> list[str]:
        import pyarrow as pa
        import pyarrow.compute as pc

        # RE2 matches in linear time, so that no pattern from a pull request can hang a CI job.
        names = pa.array(topics, pa.string())
        try:
            pc.match_substring_regex(names, self.pattern)  # without the added parentheses, so that "a)|(b" is refused
            found = pc.match_substring_regex(names, rf"\A(?:{self.pattern})\z")
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression: ")
            raise InvalidInput(
                f"topics_regex {self.pattern[:60]!r} is not a regular expression of RE2, which has no "
                f"look-around and no back-references: {reason[:100]}"
            ) from error
        return [topic for topic, matches in zip(topics, found.to_pylist(), strict=True) if matches]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows of a snapshot to keep, by topic, group and partition. An empty field restricts nothing.

    excluded_topics: topics whose rows are not kept. partitions: ranges of partition numbers.
    """

    topics: tuple[TopicPattern, ...] = ()
    excluded_topics: tuple[TopicPattern, ...] = ()
    groups: tuple[str, ...] = ()
    partitions: tuple[range, ...] = ()


def select(snapshot: SnapshotTable, selection: Selection) -> SnapshotTable:
    """Return the rows of a snapshot that the selection keeps.

    Raises `InvalidInput` if a group, topic pattern or range of partitions matches nothing, or if no row is left.
    """
    missing = sorted(set(selection.groups) - {group for group in snapshot.groups() if group is not None})
    if missing:
        groups = [group for group in snapshot.groups() if group is not None]
        advice = did_you_mean(missing, groups) or f"it has {some(groups) or 'no group names'}"
        raise InvalidInput(f"{named('group', missing)} not found in the file: {advice}")
    wanted: dict[str, Collection[object]] = {}
    if selection.groups:
        wanted["group"] = selection.groups
    if selection.topics or selection.excluded_topics:
        wanted["topic"] = matching_topics(snapshot.topics(), selection.topics, selection.excluded_topics)
    selected = snapshot.keep(wanted)
    if len(selected) and selection.partitions:
        present = set(selected.table["partition"].to_pylist())
        selected = selected.keep({"partition": _matching_partitions(present, selection.partitions)})
    if not len(selected):
        raise InvalidInput("no row of the file matches all of these options: drop one of them")
    return selected


def matching_topics(
    topics: Iterable[str], patterns: Iterable[TopicPattern], excluded: Iterable[TopicPattern] = ()
) -> set[str]:
    """Return the topics that match a pattern in ``patterns`` and no pattern in ``excluded``.

    If ``patterns`` is empty, all topics match. Raises `NoTopicMatches` if a pattern matches no topic.
    """
    present = {*topics}
    matches = {pattern: pattern.matching(present) for pattern in [*patterns, *excluded]}
    useless = [pattern for pattern, found in matches.items() if not found]
    if useless:
        advice = advice_for(useless, present) or _choice("topic", present)
        raise NoTopicMatches(f"no topic matches {some([*map(str, useless)])}: {advice}")
    kept = {topic for pattern in patterns for topic in matches[pattern]} or present
    return kept - {topic for pattern in excluded for topic in matches[pattern]}


def advice_for(useless: Iterable[TopicPattern], topics: Collection[str]) -> str:
    """Return what the user may have meant with topic patterns, as text; empty if there is no advice.

    useless: patterns that match no topic. topics: the topics that exist.
    """
    useless = [*useless]
    regexes = [pattern.pattern for pattern in useless if pattern.would_match_as_regex(topics)]
    if regexes:  # the user may have written a regular expression where a glob is expected
        return f"{some(regexes)} would match as a regular expression: write a glob, or a topics_regex of a split spec"
    return did_you_mean([pattern.pattern for pattern in useless], topics)


def _matching_partitions(present: set[int], spans: Iterable[range]) -> set[int]:
    useless = [span for span in spans if not any(number in span for number in present)]
    if useless:
        raise InvalidInput(
            f"no partition matches {some([_in_words(span) for span in useless])}: {_choice('partition', present)}"
        )
    return {number for number in present if any(number in span for span in spans)}


def _in_words(span: range) -> str:
    """Return a range of partition numbers as text, such as ``7`` or ``3-5``."""
    if not span:
        return str(span)
    return str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}"


def parse_partitions(text: str) -> range:
    """Return the partition numbers of a text such as ``7`` or ``3-5`` (both ends included).

    Raises `UsageError` for any other text.
    """
    match = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last or last > _MOST_PARTITIONS:
        raise UsageError(f"{text!r} is not a partition; expected a number such as 7, or a range such as 3-5")
    return range(first, last + 1)


def _choice(thing: str, present: Collection[object]) -> str:
    return f"choose from {named(thing, present)}" if present else f"there are no {thing}s"
