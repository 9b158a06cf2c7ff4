"""The way back after the target groups have run: move the source group forward to their committed offsets."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.record import refuse_by_record
from migrate_groups.migration.ways_back.common import last_hand_over, options_of_write
from migrate_groups.planning.checks.permission import of_hand_over
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Step, Verb
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import named, some


def hand_back(reader: GroupReader, receipt: Receipt, clock: Clock) -> tuple[SnapshotTable, WriteOptions]:
    """Return the snapshot and the options of a hand-back: the target groups hand over to their source group.

    The snapshot has the target groups' current committed offsets, with the source group as the group to write to. The
    options let the write move the source group's offsets forward only.

    Raises `Refused` if the receipt forbids a hand-back or has a topic without a single source group; if two target
    groups share a partition; if a target group no longer has its committed offset for a partition; or if there is
    nothing to hand back. Raises `GroupNotFound`, `NotAuthorized`, and the errors of `GroupReader`.
    """
    refuse_by_record(receipt, Verb.HAND_BACK)
    lanes = {order: lane for order, lane in receipt.lanes.items() if lane.state is not State.NEW}
    # The source groups by topic, not by partition, because a target group also consumes partitions that were added
    # later or had no commit at the hand-over.
    origin = {(group, topic): lane.sources for (group, topic, _), lane in lanes.items()}
    if not origin:
        raise Refused("nothing to hand back: this run wrote nothing")
    if not any(origin.values()):
        raise Refused(
            f"nothing to hand back: no old group handed over to {some({group for group, _ in origin})}; to undo the "
            "write, use rollback before the group commits; after it, delete-group, or rewind and apply"
        )
    if unclear := {topic for (_, topic), sources in origin.items() if len(sources) != 1}:
        raise Refused(
            f"no single source group for {named('topic', unclear)} in the receipt, so no group can take this back: "
            "set the offsets with snapshot and apply"
        )
    groups = sorted({group for group, _ in origin})
    permissions_unless_hidden(
        reader, of_hand_over(groups, set().union(*origin.values()), {topic for _, topic in origin})
    )
    skipped = {order for order, lane in receipt.lanes.items() if lane.takes(Verb.HAND_BACK, Step.SKIP, Step.NO_OP)}
    rows = [
        structs.replace(row, group=next(iter(origin[row.group or "", row.topic])), source_group=row.group)
        for row in take_snapshot(reader, groups, clock).rows()
        if (row.group or "", row.topic) in origin and (row.group or "", row.topic, row.partition) not in skipped
    ]
    shared = {(row.group, row.topic_partition) for row in rows}
    if len(shared) < len(rows):
        raise Refused(
            "several target groups consume the same partition (fan_out), so they can't hand back to one group: "
            "choose one target group, and write its offsets back with snapshot and apply"
        )
    if all(row.offset is None for row in rows):
        raise Refused(f"nothing to hand back: {some(groups)} committed nothing on the topics that were handed over")
    there = {(row.source_group or "", row.topic, row.partition) for row in rows if row.offset is not None}
    lost = [
        f"{group} {topic}-{number}"
        for (group, topic, number), lane in lanes.items()
        if (group, topic, number) not in there | skipped and lane.entry.change.after
    ]
    if lost:
        raise Refused(
            f"no committed offset any more for {some(lost)}, so it is not known how far the group read: set the right "
            "offset with rewind and apply, and run hand-back again; nothing was written"
        )
    options = replace(last_hand_over(receipt).options, on_existing="forward", uncommitted="leave", restore=False)
    return SnapshotTable.of_rows(rows), options_of_write(options, {row.group or "" for row in rows})
