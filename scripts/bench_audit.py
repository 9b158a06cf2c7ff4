"""Measure the Spark jobs over the log of the offsets topic: ``scripts/bench_audit.py [MILLIONS...]``.

The records are as Kafka 4.1 writes them (value version 4), in uncompressed Parquet. 2,000 groups commit in turns, each
for 35 partitions, so that a million records have 14 commits of each partition. One commit in 97 is a rewind.

- decode: computes every decoded column, for Spark's ``noop`` sink. The first job warms the JVM up; the median of the
  next three counts.
- audit: runs the whole audit job once. All groups were handed over at the start of the log.
- history: runs the whole history job once, for all groups, at 50 moments, with known log ends.
- moment: computes the committed offsets of all groups at the time of the middle record, as ``snapshot --log --at``.
- advise: runs the job of ``advise --log`` once, on a log of its own: two applications share each group, with two
  members each, and one of them restarts. One record in 200 is that of a generation, all others are commits.

The CPU seconds are those of Spark's JVM. On a busy machine they say more than the wall-clock time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _bench import cpu_so_far

from migrate_groups.files.runs.copied_log import CopiedLog, save_log_ends
from migrate_groups.spark.offsets_topic.advice_job import measure_costs, write_costs
from migrate_groups.spark.offsets_topic.audit_job import Log, run_audit
from migrate_groups.spark.offsets_topic.history_job import run_history
from migrate_groups.spark.offsets_topic.offsets_at import KNOWN, offsets_at
from migrate_groups.spark.offsets_topic.offsets_log import RAW, CopiedFiles, copied_log, decode
from migrate_groups.spark.session import local_session
from tests.support.offsets_records import commit_key, commit_value, generation, group_key, member

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = 250_000
_GROUPS, _LOG_PARTITIONS, _TOPICS, _PARTITIONS = 2000, 50, 5, 7
_START = 1763610000


def main() -> None:
    """Write the records, run the jobs, and print a line for each size and job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millions", type=int, nargs="*", default=[1, 5], help="millions of records (default: 1 and 5)")
    parser.add_argument("--only", default="decode,audit,history", help="some of decode,audit,history,moment,advise")
    options = parser.parse_args()
    jobs = {"decode": _decode, "audit": _audit, "history": _history, "moment": _moment, "advise": _advise}
    with tempfile.TemporaryDirectory() as name, local_session() as spark:
        gateway: Any = spark.sparkContext._gateway
        logs: dict[str, CopiedLog] = {}
        for size in options.millions:
            for job in options.only.split(","):
                kind = "generations" if job == "advise" else "commits"
                folder = Path(name) / kind
                folder.mkdir(exist_ok=True)
                logs[kind] = log = _grown(logs.get(kind), folder, size * 1_000_000)
                figures = []
                for _ in range(4 if job == "decode" else 1):
                    began, worked = time.perf_counter(), cpu_so_far(gateway.proc.pid)
                    jobs[job](spark, log, folder)
                    figures.append((time.perf_counter() - began, cpu_so_far(gateway.proc.pid) - worked))
                seconds, cpu = (statistics.median(each[1:] or each) for each in zip(*figures, strict=True))
                load = f"load {os.getloadavg()[0]:.1f}"
                print(f"{size} million records: {job} {seconds:.1f} s, {cpu:.1f} s of CPU; {load}", flush=True)


def _grown(log: CopiedLog | None, folder: Path, records: int) -> CopiedLog:
    """Return the log in ``folder`` after records were added to it, so that it has this many."""
    log = log or CopiedLog.load_with_starts(folder / "log", "bench", dict.fromkeys(range(_LOG_PARTITIONS), 0))
    row = _generation_or_commit if folder.name == "generations" else _commit
    while (start := sum(log.ends.values())) < records:
        end = (start + _FILE) // _LOG_PARTITIONS
        log = log.with_records(map(row, range(start, start + _FILE)), dict.fromkeys(log.ends, end))
    return log


def _decode(spark: SparkSession, log: CopiedLog, folder: Path) -> None:
    decode(spark.read.schema(RAW).parquet(str(log.folder))).write.format("noop").mode("overwrite").save()


