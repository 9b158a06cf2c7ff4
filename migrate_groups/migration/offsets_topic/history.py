"""Show commits and lag of groups over time, from the log of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.clock import Clock
from migrate_groups.files.safe_write import new_folder
from migrate_groups.migration.events import Events
from migrate_groups.migration.offsets_topic.copied import OpenLog, copy_with_ends

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.history_job import History
    from migrate_groups.spark.session import OpenSpark

TABLE = "history.parquet"


class HistoryRequest(NamedTuple):
    """The input of `history`.

    groups: the consumer groups; None: all groups. log: the folder for the copied log of ``__consumer_offsets``. out: a
    new folder for the table ``history.parquet``. every: the time between two points of the history.
    """

    groups: Collection[str] | None
    log: Path
    out: Path
    every: timedelta


def history(asked: HistoryRequest, open_log: OpenLog, open_spark: OpenSpark, clock: Clock, events: Events) -> History:
    """Write the commits and the lag of groups over time to the folder ``asked.out``, and return a summary.

    If it fails, the folder is deleted again.

    Raises `Undetermined` if the log has no commit of these groups, or was recreated or truncated since the last copy;
    `UsageError` if there would be too many points; `InvalidInput` if a folder can't be used; `Refused` if another
    command copies to the folder ``asked.log``.
    """
    with new_folder(asked.out, events.said), open_log() as clients:
        copied = copy_with_ends(clients, asked.groups, asked.log, clock, events)
        with open_spark(copied.log.offsets) as spark, copied.past_log_ends(clients.reader, events) as ends:
            from migrate_groups.spark.offsets_topic.history_job import run_history

            return run_history(
                spark,
                copied.log.for_spark,
                ends,
                groups=asked.groups,
                every=asked.every,
                now=copied.taken_at,
                out=asked.out / TABLE,
            )
