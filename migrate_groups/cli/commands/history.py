"""The command that shows lag and commits over time, from the log of ``__consumer_offsets``: history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk
from migrate_groups.cli.log_with_ends import copy_with_ends, lag_over_time
from migrate_groups.cli.new_folder import new_folder
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.snapshots.times import parse_span

_TABLE, _PAGE = "history.parquet", "history.html"


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
        Path, typer.Option("--output", "-o", metavar="OUT", help="A new folder for history.parquet and history.html.")
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
    from migrate_groups.files.safe_write import write_whole
    from migrate_groups.show import history as shown

    with new_folder(output) as complete:
        with connection.open_offsets_topic() as opened:
            copied = copy_with_ends(opened, wanted, log)
        with spark_here(copied.log.offsets) as spark, connection.open_reader() as reader:
            found = lag_over_time(spark, reader, copied, groups=wanted, every=step, out=output / _TABLE)
        complete(_TABLE)
        write_whole(output / _PAGE, lambda file: file.write(shown.page(found).encode()))
    show_as(output_format, shown.result(found))
    talk(f"{_TABLE} and {_PAGE} written to {output}")
