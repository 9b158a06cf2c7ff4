"""The command that saves the committed offsets of groups: snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import check_output, save_table, show_written, talk, warn_of_hidden_topics
from migrate_groups.cli.json_output import check_stdout_is_free
from migrate_groups.cli.progress_display import shown_work
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.snapshots.snapshot import SnapshotTable


def snapshot(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    output: options.Output,
    time_lag: Annotated[
        bool,
        typer.Option(
            "--time-lag",
            help="Add the column oldest_unconsumed_at, the time of each partition's oldest unread record, from which "
            "reconcile computes lag as time.",
        ),
    ] = False,
    force: options.Force = False,
    output_format: options.Format = "table",
    connection: Connection,
) -> None:
    """Save the committed offsets of groups to a file. The groups may be live.

    Example: migrate-groups snapshot big-group -o before.parquet --bootstrap-server localhost:9092
    """
    wanted = options.all_groups(groups, group)
    check_stdout_is_free(output, output_format)
    check_output(output, force=force)
    with connection.open_reader() as reader:
        from migrate_groups.migration.reading.take import take_snapshot

        taken = take_snapshot(reader, wanted, SystemClock(), working=shown_work)
        if time_lag:
            taken = _with_time_lag(reader, taken)
        warn_of_hidden_topics(reader)
    save_table(taken, output, force=force)
    from migrate_groups.show import offset_files

    show_written(output_format, offset_files.snapshot(output, wanted, taken))


def _with_time_lag(reader: GroupReader, taken: SnapshotTable) -> SnapshotTable:
    """Return the snapshot with the timestamp of each partition's oldest unread record.

    Warns on stderr if the principal lacks Read on a topic. A timestamp may then be that of a transaction marker.
    """
    from migrate_groups.migration.reading.time_lag import with_time_lag

    with shown_work(f"reading the oldest unread record of {counted(len(taken), 'partition')}", lambda: None):
        found = with_time_lag(reader, taken)
    if found.remark:
        talk(f"warning: {found.remark}")
    return found.snapshot
