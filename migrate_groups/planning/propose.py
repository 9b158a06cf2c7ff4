"""From a snapshot and a survey to the changes of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import structs

from migrate_groups.model.partitions import CommittedOffset, LogBounds
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Change, sorted_changes
from migrate_groups.planning.survey import Survey
from migrate_groups.snapshots.snapshot import Row


def propose(rows: Sequence[Row], survey: Survey, options: WriteOptions) -> tuple[Change, ...]:
    """Return what would be written for these rows, each of which names its group.

    Partitions without a commit get what ``options.uncommitted`` says; with ``on_existing`` ``forward`` an offset that
    would move a target back is left as it is.
    """
    return sorted_changes(_changes([*rows, *absent_partitions(rows, survey)], survey, options))


def absent_partitions(rows: Sequence[Row], survey: Survey) -> list[Row]:
    """Return rows without a commit for the partitions of the moved topics that the rows do not hold."""
    present: dict[tuple[str | None, str], dict[int, Row]] = defaultdict(dict)
    for row in rows:
        present[row.group, row.topic][row.partition] = row
    return [
        structs.replace(like, partition=partition, offset=None, leader_epoch=None, metadata="", log_end_offset=None)
        for (_, topic), of_topic in present.items()
        if topic in survey.topics and (like := next(iter(of_topic.values()))).source_group is not None
        for partition in survey.topics[topic].partitions
        if partition not in of_topic
    ]


def end_while_a_member_was_seen(row: Row) -> int | None:
    """Return the log end in a row that was read while its group had members, None otherwise.

    A log end that is read after the last member left is too late: what was produced in between would be skipped.
    """
    return row.log_end_offset if row.group_state not in (None, "Empty", "Dead") else None


def _changes(rows: Sequence[Row], survey: Survey, options: WriteOptions) -> Iterator[Change]:
    for row in rows:
        after = wanted(row, survey, options)
        if row.group is None or after is None:
            continue
        before = survey.committed[row.group].get(row.topic_partition)
        if options.on_existing == "forward" and before is not None and before.offset > after.offset:
            after = before
        yield Change(
            source_group=row.source_group,
            group=row.group,
            topic=row.topic,
            partition=row.partition,
            before=before,
            after=after,
            source_committed=row.committed if row.source_group is not None else None,
        )


def wanted(row: Row, survey: Survey, options: WriteOptions) -> CommittedOffset | None:
    """Return what a row's target shall have committed, whatever it has now; None: nothing is written."""
    bounds = survey.bounds.get(row.topic_partition)
    offset = start_offset(row, bounds, options)
    if offset is None:
        return None
    if options.out_of_range == "start" and bounds is not None and offset < bounds.start:
        return CommittedOffset(offset=bounds.start, metadata=row.metadata)
    epoch = row.leader_epoch if row.offset is not None and _same_log(row, survey) else None
    return CommittedOffset(offset=offset, leader_epoch=epoch, metadata=row.metadata)


def start_offset(row: Row, bounds: LogBounds | None, options: WriteOptions) -> int | None:
    """Return where a row's target shall start, before it is looked whether the log has that offset yet."""
    if row.offset is not None:
        return row.offset
    if options.uncommitted == "start":
        return None if bounds is None else bounds.start
    return end_while_a_member_was_seen(row) if options.uncommitted == "end" else None


def _same_log(row: Row, survey: Survey) -> bool:
    """Whether a leader epoch means the same: one above the current one stops a Java consumer (measured)."""
    topic = survey.topics.get(row.topic)
    return row.cluster_id == survey.cluster_id and topic is not None and topic.topic_id == row.topic_id
