"""What a plan starts from: each partition that a target group takes over, and the offset to start at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from migrate_groups.planning.change import Change, Origin
from migrate_groups.planning.survey import Survey
from migrate_groups.snapshots.row import Row


def wanted_rows(rows: Iterable[Row]) -> list[Change]:
    """Return the change that each snapshot row with a target group asks for, before anything is decided."""
    return [
        Change(
            group=row.group,
            source_group=row.handed_over_by,
            topic=row.topic,
            partition=row.partition,
            wanted=row.committed,
            origin=Origin.UNCOMMITTED if row.offset is None else Origin.COMMITTED,
            cluster_id=row.cluster_id,
            topic_id=row.topic_id,
        )
        for row in rows
        if row.group is not None
    ]


def absent(wanted: Sequence[Change], survey: Survey) -> list[Change]:
    """Return the partitions that ``wanted`` lacks, for topics that a source group hands over.

    A partition is returned once for each target group of its topic, without an offset.
    """
    present: dict[tuple[str, str], dict[int, Change]] = defaultdict(dict)
    for each in wanted:
        present[each.group, each.topic][each.partition] = each
    return [
        Change(
            group=group,
            source_group=like.source_group,
            topic=topic,
            partition=partition,
            origin=Origin.ABSENT,
            cluster_id=like.cluster_id,
            topic_id=like.topic_id,
        )
        for (group, topic), of_topic in present.items()
        if topic in survey.topics
        and (like := next((each for each in of_topic.values() if each.source_group is not None), None)) is not None
        for partition in survey.topics[topic].partitions
        if partition not in of_topic
    ]
