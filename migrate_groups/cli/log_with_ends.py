"""Copy the log of ``__consumer_offsets``, with the log ends of all topics, and compute lag over time with Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli.console import talk
from migrate_groups.cli.progress import bar
from migrate_groups.errors import Undetermined
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.text import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from migrate_groups.files.runs.copied_log import CopiedLog
    from migrate_groups.migration.log_ports import OffsetsTopicReader
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.model.partitions import TopicPartition
    from migrate_groups.spark.offsets_topic.history_job import History
    from migrate_groups.spark.offsets_topic.offsets_log import CopiedFiles


class LogWithEnds(NamedTuple):
    """The copied log of ``__consumer_offsets``, and the log end offsets of all topics right after the copy.

    taken_at: the time at which the log end offsets were read.
    """

    log: CopiedLog
    taken_at: datetime
    log_ends: Mapping[TopicPartition, int]

    @property
    def for_spark(self) -> CopiedFiles:
        """The copied log as input for Spark jobs."""
        from migrate_groups.spark.offsets_topic.offsets_log import CopiedFiles

        return CopiedFiles(str(self.log.folder), self.log.ranges, self.log.cluster_id)


def copy_with_ends(
    opened: tuple[GroupReader, OffsetsTopicReader], groups: Collection[str] | None, folder: Path
) -> LogWithEnds:
    """Copy the log of ``__consumer_offsets`` into a folder, and read the log end offsets of all topics.

    groups: copy only the partitions that hold these groups; None: all partitions.

    Raises `Undetermined` if ``__consumer_offsets`` does not exist, or was recreated or truncated since the last copy.
    Raises `ClusterUnavailable` if one of its partitions has no leader; `Refused` if another command copies to the
    folder; `InvalidInput` if the folder can't be used.
    """
    from migrate_groups.files.runs.copied_log import CopiedLog
    from migrate_groups.migration.reading.copy_log import copy_log, log_ranges
    from migrate_groups.migration.reading.log_ends import current_log_ends
    from migrate_groups.model.offsets_topic import log_partition

    reader, topic = opened
    described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
    if described is None:
        raise Undetermined(f"{OFFSETS_TOPIC} does not exist: no group has committed here yet")
    if groups is not None:
        _warn_of_missing(reader, groups)
    count = len(described.partitions)
    wanted = {*described.partitions} if groups is None else {log_partition(group, count) for group in groups}
    starts = {number: ends.start for number, ends in log_ranges(reader, wanted).items()}
    with CopiedLog.locked(folder), bar(f"reading {OFFSETS_TOPIC}") as progress:
        log = CopiedLog.load(folder, reader.cluster_id()).with_partitions(starts)
        log = copy_log(reader, topic, log, wanted, progress)
    # The log ends are read now and not after the start of Spark, which takes seconds. They must fit the copied commits.
    return LogWithEnds(log, SystemClock().now(), current_log_ends(reader))


def _warn_of_missing(reader: GroupReader, groups: Collection[str]) -> None:
    """Warn on stderr of each group that does not exist now."""
    # This is no error, because the log may have commits of a deleted group.
    there = [each.group for each in reader.list_groups()]
    for group in sorted({*groups} - {*there}):
        near = did_you_mean([group], there)
        found = f"group {group!r} does not exist now{f' ({near})' if near else ''}"
        talk(f"warning: {found}: only its past commits can be shown")


def lag_over_time(
    spark: SparkSession,
    reader: GroupReader,
    copied: LogWithEnds,
    *,
    groups: list[str] | None,
    every: timedelta,
    out: Path,
    since: datetime | None = None,
) -> History:
    """Return the lag and the commits of groups over time, and write them to ``out`` as Parquet.

    groups: None: all groups. every: the time between two points. since: the points begin after this time; if None,
    after the first commit in the log.

    Raises `Undetermined` if the log has no commit of these groups, `UsageError` if there would be too many points, and
    `ClusterUnavailable` if the cluster does not answer.
    """
    from migrate_groups.files.runs import log_ends_parquet
    from migrate_groups.migration.reading.log_ends import log_ends
    from migrate_groups.model.partitions import TopicPartition
    from migrate_groups.spark.offsets_topic.history_job import run_history

    with tempfile.TemporaryDirectory(prefix="migrate-groups-") as scratch:

        def saved(partitions: Collection[tuple[str, int]], moments: Collection[datetime]) -> str:
            path = Path(scratch) / "log_ends.parquet"
            with bar("reading log end offsets") as progress:
                asked = [TopicPartition(*partition) for partition in partitions]
                log_ends_parquet.save(log_ends(reader, asked, [*moments], copied.log_ends, progress), path)
            return str(path)

        now = copied.taken_at
        return run_history(spark, copied.for_spark, saved, groups=groups, every=every, now=now, out=out, since=since)
