"""The command that computes the offsets at which a replay begins: rewind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import check_output, load_table, save_table, show_written, talk, warn_of_hidden_topics
from migrate_groups.cli.json_output import check_stdout_is_free
from migrate_groups.errors import UsageError
from migrate_groups.snapshots.rewind_to import (
    PastEnd,
    RewindTo,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from migrate_groups.snapshots.times import moment_before, parse_moment, parse_span, parse_zone, rfc_3339
from migrate_groups.text import counted, shell_command, some

if TYPE_CHECKING:
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.migration.rewind import Rewinding
    from migrate_groups.snapshots.selection import Selection
    from migrate_groups.snapshots.snapshot import SnapshotTable

_TARGETS = "--to-datetime, --by-duration, --to-earliest, --to-latest, --to-current, --shift-by and --to-offset"


def rewind(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A snapshot whose partitions to rewind, or - for stdin."),
    ] = None,
    *,
    output: options.Output,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="GROUP", help="In place of FILE: the partitions of this group, live or not."),
    ] = None,
    topic: options.TopicGlobs = None,
    partition: options.Partitions = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime",
            metavar="TIME",
            help="The first record at or after this time: RFC 3339, or milliseconds since 1970.",
        ),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option(
            "--by-duration",
            metavar="DURATION",
            help="The first record at or after this long ago: 90m, or ISO 8601's PT1H30M and P1D.",
        ),
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The log start offset.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="The log end offset.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="The committed offset: that in FILE, or that of --group now.")
    ] = False,
    shift_by: Annotated[
        int | None,
        typer.Option(
            "--shift-by",
            metavar="±N",
            help="The committed offset, as for --to-current, plus N; go back with a negative N.",
        ),
    ] = None,
    to_offset: Annotated[int | None, typer.Option("--to-offset", metavar="N", min=0, help="This offset.")] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone",
            metavar="ZONE",
            help="The time zone of a --to-datetime without a UTC offset, such as Australia/Sydney. Without it "
            "such a time is refused.",
        ),
    ] = None,
    past_end: Annotated[
        PastEnd | None,
        typer.Option(
            "--past-end",
            help="If a partition has no record at or after the time: start at its log end offset (end), leave it out "
            "(skip), or refuse (fail).",
            show_default="end",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse if an offset can't be exactly the one that was asked for. Without this, an offset outside "
            "the log becomes its start or its end.",
        ),
    ] = False,
    force: options.Force = False,
    output_format: options.Format = "table",
    connection: Connection,
) -> None:
    """Compute the offsets for a replay: a time, an offset, or the log start.

    The partitions are those of FILE, of --group, or of --topic. It writes a file and nothing to the cluster: pass the
    file to apply --to-group. The group may be live. To rewind the group itself, stop it, and pass the file to apply
    --to-group GROUP --on-existing overwrite.

    Example: migrate-groups rewind --group orders --by-duration 90m -o replay.csv
    """
    clock = SystemClock()
    zone = None if timezone is None else parse_zone(timezone)
    targets: dict[str, RewindTo] = {}
    if to_datetime is not None:
        targets["--to-datetime"] = ToTime(parse_moment(to_datetime, zone, clock.now(), "--to-datetime"))
    if by_duration is not None:
        span = parse_span(by_duration, "--by-duration")
        targets["--by-duration"] = ToTime(moment_before(clock.now(), span, "--by-duration"))
    if shift_by is not None:
        targets["--shift-by"] = ShiftBy(shift_by)
    if to_offset is not None:
        targets["--to-offset"] = ToOffset(to_offset)
    plain: list[tuple[str, bool, RewindTo]] = [
        ("--to-earliest", to_earliest, ToEarliest()),
        ("--to-latest", to_latest, ToLatest()),
        ("--to-current", to_current, ToCurrent()),
    ]
    targets |= {name: target for name, given, target in plain if given}
    target = _only(targets)
    _check_time_options(target, timezone=timezone, past_end=past_end)
    selection = _selection(topic, partition)
    _check_source(file, group, selection, target)
    check_stdout_is_free(output, output_format)
    check_output(output, force=force)
    table = None if file is None else load_table(file)
    _echo(target, zone)
    with connection.open_reader() as reader:
        from migrate_groups.migration.rewind import rewind as look_up
        from migrate_groups.show import offset_files

        rows = _rows(reader, table, group, selection, clock)
        result = look_up(reader, rows, target, clock, past_end=past_end or "end", strict=strict)
    time = rfc_3339(target.moment) if isinstance(target, ToTime) else None
    save_table(result.snapshot, output, force=force)
    show_written(output_format, offset_files.rewind(output, time, result))
    for line in _left_out(result, selection):
        talk(line)
    if str(output) != "-":
        talk(f"written to {output}; next: migrate-groups {shell_command('apply', [str(output)], '--to-group NAME')}")


def _only(targets: Mapping[str, RewindTo]) -> RewindTo:
    if len(targets) == 1:
        return next(iter(targets.values()))
    found = f"{' and '.join(targets)} contradict each other" if targets else "nothing says where to"
    raise UsageError(f"{found}; give one of {_TARGETS}")


def _check_time_options(target: RewindTo, *, timezone: str | None, past_end: str | None) -> None:
    for name, value in (("--timezone", timezone), ("--past-end", past_end)):
        if value is not None and not isinstance(target, ToTime):
            raise UsageError(f"{name} goes with --to-datetime or --by-duration")


def _check_source(file: Path | None, group: str | None, selection: Selection, target: RewindTo) -> None:
    """Raise `UsageError` if FILE, ``--group`` and ``--topic`` don't say clearly which partitions to rewind.

    ``--shift-by`` and ``--to-current`` need FILE or ``--group``, because they begin with committed offsets.
    """
    if file is not None and group is not None:
        raise UsageError("FILE and --group both say which partitions; give one of them")
    if group is not None:
        options.all_groups([group], None)
    if file is None and group is None:
        if not selection.topics:
            raise UsageError("nothing says which partitions: give FILE, --group or --topic")
        if isinstance(target, ShiftBy | ToCurrent):
            raise UsageError("--shift-by and --to-current begin with committed offsets: give FILE or --group")


def _selection(topic: list[str] | None, partition: list[str] | None) -> Selection:
    from migrate_groups.snapshots.selection import Selection, TopicPattern, parse_partitions

    return Selection(
        topics=tuple(TopicPattern(each) for each in topic or []),
        partitions=tuple(parse_partitions(each) for each in partition or []),
    )


def _rows(
    reader: GroupReader, table: SnapshotTable | None, group: str | None, selection: Selection, clock: SystemClock
) -> SnapshotTable:
    from migrate_groups.migration.reading.take import take_snapshot
    from migrate_groups.migration.rewind import rows_of_topics
    from migrate_groups.snapshots.selection import select

    if group is not None:
        table = take_snapshot(reader, [group], clock)
        warn_of_hidden_topics(reader)
    elif table is None:
        table = rows_of_topics(reader, selection.topics, clock)
        warn_of_hidden_topics(reader)
    return select(table, selection)


def _echo(target: RewindTo, zone: tzinfo | None) -> None:
    """Print the time of a `ToTime` on stderr, in UTC and, if it is given, in ``zone``. Print no other target."""
    if isinstance(target, ToTime):
        there = f" = {rfc_3339(target.moment, zone)} ({zone})" if zone else ""
        talk(f"from {rfc_3339(target.moment)}{there}")


def _left_out(result: Rewinding, selection: Selection) -> list[str]:
    if selection.partitions or not result.left_out:
        return []
    return [
        f"left out: {counted(len(result.left_out), 'partition')} of these topics: {some(result.left_out)}; "
        "the new group's auto.offset.reset decides there"
    ]
