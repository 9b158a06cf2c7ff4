"""Compare the committed offsets of groups on two clusters between which a mirror copies topics. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.migration.across.translate import copies, find_positions
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.hints import similar_groups_named
from migrate_groups.migration.reading.requests import describe_groups, existing, read_all_committed
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.topics import topic_ids
from migrate_groups.planning.translation import PENDING, KeptOffsets, TranslatedOffset, Translation
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import named


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of `compare`: the partitions of the groups on both clusters.

    - source_cluster, target_cluster: the cluster ids.
    - taken_at: when the committed offsets on the target were read.
    - groups: by group, each partition with a committed offset on the source, in order.
    - topic_ids: the ids of the topics on the target cluster, by topic name.
    """

    source_cluster: str
    target_cluster: str
    taken_at: datetime
    groups: Mapping[str, Sequence[TranslatedOffset]]
    topic_ids: Mapping[str, str]

    @property
    def partitions(self) -> Sequence[tuple[str, TranslatedOffset]]:
        """The group and the translated offset of each partition."""
        return [(group, each) for group, offsets in self.groups.items() for each in offsets]

    @property
    def off(self) -> int:
        """The number of partitions in which a group would skip or repeat records on the target, or has no offset there.

        A partition is not counted if the translated offset is not known exactly.
        """
        return sum(each.is_off for _, each in self.partitions)

    @property
    def unknown(self) -> int:
        """The number of partitions of which the translated offset is not known exactly."""
        return sum(not each.position.is_known for _, each in self.partitions)

    @property
    def kept(self) -> KeptOffsets:
        """The translated offsets, to be kept in case the source cluster is lost."""
        copied = {each.copy.topic for _, each in self.partitions if each.copy}
        return KeptOffsets(
            cluster_id=self.target_cluster,
            topic_ids={topic: of for topic, of in self.topic_ids.items() if topic in copied},
            translations=tuple(
                Translation(
                    cluster_id=self.source_cluster, group=group, partitions=tuple(of), compared_at=self.taken_at
                )
                for group, of in self.groups.items()
            ),
        )

    def rows(self, most_reread: int) -> SnapshotTable:
        """Return a snapshot with the offsets at which the groups must continue on the target cluster.

        most_reread: an offset that is not known exactly is included if the group would read at most this many records
        again.
        """
        return SnapshotTable.of_rows(
            Row.knowing(
                cluster_id=self.target_cluster,
                taken_at=self.taken_at,
                group=group,
                topic=copy.topic,
                topic_id=self.topic_ids.get(copy.topic),
                partition=copy.partition,
                offset=start,
            )
            for group, each in self.partitions
            if (copy := each.copy) is not None and (start := each.position.start(most_reread)) is not None
        )


def compare(mirror: Mirror, groups: Sequence[str], clock: Clock, trusted: Collection[str] = ()) -> Comparison:
    """Find the offset at which each group must continue on the target cluster, for each committed offset.

    trusted: source topics whose copies the user trusts where no record is left to compare.

    Raises `GroupNotFound`; `Refused` if a group has no committed offset on the source; `InvalidInput` if both clusters
    are the same, or if a topic has several possible copies.
    """
    mirror.check()
    source, target = mirror.source, mirror.target
    committed = _committed(source.groups, groups)
    there = read_all_committed(target.groups, groups)
    topics = target.groups.describe_topics(None)
    copy_of = copies({partition for each in committed.values() for partition in each}, topics, mirror.renames)
    offsets = {
        group: [
            TranslatedOffset(
                source=partition,
                offset=PENDING if offset is None else offset.offset,
                committed=_number(offset),
                copy=copy,
                there=_number(there[group].get(copy) if copy else None),
            )
            for partition, offset in sorted(committed[group].items())
            for copy in [copy_of.get(partition)]
        ]
        for group in groups
    }
    taken_at = clock.now()
    found = find_positions(mirror, dict.fromkeys(each for of in offsets.values() for each in of), trusted)
    return Comparison(
        source_cluster=source.groups.cluster_id(),
        target_cluster=target.groups.cluster_id(),
        taken_at=taken_at,
        groups={group: [found[each] for each in of] for group, of in offsets.items()},
        topic_ids=topic_ids(topics),
    )


def _committed(
    source: GroupReader, groups: Sequence[str]
) -> Mapping[str, Mapping[TopicPartition, CommittedOffset | None]]:
    committed = read_all_committed(source, groups)
    if missing := [group for group in groups if not committed[group]]:
        with similar_groups_named(source):
            for description in describe_groups(source, missing).values():
                existing(description)
        seen = f"no committed offset on the source, on a topic that {source.principal} may describe"
        raise Refused(f"{named('group', missing)}: {seen}: leave it out")
    return committed


def _number(committed: CommittedOffset | None) -> int | None:
    return None if committed is None else committed.offset
