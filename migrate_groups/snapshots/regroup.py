"""Name the groups that a snapshot's offsets are written to (``apply --to-group``)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.snapshots.snapshot import Snapshot, concatenate
from migrate_groups.text import is_unicode, some


def name_groups(snapshot: Snapshot, to_groups: Sequence[str], *, fan_out: bool, restore: bool) -> Snapshot:
    """Return the snapshot's rows, each with the target group to which its offset is to be written.

    With ``to_groups``, all rows are returned once for each of these target groups. The source group of a row is then
    the one that it had, or else its former group; a row that had neither has no source group.

    Raises `UsageError` if rows have no group and ``to_groups`` is empty, if a name can't be a group's, or if there are
    several without ``fan_out``; `InvalidInput` if the rows are as `snapshot` took them from a group, and neither
    ``to_groups`` nor ``restore`` is given, or if they are of several moments.
    """
    snapshot.at_one_moment()
    if "" in to_groups:
        raise UsageError("--to-group is empty; name a group")
    if not all(map(is_unicode, to_groups)):
        raise UsageError("--to-group is no UTF-8 text; Kafka has no such name")
    if len(to_groups) > 1 and not fan_out:
        raise UsageError(
            f"several target groups ({some(to_groups)}) would each process every record; pass --fan-out if you mean it"
        )
    if not to_groups:
        return _as_named(snapshot, restore=restore)
    table = snapshot.table
    source = pc.coalesce(table["source_group"], table["group"])
    named = concatenate(
        snapshot.replace(group=pa.scalar(group, pa.string()), source_group=source) for group in to_groups
    )
    return named.at_one_moment()


def _as_named(snapshot: Snapshot, *, restore: bool) -> Snapshot:
    table = snapshot.table
    if table["group"].null_count:
        raise UsageError("the file's offsets belong to no group yet; name the group with --to-group")
    # Only a file of the command `snapshot` has the state of its group; the results of `rewind` and
    # files for kafka-consumer-groups --from-file don't.
    own = table.filter(pc.and_(pc.is_null(table["source_group"]), pc.is_valid(table["group_state"])))
    if own.num_rows and not restore:
        groups = some(sorted(set(own["group"].to_pylist())))
        raise InvalidInput(
            f"the file is the snapshot of group {groups} itself; split it, name a new group with --to-group, "
            "or write it back to the same group with --restore"
        )
    return snapshot
