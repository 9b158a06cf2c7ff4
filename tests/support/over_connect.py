"""Run each Spark job on the Spark Connect server that SPARK_REMOTE names: ``over_connect.py FOLDER``.

PYTHONPATH must contain PySpark, the repository and its scripts. The script writes BEFORE, AFTER and the tables of
reconcile to the folder. It prints the module of Spark's session class, then the name of each job that has passed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bench_small
from bench_reconcile import generate

from migrate_groups.spark.reconciliation.job import run_reconcile
from migrate_groups.spark.session import submitted_session


def main(folder: Path) -> None:
    """Run reconcile, audit and history, and check the results of audit and history."""
    spark = submitted_session()
    sys.stdout.write(f"{type(spark).__module__}\n")
    before, after = generate(2_000, folder, kind="csv")
    run_reconcile(spark, [str(before)], [str(after)], out=folder / "out")
    sys.stdout.write("reconcile\n")
    bench_small.copy_log(folder / "log")
    for job in (bench_small.audit, bench_small.history):
        job(spark, folder)
        sys.stdout.write(f"{job.__name__}\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
