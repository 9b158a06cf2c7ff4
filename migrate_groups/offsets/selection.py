"""Which rows of a snapshot a person means: topics by glob or regular expression, partitions by number or range."""

from __future__ import annotations

import fnmatch
import re
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.offsets.snapshot import Snapshot
from migrate_groups.text import some

_MOST_PARTITIONS = 2**31 - 1


_NAME = re.compile(r"[a-zA-Z0-9._-]+")  # what a topic may be called


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A pattern for whole topic names: a glob (``payments.*``; a plain name is one) or a regular expression.

    Case counts: Kafka's names do. Raises `InvalidInput` where it is empty or no regular expression.
    """

    pattern: str
    is_regex: bool = False

    def __post_init__(self) -> None:
        if not self.pattern:
            raise InvalidInput("a topic pattern is empty")
        self._compiled()

    def __str__(self) -> str:
        return f"regex {self.pattern}" if self.is_regex else self.pattern

    @property
    def name(self) -> str | None:
        """The one topic that the pattern can match; None where it may match several."""
        return self.pattern if not self.is_regex and _NAME.fullmatch(self.pattern) else None

    def matching(self, topics: Iterable[str]) -> list[str]:
        """Return the topics that the pattern matches whole, sorted."""
        matches = self._compiled().fullmatch
        return sorted(topic for topic in topics if matches(topic))

    def _compiled(self) -> re.Pattern[str]:
        try:
            with warnings.catch_warnings():
                # "[[a]" may mean something else in a later Python; it means what it does here.
                warnings.simplefilter("ignore", FutureWarning)
                return re.compile(self.pattern if self.is_regex else fnmatch.translate(self.pattern))
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidInput(f"topics_regex {self.pattern[:60]!r} is no regular expression: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Rows to keep. Empty means no restriction; every pattern, group and partition must match something."""

    topics: tuple[TopicPattern, ...] = ()
    excluded_topics: tuple[TopicPattern, ...] = ()
    groups: tuple[str, ...] = ()
    partitions: tuple[range, ...] = ()


def select(snapshot: Snapshot, selection: Selection) -> Snapshot:
    """Return the selected rows. Raises `InvalidInput` naming what matches nothing, or where nothing is left."""
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
    """Return the topics that a pattern matches (all, where there is none) and no exclusion does.

    Raises `InvalidInput` naming each pattern that matches nothing.
    """
    present = list(topics)
    matches = {pattern: pattern.matching(present) for pattern in [*patterns, *excluded]}
    useless = [str(pattern) for pattern, found in matches.items() if not found]
    if useless:
        raise InvalidInput(f"no topic matches {some(useless)}; the topics are {some(present) or 'none'}")
    kept = {topic for pattern in patterns for topic in matches[pattern]} or set(present)
    return kept - {topic for pattern in excluded for topic in matches[pattern]}


def parse_partitions(text: str) -> range:
    """Return the partitions that ``7`` or ``3-5`` (both ends included) means. Raises `UsageError`."""
    match = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last or last > _MOST_PARTITIONS:
        raise UsageError(f"not a partition: {text!r}; expected a number such as 7, or a range such as 3-5")
    return range(first, last + 1)


def _names(groups: Iterable[str | None]) -> str:
    return some([group for group in groups if group is not None]) or "no group names"
