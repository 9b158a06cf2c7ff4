"""Set the target groups to which the offsets of a snapshot are to be written (``apply --to-group``)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.snapshots.snapshot import SnapshotTable, concatenate
from migrate_groups.text import is_unicode, named, some


def name_groups(snapshot: SnapshotTable, to_groups: Sequence[str], *, fan_out: bool, restore: bool) -> SnapshotTable:
    """Return the snapshot's rows with the target groups to which their offsets are to be written.

    - to_groups: the target groups. Each row is repeated for each target group. A row without a source group gets its
      previous group as the source group. If ``to_groups`` is empty, the rows are returned unchanged.
    - fan_out: allow several target groups, each of which then processes every record.
    - restore: allow writing a snapshot back to its own group.

    Raises `UsageError` or `InvalidInput` if the arguments contradict each other, if a row has no target group, or if a
    partition has several rows.
    """
    check_target_groups(to_groups, fan_out=fan_out)
    if not to_groups:
        return _as_named(snapshot.at_one_moment(), restore=restore)
    if restore:
        raise UsageError("--restore writes a snapshot back to its own group: drop --restore, or --to-group")
    table = snapshot.with_each_partition_once().table
    if back := {*to_groups} & {*_rows_under_original_group(table)["group"].to_pylist()}:
        raise UsageError(
            f"the file is a snapshot of {named('group', back)}: to write it back, pass --restore in place of --to-group"
        )
    source = pc.coalesce(table["source_group"], table["group"])
    return concatenate(
        snapshot.replace(group=pa.scalar(group, pa.string()), source_group=source) for group in dict.fromkeys(to_groups)
    )


def check_target_groups(to_groups: Sequence[str], *, fan_out: bool) -> None:
    """Raise `UsageError` if a name is empty or not UTF-8, or if ``to_groups`` has several names without ``fan_out``."""
    if "" in to_groups:
        raise UsageError("--to-group is empty; name a group")
    if not all(map(is_unicode, to_groups)):
        raise UsageError("--to-group is not UTF-8 text, as every group name in Kafka is: name the group in UTF-8")
    if len(to_groups) > 1 and not fan_out:
        raise UsageError(
            f"several target groups ({some(to_groups)}) would each process every record; pass --fan-out if you mean it"
        )


def _as_named(snapshot: SnapshotTable, *, restore: bool) -> SnapshotTable:
    table = snapshot.table
    if table["group"].null_count:
        raise UsageError("the offsets in the file have no group yet: name the target group with --to-group")
    as_taken = _rows_under_original_group(table)
    if as_taken.num_rows and not restore:
        groups = named("group", set(as_taken["group"].to_pylist()))
        raise InvalidInput(
            f"the file is a snapshot of {groups}: split it, name a new group with --to-group, or pass --restore to "
            "write it back"
        )
    return snapshot


def _rows_under_original_group(table: pa.Table) -> pa.Table:
    # Only a file of the command `snapshot` has the state of its group; the results of `rewind` and
    # files for kafka-consumer-groups --from-file don't.
    return table.filter(pc.and_(pc.is_null(table["source_group"]), pc.is_valid(table["group_state"])))
