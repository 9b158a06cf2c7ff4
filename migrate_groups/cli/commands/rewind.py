"""The command that computes the offsets at which a replay begins: rewind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection, open_reader
from migrate_groups.cli.console import check_output, load_table, save_table, talk, warn_of_hidden_topics
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
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.migration.rewind import Rewinding
    from migrate_groups.snapshots.selection import Selection
    from migrate_groups.snapshots.snapshot import Snapshot

_TARGETS = "--to-datetime, --by-duration, --to-earliest, --to-latest, --to-current, --shift-by and --to-offset"


def rewind(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A snapshot, or - for stdin; or name --group, or --topic alone."),
    ] = None,
    *,
    output: options.Output,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    to_datetime: Annotated[
        str | None, typer.Option(help="The first record at or after this: RFC 3339, or milliseconds since 1970.")
    ] = None,
    by_duration: Annotated[str | None, typer.Option(help="So long before now: PT1H30M, P1D, 90m.")] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="The first record that is still there.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="The log end.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="The committed offset as it is.")] = False,
    shift_by: Annotated[int | None, typer.Option(metavar="±N", help="So many offsets on, or back.")] = None,
    to_offset: Annotated[int | None, typer.Option(metavar="N", min=0, help="This offset.")] = None,
    group: Annotated[str | None, typer.Option("--group", help="The partitions of this group, live or not.")] = None,
    topic: options.TopicGlobs = None,
    partition: Annotated[list[str] | None, typer.Option("--partition", help="7 or 3-5; may be repeated.")] = None,
    timezone: Annotated[str | None, typer.Option(help="What a time without an offset means: Australia/Sydney.")] = None,
    past_end: Annotated[
        PastEnd | None,
        typer.Option(help="What a partition without a record at or after the time gets.", show_default="end"),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse what can't be exactly as asked for.")] = False,
    force: options.Force = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Set a replay's offsets to a time, an offset, a span back.

    Nothing is written to the cluster: apply --to-group does that. The rows claim no source group, so a live group is
    neither asked nor touched.

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
    check_output(output, force=force)
    table = None if file is None else load_table(file)
    _echo(target, zone)
    with open_reader(Connection(bootstrap_server, command_config, properties, timeout)) as reader:
        from migrate_groups.migration.rewind import rewind as look_up
        from migrate_groups.show import replay

        rows = _rows(reader, table, group, selection, clock)
        result = look_up(reader, rows, target, clock, past_end=past_end or "end", strict=strict)
    talk(replay.decisions(result.decisions), *_left_out(result, selection))
    save_table(result.snapshot, output, force=force)
    if str(output) != "-":
        talk(f"written to {output}; next: migrate-groups apply {output} --to-group NAME")


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
    """Raise `UsageError` unless exactly one source names the partitions: FILE, --group or, without both, --topic.

    The targets --shift-by and --to-current need committed offsets, which --topic alone does not have.
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
    reader: GroupReader, table: Snapshot | None, group: str | None, selection: Selection, clock: SystemClock
) -> Snapshot:
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
    """Print the time to which a rewind by time goes, in UTC and in the time zone."""
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
