"""The offsets of a source group on another cluster, translated to the copies of its topics that a mirror writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from migrate_groups.errors import InvalidInput
from migrate_groups.mirrors.position import Position, Status, undetermined
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, some

PENDING = -1
"""Stands for the offset of a partition while a transactional commit is pending, as -1 does in OffsetFetch."""
_NOT_SEARCHED = undetermined("not searched for")


class Behind(NamedTuple):
    """How far a mirror's copy of a partition is behind.

    records: the number of source records that the copy lacks. From 1,600 on it is a number of offsets, and an upper
    bound. milliseconds: the time between the first of these records and the newest one, by their timestamps; None: not
    known.
    """

    records: int
    milliseconds: int | None

    @property
    def in_words(self) -> str:
        """The number of records and the time as text, such as ``1,204 records, 3 min``."""
        seconds = round(self.milliseconds or 0, -3 if (self.milliseconds or 0) >= 1000 else 0) / 1000
        time = span_in_words(timedelta(seconds=seconds)) if seconds else ""
        return ", ".join(filter(None, [counted(self.records, "record"), time]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedOffset:
    """An offset of a group on the source cluster, and its translation to the mirror's copy of the partition.

    - source: the partition on the source cluster.
    - offset: the offset to translate: ``committed``, or an offset that an option sets instead; `PENDING` if it is not
      known.
    - committed: the group's committed offset on the source cluster; None if it has none, or a commit is pending.
    - copy: the copy of the partition on the target cluster; None if there is none.
    - there: the group's committed offset in the copy; None if it has none, or if it was not read.
    - position: the translated offset, and the evidence for it. Undetermined until it was searched for.
    - behind: how far the copy was behind; None if it is not known, or was not read.
    """

    source: TopicPartition
    offset: int
    committed: int | None
    copy: TopicPartition | None
    there: int | None = None
    position: Position = _NOT_SEARCHED
    behind: Behind | None = None

    @property
    def stopped_at(self) -> int:
        """The source group's committed offset. If it has none, the offset that was translated instead."""
        return self.offset if self.committed is None else self.committed

    @property
    def is_off(self) -> bool:
        """Whether the group would skip or repeat records if it started at ``there``, or has no committed offset there.

        False if the translated offset is not known exactly.
        """
        counts = self.position.counts
        return self.position.is_known and (self.there is None or bool(counts.again or counts.skipped))


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The offsets of a source group on another cluster, translated to a mirror's copies of its partitions.

    - cluster_id, group: the source cluster and the source group.
    - partitions: sorted by source partition.
    - compared_at: when the offsets were translated, if the source cluster was not asked since, because it is lost; None
      if it was asked at the write.
    """

    cluster_id: str
    group: str
    partitions: tuple[TranslatedOffset, ...]
    compared_at: datetime | None = None

    @property
    def topics(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a topic's name on the source cluster and its copy's name on the target cluster, sorted."""
        return tuple(sorted({(each.source.topic, each.copy.topic) for each in self.partitions if each.copy}))

    @property
    def behind_seconds(self) -> float:
        """The most seconds that the mirror was behind in a partition, as far as it is known."""
        return max((each.behind.milliseconds or 0 for each in self.partitions if each.behind), default=0) / 1000

    @property
    def copies(self) -> dict[TopicPartition, TopicPartition]:
        """The copy of each source partition that has one."""
        return {each.source: each.copy for each in self.partitions if each.copy is not None}

    @property
    def source_topics(self) -> frozenset[str]:
        """The names of the translated topics on the source cluster."""
        return frozenset(each.source.topic for each in self.partitions)

    def of(self, partition: TopicPartition) -> TranslatedOffset | None:
        """Return the translated offset of a partition on the source cluster; None if it was not translated."""
        return next((each for each in self.partitions if each.source == partition), None)

    def with_status(self, *statuses: Status) -> Iterator[TranslatedOffset]:
        """Yield the translated offsets that have one of these statuses, such as ``exact`` or ``ambiguous``."""
        return (each for each in self.partitions if each.position.status in statuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOffsets:
    """The translated offsets of groups, which ``compare -o`` keeps in case the source cluster is lost.

    - cluster_id: the target cluster.
    - topic_ids: the ids of its topics, by topic name.
    - translations: one for each source group, with the time of the comparison.
    """

    cluster_id: str
    topic_ids: Mapping[str, str]
    translations: tuple[Translation, ...]

    def of(self, group: str) -> Translation:
        """Return the translated offsets of a source group. Raises `InvalidInput` if there are none."""
        found = {each.group: each for each in self.translations}
        if group not in found:
            raise InvalidInput(f"the file has no translated offsets of group {group!r}, only of {some(found)}")
        return found[group]

    def starts(self, most_reread: int) -> frozenset[tuple[str, TopicPartition]]:
        """Return the groups and source partitions of which it is known where the group may start.

        most_reread: as for `Position.start_if_lost`.
        """
        return frozenset(
            (of.group, each.source)
            for of in self.translations
            for each in of.partitions
            if each.position.start_if_lost(most_reread) is not None
        )
