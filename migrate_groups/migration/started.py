"""The same command again once the new groups have started: nothing is handed over again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from migrate_groups.cluster.ports import GroupReader, TopicPartition
from migrate_groups.migration.guard import look_at_watched
from migrate_groups.offsets.snapshot import Row
from migrate_groups.plan.receipt import Deed, Receipt
from migrate_groups.plan.run_states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A hand-over that is whole, and whose new groups have started since.

    groups: those new groups. moved: what the source groups did since they stopped; those records are processed twice.
    """

    groups: tuple[str, ...]
    moved: tuple[str, ...]


def started_since(reader: GroupReader, receipt: Receipt) -> Started | None:
    """Return which new groups have started since a run handed over to them; None where none has, or it is open.

    A group has started that has members, or has committed behind what it was handed.

    Offsets that are simply set, as for a replay, have no source group, and are not looked at. Raises as `GroupReader`.
    """
    deed = receipt.hand_over
    if deed is None or any(lane.state is State.WRITING for lane in receipt.lanes.values()):
        return None
    groups = tuple(group for group in sorted(_targets(deed)) if _has_started(reader, deed, group))
    if not groups:
        return None
    moved = look_at_watched(reader, deed).moved
    return Started(groups=groups, moved=moved)


def same_hand_over(receipt: Receipt, rows: Iterable[Row]) -> bool:
    """Return whether these rows hand over what the run has handed over already, offset by offset."""
    deed = receipt.hand_over
    known = {entry.change.order: entry.change.source_committed for entry in deed.entries} if deed else {}
    return all(
        row.source_group is not None
        and (committed := known.get((row.group or "", row.topic, row.partition))) is not None
        and committed.offset == row.offset
        for row in rows
        if row.offset is not None
    )


def _targets(deed: Deed) -> set[str]:
    return {entry.change.group for entry in deed.entries if entry.change.source_group is not None}


def _has_started(reader: GroupReader, deed: Deed, group: str) -> bool:
    if reader.describe_group(group).members:
        return True
    written = {entry.change.topic_partition: entry for entry in deed.entries if entry.change.group == group}
    now = reader.committed(group, list[TopicPartition](written))
    return any(
        (committed := now[partition]) is not None
        and entry.change.after is not None
        and committed.offset > entry.change.after.offset
        and committed not in (entry.change.before, *entry.written)
        for partition, entry in written.items()
    )