def _audit(spark: SparkSession, log: CopiedLog, folder: Path) -> None:
    topics = [f"orders.region-{number}" for number in range(_TOPICS)]
    handed_over = [
        ("old", topic, _group(group), topic, partition, 0, None, 0, [0], None, True, None)
        for group in range(_GROUPS)
        for topic in topics
        for partition in range(_PARTITIONS)
    ]
    groups = [("old", 0, 0), *((_group(group), group % _LOG_PARTITIONS, 0) for group in range(_GROUPS))]
    found = run_audit(spark, handed_over, Log(copied_log(spark, str(log.folder)), groups, _ranges(log)))
    if sum(found.new.values()) != len(handed_over):
        sys.exit(f"the audit found verdicts for {sum(found.new.values())} of {len(handed_over)} partitions")


def _history(spark: SparkSession, log: CopiedLog, folder: Path) -> None:
    def log_ends(partitions: Collection[tuple[str, int]], moments: Collection[datetime]) -> str:
        rows = ((*each, moment, 10_000_000) for each in partitions for moment in moments)
        save_log_ends(rows, folder / "ends.parquet")
        return str(folder / "ends.parquet")

    records = sum(log.ends.values())
    now, every = _time(records), timedelta(milliseconds=records // 50)
    with tempfile.TemporaryDirectory() as out:
        files = CopiedFiles(str(log.folder), _ranges(log), "bench")
        tables = Path(out) / "history.parquet"
        found = run_history(spark, files, log_ends, groups=None, every=every, now=now, out=tables)
    if found.found != _GROUPS:
        sys.exit(f"the history found {found.found} of {_GROUPS} groups")


def _moment(spark: SparkSession, log: CopiedLog, folder: Path) -> None:
    records = sum(log.ends.values())
    files = CopiedFiles(str(log.folder), _ranges(log), "bench")
    rows = offsets_at(copied_log(spark, str(log.folder)), files, _time(records // 2))
    found = {row["evidence"]: row["count"] for row in rows.groupBy("evidence").count().collect()}
    if found != {KNOWN: _GROUPS * _TOPICS * _PARTITIONS}:
        sys.exit(f"the offsets at the moment have this evidence: {found}")


def _advise(spark: SparkSession, log: CopiedLog, folder: Path) -> None:
    files = CopiedFiles(str(log.folder), _ranges(log), "bench")
    with tempfile.TemporaryDirectory() as out:
        found = write_costs(measure_costs(spark, files, groups=None), Path(out))
    if found.found != 2 * _GROUPS:
        sys.exit(f"the job found {found.found} applications, not {2 * _GROUPS}")


def _ranges(log: CopiedLog) -> list[tuple[int, int, int, int]]:
    return [(number, 0, end, 0) for number, end in log.ends.items()]


def record(
    place: tuple[int, int], group: str, topic: str, partition: int, offset: int, *, at: datetime
) -> tuple[object, ...]:
    """Return a commit as a row of a copied log, as Kafka 4.1 writes it.

    place: the row's partition and offset in the offsets topic. at: the time of the commit.
    """
    value = commit_value(offset, epoch=3, at=int(at.timestamp() * 1000))
    return *place, at, "record", commit_key(group, topic, partition), value, None


def _commit(number: int) -> tuple[object, ...]:
    """Return record ``number`` of the log of commits."""
    turn, place = number // _GROUPS, (number % _LOG_PARTITIONS, number // _LOG_PARTITIONS)
    topic, offset = f"orders.region-{turn % _TOPICS}", number - (10_000 * _GROUPS if number % 97 == 0 else 0)
    return record(place, _group(number), topic, turn % _PARTITIONS, max(offset, 1), at=_time(number))


def _generation_or_commit(number: int) -> tuple[object, ...]:
    """Return record ``number`` of the log with generations: each 200th of a group is one, the others are commits.

    The members of the application shop stay. Those of the application billing are new in each generation.
    """
    turn, place = number // _GROUPS, (number % _LOG_PARTITIONS, number // _LOG_PARTITIONS)
    if turn % 200:
        topic = f"orders.region-{turn % _TOPICS}"
        return record(place, _group(number), topic, turn % _PARTITIONS, number, at=_time(number))
    members = []
    for name, of, restarts in (("shop", (0, 1, 2), 0), ("billing", (3, 4), turn)):
        topics = [f"orders.region-{each}" for each in of]
        for n in (0, 1):
            owned = range(n, _PARTITIONS, 2)
            client = f"{name}-{n}"
            members.append(member(client, *topics, partitions=owned, assigned=topics, member_id=f"{client}-{restarts}"))
    return *place, _time(number), "record", group_key(_group(number)), generation(turn, *members), None


def _group(number: int) -> str:
    return f"application-{number % _GROUPS:04}"


def _time(number: int) -> datetime:
    return datetime.fromtimestamp(_START + number / 1000, UTC)


if __name__ == "__main__":
    main()
