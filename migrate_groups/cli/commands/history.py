"""The history of groups from the log of the offsets topic, lag over time and clients: audit --history."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli.connect import Connection, open_offsets_topic, open_reader
from migrate_groups.cli.console import show, talk
from migrate_groups.cli.progress import bar
from migrate_groups.cli.spark_here import spark_here
from migrate_groups.errors import InvalidInput, Undetermined
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from migrate_groups.migration.reading.landing import Landing
    from migrate_groups.spark.offsets_topic.history_job import History

_TABLE, _PAGE = "history.parquet", "history.html"


class HistoryRequest(NamedTuple):
    """The request for a history of lag and commits.

    groups: the consumer groups; empty: all. every: the time between two points of the history. log: the folder with the
    copied log of ``__consumer_offsets``. out: the new folder for the table and the page.
    """

    groups: list[str]
    every: timedelta
    log: Path
    out: Path


def write_history(connection: Connection, asked: HistoryRequest, output_format: Literal["table", "json"]) -> None:
    """Copy the log of ``__consumer_offsets`` up to now, write table and page to a new folder, and show the groups."""
    from migrate_groups.files.safe_write import write_whole
    from migrate_groups.show import history as shown

    with _new_folder(asked.out):
        cluster_id, landed = _land(connection, asked)
        found = _run(connection, asked, cluster_id, landed, SystemClock().now())
        write_whole(asked.out / _PAGE, lambda file: file.write(shown.page(found).encode()))
    if output_format == "json":
        sys.stdout.write(json.dumps(shown.document(found), indent=1) + "\n")
    else:
        show(shown.terminal(found))
    talk(f"{_TABLE} and {_PAGE} written to {asked.out}")


@contextmanager
def _new_folder(out: Path) -> Iterator[None]:
    """Make a folder, and delete it again if the block fails. Raises `InvalidInput` if it can't be made."""
    try:
        out.mkdir()
    except OSError as error:
        raise InvalidInput(f"{out} can't be a new folder: {error.strerror or error}") from error
    try:
        yield
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


def _land(connection: Connection, asked: HistoryRequest) -> tuple[str, Landing]:
    from migrate_groups.files.runs.landed_log import LandedLog
    from migrate_groups.migration.reading.landing import land
    from migrate_groups.model.offsets_topic import log_partition
    from migrate_groups.model.partitions import TopicPartition

    with open_offsets_topic(connection) as (reader, topic):
        described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if described is None:
            raise Undetermined(f"{OFFSETS_TOPIC} does not exist: no group has committed here yet")
        count = len(described.partitions)
        wanted = {log_partition(group, count) for group in asked.groups} or {*described.partitions}
        bounds = reader.log_ranges([TopicPartition(OFFSETS_TOPIC, number) for number in wanted])
        cluster_id = reader.cluster_id()
        log = LandedLog.kept(asked.log, cluster_id)
        log = log.with_more({partition.partition: ends.start for partition, ends in bounds.items()})
        with bar(f"reading {OFFSETS_TOPIC}") as progress:
            return cluster_id, land(reader, topic, log, wanted, progress)


def _run(connection: Connection, asked: HistoryRequest, cluster_id: str, landed: Landing, now: datetime) -> History:
    with (
        tempfile.TemporaryDirectory(prefix="migrate-groups-") as scratch,
        spark_here(landed.offsets) as spark,
    ):
        from migrate_groups.spark.offsets_topic.history_job import LandedFiles, run_history

        def log_ends(partitions: Collection[tuple[str, int]], moments: Collection[datetime]) -> str:
            path = Path(scratch) / "log_ends.parquet"
            _save_log_ends(connection, partitions, moments, path)
            return str(path)

        return run_history(
            spark,
            LandedFiles(str(landed.log.folder), landed.ranges, cluster_id),
            log_ends,
            groups=asked.groups,
            every=asked.every,
            now=now,
            out=asked.out / _TABLE,
        )


def _save_log_ends(
    connection: Connection, partitions: Collection[tuple[str, int]], moments: Collection[datetime], path: Path
) -> None:
    from migrate_groups.files.runs import log_ends_parquet
    from migrate_groups.migration.reading.log_ends import log_ends
    from migrate_groups.model.partitions import TopicPartition

    with open_reader(connection) as reader, bar("reading log end offsets") as progress:
        asked = [TopicPartition(*partition) for partition in partitions]
        log_ends_parquet.save(log_ends(reader, asked, [*moments], progress), path)
