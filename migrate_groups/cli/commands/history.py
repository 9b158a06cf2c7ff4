"""The command that shows lag and commits over time, from the log of ``__consumer_offsets``: history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk, write_pages
from migrate_groups.cli.progress import Reporter
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.snapshots.times import parse_span

_PAGE = "history.html"


def history(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    log: Annotated[
        Path,
        typer.Option(
            "--log",
            metavar="DIR",
            help="The folder for the copied log. A later run with the same folder adds what is new to it.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A new folder for history.parquet and history.html.")
    ],
    every: Annotated[
        str, typer.Option("--every", metavar="DURATION", help="The time between two points of the history.")
    ] = "1h",
    output_format: options.TableFormat = "table",
    connection: Connection,
) -> None:
    """Show lag and commits of groups over time, from Kafka's own log of commits, with Spark.

    It copies the log of __consumer_offsets, and needs no earlier snapshot. Without GROUP it shows all groups. Kafka
    compacts this log: run it now and then with the same --log, and nothing more is lost. The times are UTC. It needs
    Java 17 or later.

    Example: migrate-groups history --log offsets-log -o history
    """
    require_spark()
    named = sorted({*(groups or []), *(group or [])})
    wanted, step = options.all_groups(named, None) if named else None, parse_span(every, "--every")
    from migrate_groups.migration.offsets_topic.history import TABLE, HistoryRequest
    from migrate_groups.migration.offsets_topic.history import history as measured
    from migrate_groups.show.history import page, result

    asked = HistoryRequest(wanted, log, output, step)
    found = measured(asked, connection.open_offsets_topic, spark_here, SystemClock(), Reporter())
    write_pages(output, TABLE, {_PAGE: page(found, log)})
    show_as(output_format, result(found, log))
    talk(f"{TABLE} and {_PAGE} written to {output}")
