"""The offsets of a source group on another cluster, translated to the copies of its topics that a mirror writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from migrate_groups.mirrors.place import Place, Status
from migrate_groups.model.partitions import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """An offset of a partition on the source cluster, and its place: the corresponding offset in the mirror's copy.

    source: the partition on the source cluster. committed: the source group's committed offset; None if it has none.
    offset: the offset to translate: ``committed``, unless an option replaces it. target: the copy of the partition on
    the target cluster; None if there is none. place: the place of ``offset`` in the copy, and how exactly it is known.
    mirrored_to: the last stable offset of the copy when it was read; None if it was not read.
    """

    source: TopicPartition
    offset: int
    committed: int | None
    target: TopicPartition | None
    place: Place
    mirrored_to: int | None = None

    @property
    def stopped_at(self) -> int:
        """The source group's committed offset; if it has none, the offset that was translated in its place."""
        return self.offset if self.committed is None else self.committed

    def start(self, most_reread: int) -> int | None:
        """Return the offset in the mirror's copy at which a target group may start; None if no offset may be written.

        An offset may be written if it is known exactly to be the one at which the group must continue; otherwise, if a
        group that starts there reads at most ``most_reread`` records again.
        """
        place = self.place
        if place.status is Status.EXACT or (place.offset is not None and 0 < place.reread <= most_reread):
            return place.offset
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The offsets of a source group on another cluster, and the corresponding offsets in the mirror's copies.

    cluster_id: the id of the source cluster. group: the source group there. partitions: sorted by source partition.
    """

    cluster_id: str
    group: str
    partitions: tuple[Translated, ...]

    @property
    def topics(self) -> tuple[tuple[str, str], ...]:
        """The name of each topic on the source cluster, with the name of its copy on the target cluster; sorted."""
        return tuple(sorted({(each.source.topic, each.target.topic) for each in self.partitions if each.target}))

    @property
    def source_topics(self) -> frozenset[str]:
        """The names that the translated topics have on the source cluster."""
        return frozenset(each.source.topic for each in self.partitions)

    def of(self, partition: TopicPartition) -> Translated | None:
        """Return the translated offset of a partition of the source cluster; None if none was translated."""
        return next((each for each in self.partitions if each.source == partition), None)

    def with_status(self, *statuses: Status) -> Iterator[Translated]:
        """Yield the partitions whose offset in the mirror's copy has one of these statuses, for instance ``exact``."""
        return (each for each in self.partitions if each.place.status in statuses)
