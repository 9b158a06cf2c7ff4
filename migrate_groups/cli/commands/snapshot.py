"""The command that saves the committed offsets of groups: snapshot."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import check_output, save_table, show_written, talk, warn_of_hidden_topics
from migrate_groups.cli.json_output import check_stdout_is_free
from migrate_groups.cli.progress import Reporter
from migrate_groups.cli.progress_display import shown_work
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.errors import UsageError
from migrate_groups.snapshots.times import moment_of, parse_moment
from migrate_groups.text import counted

if TYPE_CHECKING:
    from migrate_groups.migration.offsets_topic.at_moment import PastOffsets
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.snapshots.snapshot import SnapshotTable


def snapshot(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    output: options.Output,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="DIR",
            help="Read the offsets from the log of __consumer_offsets, with Spark, and ask no coordinator. DIR is the "
            "folder for the copied log; a later run adds what is new to it.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="With --log: the offsets at this time: RFC 3339, or milliseconds since 1970. Without it: the last.",
        ),
    ] = None,
    known_only: Annotated[
        bool,
        typer.Option(
            "--known-only",
            help="With --log: leave out partitions whose offset is not known then, and list them.",
        ),
    ] = False,
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

    With --log: their offsets at a moment of the past, or the last ones if their coordinator does not answer.

    Example: migrate-groups snapshot big-group -o before.parquet --bootstrap-server localhost:9092

    Example: migrate-groups snapshot big-group --log offsets-log --at 2026-11-20T02:14:00Z -o then.csv
    """
    wanted = options.all_groups(groups, group)
    moment = None if at is None else moment_of(parse_moment(at, None, SystemClock().now(), "--at"))
    _check_options(log, at=at, known_only=known_only, time_lag=time_lag)
    check_stdout_is_free(output, output_format)
    check_output(output, force=force)
    if log is not None:
        found = _from_log(connection, wanted, log, moment, known_only=known_only)
        save_table(found.snapshot, output, force=force)
        from migrate_groups.show import offset_files

        show_written(output_format, offset_files.snapshot_at(output, wanted, found))
        return
    with connection.open_reader() as reader:
        from migrate_groups.migration.reading.take import take_snapshot

        taken = take_snapshot(reader, wanted, SystemClock(), events=Reporter())
        if time_lag:
            taken = _with_time_lag(reader, taken)
        warn_of_hidden_topics(reader)
    save_table(taken, output, force=force)
    from migrate_groups.show import offset_files

    show_written(output_format, offset_files.snapshot(output, wanted, taken))


def _check_options(log: Path | None, *, at: str | None, known_only: bool, time_lag: bool) -> None:
    for name, given in (("--at", at is not None), ("--known-only", known_only)):
        if given and log is None:
            raise UsageError(f"{name} goes with --log")
    if time_lag and log is not None:
        raise UsageError("--time-lag does not go with --log: the log of commits has no log end offsets")


def _from_log(
    connection: Connection, groups: list[str], log: Path, at: datetime | None, *, known_only: bool
) -> PastOffsets:
    """Return the committed offsets at a moment, from the log of ``__consumer_offsets``. at: None for the last ones."""
    require_spark()
    from migrate_groups.migration.offsets_topic.at_moment import MomentRequest, snapshot_at

    asked = MomentRequest(groups, log, at, known_only)
    return snapshot_at(asked, connection.open_offsets_topic, spark_here, SystemClock(), Reporter())


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
