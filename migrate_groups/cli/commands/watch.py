"""The command that watches a group consume: watch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import load_table, show_as, talk, warn_of_hidden_topics
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import named, some


def watch(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="A consumer group.")],
    *,
    until: Annotated[
        Path | None,
        typer.Option(
            "--until",
            metavar="FILE",
            help="A snapshot, or the file of rewind: watch until its log end offsets are reached.",
            show_default="the log end offsets of now",
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait", metavar="DURATION", help="Give up after this long, with exit code 3.", show_default="never"
        ),
    ] = None,
    events: options.Events = None,
    output_format: options.Format = "table",
    connection: Connection,
) -> None:
    """Watch a group until it has consumed its partitions to the end.

    It ends when every partition has reached the log end offset of FILE. Records that are produced later do not count.

    Example: migrate-groups watch replay --until replay.csv --wait 2h
    """
    from migrate_groups.cli.progress import shown_progress

    options.all_groups([group], None)
    seconds, clock = math.inf if wait is None else parse_duration(wait, "--wait"), SystemClock()
    from migrate_groups.migration.watch import goals

    noted = None if until is None else goals(load_table(until), group)
    with connection.open_reader() as reader:
        from migrate_groups.migration.reading.take import take_snapshot
        from migrate_groups.migration.watch import watch as follow

        wanted = noted
        if wanted is None:
            wanted = goals(take_snapshot(reader, [group], clock), group)
            warn_of_hidden_topics(reader)
        if wanted.unset:
            talk(f"not watched, without an offset to begin with: {some(wanted.unset)}")
        if without_id := {row.topic for row in wanted.rows if row.topic_id is None}:
            talk(f"no topic id of {named('topic', without_id)}: not known whether it was created again since")
        with shown_progress(group) as tell:
            done = follow(reader, group, wanted, clock, tell, timeout=seconds)
    from migrate_groups.show.short_results import watched

    show_as(output_format, watched(group, wanted, done))
