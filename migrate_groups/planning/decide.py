"""Decide, for each partition that a target group takes over, at which committed offset the group is to start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import structs

from migrate_groups.model.partitions import CommittedOffset, LogRange
from migrate_groups.model.topics import is_same_topic
from migrate_groups.planning.change import Change, Origin, sorted_changes
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.survey import Survey
from migrate_groups.snapshots.row import Row


def wanted_rows(rows: Iterable[Row]) -> list[Change]:
    """Return the change that each snapshot row with a target group asks for, before anything is decided."""
    return [
        Change(
            group=row.group,
            source_group=row.handed_over_by,
            is_share=row.group_type == "share",
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


def decide(wanted: Sequence[Change], survey: Survey, options: WriteOptions) -> list[Change]:
    """Return the changes with the committed offset that each target group gets, and with the one that it has.

    Partitions that ``wanted`` lacks are included if a source group hands over their topic. ``after`` is None where
    there is no offset to write.
    """
    decided = []
    for each in (*wanted, *_absent(wanted, survey)):
        after, raised_from = _after(each, survey, options)
        before, given_up = survey.committed[each.group].get(each.topic_partition), None
        if options.on_existing == "forward" and before and after and before.offset > after.offset:
            after, given_up = before, after
        # One copy of each change: there may be ten thousands, and the consumers are stopped meanwhile.
        decided.append(structs.replace(each, before=before, after=after, raised_from=raised_from, given_up=given_up))
    return decided


def starts(wanted: Sequence[Change], survey: Survey, options: WriteOptions) -> list[Change]:
    """Return the changes with the offset at which each target group starts, by the logs of the source group's cluster.

    As in `decide`, there may be more than the wanted ones.
    """
    found = ((each, _after(each, survey, options)) for each in (*wanted, *_absent(wanted, survey)))
    return [structs.replace(each, after=after, raised_from=raised_from) for each, (after, raised_from) in found]


def with_an_offset(decided: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes of a plan, sorted: those with an offset, and those whose offset is not mirrored yet."""
    return sorted_changes(each for each in decided if each.after is not None or each.origin is Origin.NOT_MIRRORED)


def _absent(wanted: Sequence[Change], survey: Survey) -> list[Change]:
    """Return the partitions that ``wanted`` lacks, for topics that a source group hands over.

    A partition is returned once for each target group of its topic, without an offset.
    """
    present: dict[tuple[str, str], dict[int, Change]] = defaultdict(dict)
    for each in wanted:
        present[each.group, each.topic][each.partition] = each
    return [
        structs.replace(like, partition=partition, origin=Origin.ABSENT, wanted=None)
        for (_, topic), of_topic in present.items()
        if topic in survey.topics
        and (like := next((each for each in of_topic.values() if each.source_group is not None), None)) is not None
        for partition in survey.topics[topic].partitions
        if partition not in of_topic
    ]


def _after(wanted: Change, survey: Survey, options: WriteOptions) -> tuple[CommittedOffset | None, int | None]:
    """Return the committed offset that a target group is to get, and the lower one that the log start offset replaces.

    Both may be None.
    """
    bounds = survey.bounds.get(wanted.topic_partition)
    offset = _start(wanted, bounds, options)
    if offset is None:
        return None, None
    committed = wanted.committed
    metadata = committed.metadata if committed and not wanted.is_share else ""
    if bounds is not None and offset < bounds.start and options.on_out_of_range == "earliest":
        return CommittedOffset(offset=bounds.start, metadata=metadata), offset
    # A leader epoch of another log may be above the current one, and would then stop a Java consumer
    # (docs/kafka-behaviour.md#logs).
    epoch = committed.leader_epoch if committed and not wanted.is_share and _is_same_log(wanted, survey) else None
    return CommittedOffset(offset=offset, leader_epoch=epoch, metadata=metadata), None


def _start(wanted: Change, bounds: LogRange | None, options: WriteOptions) -> int | None:
    """Return the offset at which a target group is to start; None if nothing is to be written for the partition.

    The offset may lie outside the log. bounds: None if the partition does not exist or has no leader.
    """
    if wanted.start is not None:
        return wanted.start
    if options.on_uncommitted == "earliest" and wanted.origin is not Origin.NOT_MIRRORED:
        return None if bounds is None else bounds.start
    if options.on_uncommitted == "latest" and wanted.origin is Origin.PROVEN_END and wanted.wanted is not None:
        return wanted.wanted.offset
    return None


def _is_same_log(wanted: Change, survey: Survey) -> bool:
    """Return whether the offset is known to be of this cluster, and of a topic with the same topic id as now."""
    topic = survey.topics.get(wanted.topic)
    here = wanted.cluster_id == survey.cluster_id
    return here and topic is not None and is_same_topic(wanted.topic_id, topic.topic_id) is True
