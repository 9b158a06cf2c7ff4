"""Measure the Spark jobs over the log of the offsets topic: ``scripts/bench_audit.py [MILLIONS...]``.

The records are as Kafka 4.1 writes them (value version 4), in uncompressed Parquet. 2,000 groups commit in turns, each
for 35 partitions, so that a million records have 14 commits of each partition. One commit in 97 is a rewind.

- decode: computes every decoded column, for Spark's ``noop`` sink. The first job warms the JVM up; the median of the
  next three counts.
- audit: runs the whole audit job once. All groups were handed over at the start of the log.
- history: runs the whole history job once, for all groups, at 50 moments, with known log ends.
"""

from __future__ import annotations

import argparse
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.files.runs import log_ends_parquet
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.spark.offsets_topic.audit_job import Log, run_audit
from migrate_groups.spark.offsets_topic.history_job import run_history
from migrate_groups.spark.offsets_topic.offsets_log import RAW, CopiedFiles, copied_log, decode
from migrate_groups.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = 250_000
_GROUPS, _LOG_PARTITIONS, _TOPICS, _PARTITIONS = 2000, 50, 5, 7
_START = 1763610000


def main() -> None:
    """Write the records, run the jobs, and print a line for each size and job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millions", type=int, nargs="*", default=[1, 5], help="millions of records (default: 1 and 5)")
    parser.add_argument("--only", default="decode,audit,history", help="some of decode,audit,history")
    options = parser.parse_args()
    jobs = {"decode": _decode, "audit": _audit, "history": _history}
    with tempfile.TemporaryDirectory() as name, local_session() as spark:
        folder = Path(name)
        log = CopiedLog.load_with_starts(folder / "log", "bench", dict.fromkeys(range(_LOG_PARTITIONS), 0))
        for size in options.millions:
            while (start := sum(log.ends.values())) < size * 1_000_000:
                end = (start + _FILE) // _LOG_PARTITIONS
                log = log.with_records(map(_record, range(start, start + _FILE)), dict.fromkeys(log.ends, end))
            for job in options.only.split(","):
                seconds = jobs[job](spark, log, folder)
                sys.stdout.write(f"{size} million records: {job} {seconds:.1f} s\n")
                sys.stdout.flush()


def _decode(spark: SparkSession, log: CopiedLog, folder: Path) -> float:
    def once() -> float:
        started = time.perf_counter()
        decode(spark.read.schema(RAW).parquet(str(log.folder))).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started

    return statistics.median([once() for _ in range(4)][1:])


def _audit(spark: SparkSession, log: CopiedLog, folder: Path) -> float:
    topics = [f"orders.region-{number}" for number in range(_TOPICS)]
    handed_over = [
        ("old", topic, _group(group), topic, partition, 0, None, 0, [0], None, True)
        for group in range(_GROUPS)
        for topic in topics
        for partition in range(_PARTITIONS)
    ]
    groups = [("old", 0, 0), *((_group(group), group % _LOG_PARTITIONS, 0) for group in range(_GROUPS))]
    started = time.perf_counter()
    found = run_audit(spark, handed_over, Log(copied_log(spark, str(log.folder)), groups, _ranges(log)))
    seconds = time.perf_counter() - started
    if sum(found.new.values()) != len(handed_over):
        sys.exit(f"the audit found verdicts for {sum(found.new.values())} of {len(handed_over)} partitions")
    return seconds


def _history(spark: SparkSession, log: CopiedLog, folder: Path) -> float:
    def log_ends(partitions: Collection[tuple[str, int]], moments: Collection[datetime]) -> str:
        rows = ((*each, moment, 10_000_000) for each in partitions for moment in moments)
        log_ends_parquet.save(rows, folder / "ends.parquet")
        return str(folder / "ends.parquet")

    records = sum(log.ends.values())
    now, every = _time(records), timedelta(milliseconds=records // 50)
    with tempfile.TemporaryDirectory() as out:
        started = time.perf_counter()
        files = CopiedFiles(str(log.folder), _ranges(log), "bench")
        tables = Path(out) / "history.parquet"
        found = run_history(spark, files, log_ends, groups=None, every=every, now=now, out=tables)
        seconds = time.perf_counter() - started
    if found.found != _GROUPS:
        sys.exit(f"the history found {found.found} of {_GROUPS} groups")
    return seconds


def _ranges(log: CopiedLog) -> list[tuple[int, int, int, int]]:
    return [(number, 0, end, 0) for number, end in log.ends.items()]


def record(
    place: tuple[int, int], group: str, topic: str, partition: int, offset: int, *, at: datetime
) -> tuple[object, ...]:
    """Return a commit as a row of a copied log, as Kafka 4.1 writes it.

    place: the row's partition and offset in the offsets topic. at: the time of the commit.
    """
    name, of = group.encode(), topic.encode()
    key = struct.pack(f">hH{len(name)}sH{len(of)}si", 1, len(name), name, len(of), of, partition)
    value = struct.pack(">hqiBqB", 4, offset, 3, 1, int(at.timestamp() * 1000), 0)
    return *place, at, "record", key, value


def _record(number: int) -> tuple[object, ...]:
    turn, place = number // _GROUPS, (number % _LOG_PARTITIONS, number // _LOG_PARTITIONS)
    topic, offset = f"orders.region-{turn % _TOPICS}", number - (10_000 * _GROUPS if number % 97 == 0 else 0)
    return record(place, _group(number), topic, turn % _PARTITIONS, max(offset, 1), at=_time(number))


def _group(number: int) -> str:
    return f"application-{number % _GROUPS:04}"


def _time(number: int) -> datetime:
    return datetime.fromtimestamp(_START + number / 1000, UTC)


if __name__ == "__main__":
    main()
