"""Measure reconcile against the same query in DuckDB.

Usage: ``.venv/bin/python scripts/bench_reconcile.py`` (``scripts/test`` makes .venv). A size is a number of rows. For
each size the script generates a split file and a snapshot of the new groups, in which each status occurs. Then whole
processes take turns, each measured from its start to its exit:

- spark: ``migrate-groups reconcile``: Python, the JVM's start, Spark and the job, with an archive of Spark's classes
- duckdb: a Python process that runs the query in DuckDB
- plain, up to 1M: our job in Spark with its own defaults: web UI, 200 shuffle partitions, no archive

The totals must be equal in every run. Up to 10M, one more run writes the tables, and every row of ``partition_verdict``
is compared with DuckDB's.

The CPU time of each process and its children is measured, too, because wall-clock time tells little on a busy machine.
It prints a line for each run, and a table for each size; ``--json`` saves all runs. Exit 1 if a result differs.

Tried without a gain: numbers in place of topic ids, from a table that is broadcast; exchange partitions of 8 MB; no
two-level hash map; one aggregation in place of a partial and a final one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _bench import OURS, Measured, Runs, in_turns, options_of, report, run_with_children

from tests.support.reconcile_in_duckdb import fingerprint, flat, generate, totals, verdicts

SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000, "10M": 10_000_000, "50M": 50_000_000}
MOST_COMPARED_BY_ROW = 10_000_000
MOST_IN_PLAIN_SPARK = 1_000_000


class Case:
    """A split file and a snapshot taken after it, of one size and one format, and what was found in them.

    memory: the most memory that DuckDB may use.
    """

    def __init__(self, rows: int, kind: str, folder: Path, memory: str) -> None:
        self.rows, self.folder, self.memory = rows, folder, memory
        self.files = [str(each) for each in generate(rows, folder, kind=kind)]
        self.found: list[dict[str, int]] = []

    def contenders(self) -> dict[str, Callable[[], Measured]]:
        """Return what can be measured, by its name."""
        again = (sys.executable, __file__)
        plain = {"plain": partial(self._measure, *again, "--plain")} if self.rows <= MOST_IN_PLAIN_SPARK else {}
        duckdb = partial(self._measure, *again, "--duckdb-memory", self.memory, "--query")
        return {"spark": self.reconcile, "duckdb": duckdb, **plain}

    def reconcile(self, *options: str) -> Measured:
        """Measure ``migrate-groups reconcile``."""
        return self._measure(*OURS, "reconcile", "--format", "json", *options)

    def _measure(self, *command: str) -> Measured:
        measured, out = run_with_children([*command, *self.files])
        document = json.loads(out)
        self.found.append(flat(document["totals"]) if "totals" in document else document)
        return measured

    def all_equal(self) -> bool:
        """Return whether all totals are equal and, up to a size, every row of ``partition_verdict`` is DuckDB's."""
        if self.rows <= MOST_COMPARED_BY_ROW:
            self.reconcile("--output", str(self.folder / "out"))
            written = f"FROM read_parquet('{self.folder}/out/partition_verdict.parquet/*.parquet')"
            if fingerprint(written) != fingerprint(verdicts(*map(Path, self.files))):
                return False
        return all(each == self.found[0] for each in self.found)


def in_plain_spark(before: Path, after: Path) -> dict[str, int]:
    """Return the totals of our job in a session with Spark's own defaults."""
    from pyspark.sql import SparkSession  # here, so that DuckDB's process does not pay for the import

    from migrate_groups.spark.reconciliation.job import run_reconcile

    with SparkSession.builder.getOrCreate() as spark:
        return flat(run_reconcile(spark, [str(before)], [str(after)]).totals._asdict())


def measure(size: str, kind: str, folder: Path, options: argparse.Namespace) -> tuple[Runs, bool]:
    """Measure one size. Return its runs, and whether all found the same."""
    work = Path(tempfile.mkdtemp(prefix=f"{size}-{kind}-", dir=folder))
    try:
        case = Case(SIZES[size], kind, work, options.duckdb_memory)
        runs = in_turns(case.contenders(), options.runs)
        equal = case.all_equal()
    finally:
        shutil.rmtree(work)
    print(f"{size} rows in each file, {kind}; all results equal: {equal}", flush=True)
    return runs, equal


def main() -> int:
    """Measure what the command line asks for; return 0 if all results are equal, 1 otherwise."""
    parser = options_of(__doc__, runs=3)
    parser.add_argument("--sizes", default="10k,1M,10M,50M", help="rows of each file: some of " + ",".join(SIZES))
    parser.add_argument("--csv", default="", metavar="SIZES", help="measure these sizes as CSV, too")
    parser.add_argument("--folder", type=Path, help="where the generated files go; 50M take some 3 GB")
    parser.add_argument("--duckdb-memory", default="80%", metavar="8GB")
    parser.add_argument("--query", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--plain", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.query:
        before, after = options.query
        print(json.dumps(totals(before, after, options.duckdb_memory)))
        return 0
    if options.plain:
        print(json.dumps(in_plain_spark(*options.plain)))
        return 0
    wanted = [(size, "parquet") for size in options.sizes.split(",") if size]
    wanted += [(size, "csv") for size in options.csv.split(",") if size]
    if unknown := [size for size, _ in wanted if size not in SIZES]:
        parser.error(f"{unknown[0]} is no size: name some of {','.join(SIZES)}")
    if options.folder and not options.folder.is_dir():
        parser.error(f"--folder {options.folder} is no folder: make it first")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        warm_up = Path(folder) / "first"
        warm_up.mkdir()
        Case(100, "csv", warm_up, options.duckdb_memory).reconcile()  # its JVM writes the archive of Spark's classes
        found = {f"{size} {kind}": measure(size, kind, Path(folder), options) for size, kind in wanted}
    runs = {f"{case}, rows in each file": runs for case, (runs, _) in found.items()}
    report(options, runs, [("spark", "duckdb"), ("plain", "duckdb")])
    return 0 if all(equal for _, equal in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
