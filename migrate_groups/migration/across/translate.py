"""Translate offsets of a source group to offsets in a mirror's copies on another cluster. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from migrate_groups.migration.across.mirror import Mirror
from migrate_groups.migration.across.places import MirroredPartition, copies, find_places
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.translation import Translated, Translation


def translate(
    mirror: Mirror,
    group: str,
    starts: Mapping[TopicPartition, tuple[int, int | None]],
    trusted: Collection[str] = (),
) -> Translation:
    """Return, for each offset, the offset at which a group must continue in the mirror's copy, and how exact it is.

    group: the source group. starts: by source partition, the offset to translate, and the group's committed offset.
    trusted: source topics whose copies the user trusts where no record is left to compare.

    Raises `InvalidInput` if the copy of a topic is not clear; `NotAuthorized` and `ClusterUnavailable`.
    """
    copy_of = copies(starts.keys(), mirror.target.groups.describe_topics(None), mirror.names)
    wanted = {
        partition: MirroredPartition(partition, start, copy_of.get(partition))
        for partition, (start, _) in starts.items()
    }
    found = find_places(mirror, wanted.values(), trusted)
    return Translation(
        cluster_id=mirror.source.groups.cluster_id(),
        group=group,
        partitions=tuple(
            Translated(
                source=partition,
                offset=starts[partition][0],
                committed=starts[partition][1],
                target=each.copy,
                place=found[each].place,
                mirrored_to=found[each].mirrored_to,
            )
            for partition, each in sorted(wanted.items())
        ),
    )
