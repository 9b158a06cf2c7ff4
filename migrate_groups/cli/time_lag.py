"""The option ``--time-lag`` of ``snapshot``, which adds the timestamp of each partition's oldest unread record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate_groups.cli.console import talk
from migrate_groups.cli.progress_display import shown_work
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.snapshots.snapshot import SnapshotTable


def with_time_lag(reader: GroupReader, taken: SnapshotTable) -> SnapshotTable:
    """Return the snapshot with the timestamp of each partition's oldest unread record.

    Warns on stderr if the principal lacks Read on a topic. A timestamp may then be that of a transaction marker.
    """
    from migrate_groups.migration.reading.time_lag import with_time_lag as read_time_lag

    with shown_work(f"reading the oldest unread record of {counted(len(taken), 'partition')}", lambda: None):
        found = read_time_lag(reader, taken)
    if found.remark:
        talk(f"warning: {found.remark}")
    return found.snapshot
