"""The command that shows lag and commits over time, from the log of ``__consumer_offsets``: history."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show, talk
from migrate_groups.cli.documents import print_document
from migrate_groups.cli.landing import Landed, land_log, new_folder, save_log_ends
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.snapshots.times import parse_span

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.history_job import History

_TABLE, _PAGE = "history.parquet", "history.html"


class HistoryRequest(NamedTuple):
    """The input of `history`.

    groups: the consumer groups; empty: all groups. every: the time between two points of the history. log: the folder
    for the copied log of ``__consumer_offsets``. out: the new folder for the table and the page.
    """

    groups: list[str]
    every: timedelta
    log: Path
    out: Path


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
    output_format: options.Format = "table",
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
    asked = HistoryRequest(options.all_groups(named, None) if named else [], parse_span(every, "--every"), log, output)
    from migrate_groups.files.safe_write import write_whole
    from migrate_groups.show import history as shown

    with new_folder(asked.out):
        with connection.open_offsets_topic() as opened:
            landed = land_log(opened, asked.groups, asked.log)
        found = _run(connection, asked, landed)
        write_whole(asked.out / _PAGE, lambda file: file.write(shown.page(found).encode()))
    if output_format == "json":
        print_document(shown.document(found))
    else:
        show(shown.terminal(found))
    talk(f"{_TABLE} and {_PAGE} written to {asked.out}")


def _run(connection: Connection, asked: HistoryRequest, landed: Landed) -> History:
    """Start Spark, write the table of the history to ``asked.out``, and return the history."""
    with (
        tempfile.TemporaryDirectory(prefix="migrate-groups-") as scratch,
        spark_here(landed.landing.offsets) as spark,
    ):
        from migrate_groups.spark.offsets_topic.history_job import run_history

        def log_ends(partitions: Collection[tuple[str, int]], moments: Collection[datetime]) -> str:
            path = Path(scratch) / "log_ends.parquet"
            with connection.open_reader() as reader:
                save_log_ends(reader, partitions, moments, landed, path)
            return str(path)

        return run_history(
            spark,
            landed.files,
            log_ends,
            groups=asked.groups,
            every=asked.every,
            now=landed.taken_at,
            out=asked.out / _TABLE,
        )
