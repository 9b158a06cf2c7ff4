"""Measure small Spark jobs against a bare PySpark script.

Usage: ``.venv/bin/python scripts/bench_small.py`` (``scripts/test`` makes .venv). Whole processes take turns, each
measured from its start to its exit:

- bare: starts the same session, reads two CSV snapshots of 18 rows, and counts them
- reconcile: ``migrate-groups reconcile`` of these two snapshots
- audit, history: the Spark part of the commands, without a broker, over a copied log of 30 records

All use one archive of Spark's classes, which a first ``reconcile`` makes. A further run of each, which is not timed,
counts its Spark jobs. The script prints a line for each run, and a table of medians and ratios at the end; ``--json``
saves all of it. On a busy machine the CPU time of a process and its children says more than the wall-clock time.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from _bench import OURS, Measured, in_turns, options_of, report, run_with_children
from bench_audit import record

from migrate_groups.cli.spark_here import spark_here
from migrate_groups.files.runs.copied_log import CopiedLog, save_log_ends
from tests.support.reconcile_in_duckdb import generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 18
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
PARTITIONS = range(5)
CONTENDERS = ("bare", "reconcile", "audit", "history")


def bare(spark: SparkSession, folder: Path) -> None:
    """Read the two snapshots and count them."""
    for name in ("before", "after"):
        spark.read.csv(str(folder / f"{name}.csv"), header=True).count()


def reconcile(spark: SparkSession, folder: Path) -> None:
    """Run the job of the command ``reconcile``."""
    from migrate_groups.spark.reconciliation.job import run_reconcile

    run_reconcile(spark, [str(folder / "before.csv")], [str(folder / "after.csv")])


def audit(spark: SparkSession, folder: Path) -> None:
    """Judge the hand-over of five partitions, two of which have a problem."""
    from migrate_groups.spark.offsets_topic.audit_job import Log, run_audit
    from migrate_groups.spark.offsets_topic.offsets_log import copied_log

    given = (10, None, 10, [10], None, True, None)
    handed_over = [("old", "orders", "new", "orders", number, *given) for number in PARTITIONS]
    log = Log(copied_log(spark, str(folder / "log")), [("old", 7, 0), ("new", 7, 0)], [(7, 0, _RECORDS, 0)])
    found = run_audit(spark, handed_over, log)
    if (found.problems, len(found.late_commits)) != (2, 1):
        sys.exit(f"the audit found {found}")


def history(spark: SparkSession, folder: Path) -> None:
    """Compute a history of four moments, and write its table to a new folder."""
    from migrate_groups.spark.offsets_topic.history_job import run_history
    from migrate_groups.spark.offsets_topic.offsets_log import CopiedFiles

    def log_ends(partitions: object, moments: object) -> str:
        rows = ((*each, moment, 50) for each in partitions for moment in moments)  # type: ignore[attr-defined]
        save_log_ends(rows, folder / "ends.parquet")
        return str(folder / "ends.parquet")

    log = CopiedFiles(str(folder / "log"), [(7, 0, _RECORDS, 0)], "bench-cluster")
    with tempfile.TemporaryDirectory() as out:
        now = NOON + timedelta(hours=3.5)
        found = run_history(
            spark, log, log_ends, groups=None, every=timedelta(hours=1), now=now, out=Path(out) / "history.parquet"
        )
    if [each.group for each in found.groups] != ["new", "old"]:
        sys.exit(f"the history found {found}")


# The offset handed over, two or three own commits of the target group, and a commit of the source group. There is a
# commit every 6 minutes.
_COMMITS = [
    *(("new", number, offset) for offset in (10, 12, 15, 19, 25) for number in PARTITIONS),
    ("new", 3, 20),
    ("old", 1, 12),
    ("new", 0, 30),
    ("new", 2, 31),
    ("new", 4, 33),
]
_RECORDS = len(_COMMITS)


def copy_log(folder: Path) -> None:
    """Write the copied log that audit and history read."""
    rows = [
        record((7, number), group, "orders", partition, offset, at=NOON + number * timedelta(minutes=6))
        for number, (group, partition, offset) in enumerate(_COMMITS)
    ]
    CopiedLog.load_with_starts(folder, "bench-cluster", {7: 0}).with_records(rows, {7: _RECORDS})


def _run(name: str, folder: Path) -> None:
    """Run the job with this name in this process, and print the number of its Spark jobs."""
    with spark_here(0) as spark:
        globals()[name](spark, folder)
        jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup())
    print(jobs)


def _measured(command: list[str]) -> Measured:
    return run_with_children(command)[0]


def main() -> int:
    """Measure what the command line asks for."""
    parser = options_of(__doc__, runs=5)
    parser.add_argument("--only", default=",".join(CONTENDERS), help="some of " + ",".join(CONTENDERS))
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        _run(options.run[0], Path(options.run[1]))
        return 0
    names = options.only.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")  # so that no earlier archive of Spark's classes counts
        generate(ROWS, folder, kind="csv")
        copy_log(folder / "log")
        command = [*OURS, "reconcile", str(folder / "before.csv"), str(folder / "after.csv"), "--format", "json"]
        run_with_children(command)  # its JVM writes the archive of classes
        processes = {name: [sys.executable, __file__, "--run", name, str(folder)] for name in names}
        jobs = {name: int(run_with_children(process)[1]) for name, process in processes.items()}
        contenders: dict[str, Callable[[], Measured]] = {
            name: partial(_measured, command if name == "reconcile" else process) for name, process in processes.items()
        }
        found = in_turns(contenders, options.runs)
    print("Spark jobs: " + ", ".join(f"{name} {number}" for name, number in jobs.items()))
    report(options, {"small": found}, [(name, "bare") for name in names if name != "bare"], jobs=jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
