"""Measure how long Spark takes to decode the log of the offsets topic: ``scripts/bench_audit.py [MILLIONS...]``.

The records are as Kafka 4.1 writes them (value version 4), of 1,000 groups, in uncompressed Parquet. Every decoded
column is computed, for Spark's ``noop`` sink. The first job warms the JVM up; the median of the next three counts.
"""

from __future__ import annotations

import argparse
import statistics
import struct
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from migrate_groups.files.runs.landed_log import LandedLog
from migrate_groups.spark.offsets_topic.offsets_log import RAW, decode
from migrate_groups.spark.session import local_session

_FILE = 250_000


def main() -> None:
    """Write the records, decode them, and print a line for each size."""
    parser = argparse.ArgumentParser(description="How long Spark takes to decode the log of the offsets topic.")
    parser.add_argument("millions", type=int, nargs="*", default=[1, 2, 3, 4, 5], help="of records (default: 1 to 5)")
    millions: list[int] = parser.parse_args().millions
    with tempfile.TemporaryDirectory() as name, local_session() as spark:
        log = LandedLog.opened(Path(name), "bench", {0: 0})
        before = 0.0
        for size in millions:
            while log.ends[0] < size * 1_000_000:
                start = log.ends[0]
                log = log.with_records(map(_record, range(start, start + _FILE)), {0: start + _FILE})
            seconds = statistics.median([_decode(spark, name) for _ in range(4)][1:])
            sys.stdout.write(f"{size} million records: {seconds:.1f} s ({seconds - before:+.1f} s)\n")
            sys.stdout.flush()
            before = seconds


def _decode(spark: object, folder: str) -> float:
    started = time.perf_counter()
    decode(spark.read.schema(RAW).parquet(folder)).write.format("noop").mode("overwrite").save()  # type: ignore[attr-defined]
    return time.perf_counter() - started


def _record(number: int) -> tuple[object, ...]:
    group, topic = f"application-{number % 1000:04}".encode(), f"orders.region-{number % 37}".encode()
    key = struct.pack(f">hH{len(group)}sH{len(topic)}si", 1, len(group), group, len(topic), topic, number % 50)
    value = struct.pack(">hqiBqB", 4, number, 3, 1, 1763610000000 + number, 0)
    return 0, number, datetime.fromtimestamp(1763610000 + number / 1000, UTC), "record", key, value


if __name__ == "__main__":
    main()
