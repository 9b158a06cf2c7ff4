"""The offsets of a source group on another cluster, translated to the copies of its topics that a mirror writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from migrate_groups.mirrors.place import Place, Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted


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
class Translated:
    """An offset on the source cluster, and its translation to the mirror's copy of the partition.

    - source: the partition on the source cluster.
    - offset: the offset to translate: ``committed``, or an offset that an option sets instead.
    - committed: the source group's committed offset; None if it has none.
    - target: the copy of the partition on the target cluster; None if there is none.
    - place: the translated offset, and how exact it is.
    - mirrored_to: the last stable offset of the copy; None if it was not read.
    - behind: how far the copy was behind; None if it is not known, or was not read.
    """

    source: TopicPartition
    offset: int
    committed: int | None
    target: TopicPartition | None
    place: Place
    mirrored_to: int | None = None
    behind: Behind | None = None

    @property
    def stopped_at(self) -> int:
        """The source group's committed offset. If it has none, the offset that was translated instead."""
        return self.offset if self.committed is None else self.committed

    def start(self, most_reread: int) -> int | None:
        """Return the translated offset at which a target group may start; None if it is not known well enough.

        most_reread: how many records the group may read again.
        """
        place = self.place
        if place.is_told or (place.offset is not None and 0 < place.reread <= most_reread):
            return place.offset
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The offsets of a source group on another cluster, translated to a mirror's copies of its partitions.

    - cluster_id, group: the source cluster and the source group.
    - partitions: sorted by source partition.
    """

    cluster_id: str
    group: str
    partitions: tuple[Translated, ...]

    @property
    def topics(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a topic's name on the source cluster and its copy's name on the target cluster, sorted."""
        return tuple(sorted({(each.source.topic, each.target.topic) for each in self.partitions if each.target}))

    @property
    def copies(self) -> dict[TopicPartition, TopicPartition]:
        """The copy of each source partition that has one."""
        return {each.source: each.target for each in self.partitions if each.target is not None}

    @property
    def source_topics(self) -> frozenset[str]:
        """The names of the translated topics on the source cluster."""
        return frozenset(each.source.topic for each in self.partitions)

    def of(self, partition: TopicPartition) -> Translated | None:
        """Return the translated offset of a partition on the source cluster; None if it was not translated."""
        return next((each for each in self.partitions if each.source == partition), None)

    def with_status(self, *statuses: Status) -> Iterator[Translated]:
        """Yield the translated offsets that have one of these statuses, such as ``exact`` or ``ambiguous``."""
        return (each for each in self.partitions if each.place.status in statuses)
