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
It prints a line for each run, and a table at the end; ``--json`` saves all of it. Exit 1 if a result differs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000, "10M": 10_000_000, "50M": 50_000_000}
MOST_COMPARED_BY_ROW = 10_000_000
MOST_IN_PLAIN_SPARK = 1_000_000
STATUSES = ("missing", "below-log-start", "behind", "unexpected", "ahead", "no-commit", "exact")
SUMS = ("lag_before", "lag_after", "produced", "consumed")

# A group has 1,000 partitions: 50 topics of 20. Each kind of defect has one row in 1,000; three in ten are ahead.
_ROWS = """
    SELECT 'bench-cluster' AS cluster_id, make_timestamptz(1795176000123456) AS taken_at,
        'new-' || i // 1000 AS "group", 'old-' || i // 10000 AS source_group,
        'Empty' AS group_state, 'classic' AS group_type,
        'topic-' || i // 20 % 50 AS topic, 'topic-id-' || i // 20 % 50 AS topic_id, (i % 20)::INT AS "partition",
        CASE WHEN fate NOT IN (4, 5) THEN 1000 + hash(i) % 1000000000 END::BIGINT AS "offset",
        7::INT AS leader_epoch, '' AS metadata, (hash(i) % 1000)::BIGINT AS log_start_offset,
        (1000 + hash(i) % 1000000000 + hash(i + 1) % 5000)::BIGINT AS log_end_offset, fate
    FROM (SELECT i, hash(i, 'fate') % 1000 AS fate FROM range({rows}) AS numbers(i))"""
_BEFORE = "SELECT * EXCLUDE (fate) FROM ({rows})"
_AFTER = """
    SELECT * EXCLUDE (fate) REPLACE (
        NULL::VARCHAR AS source_group,
        CASE fate WHEN 3 THEN 'recreated' ELSE topic_id END AS topic_id,
        CASE WHEN fate = 1 THEN "offset" - 1 WHEN fate = 4 THEN 5000 WHEN fate < 700 THEN "offset"
            ELSE "offset" + fate::BIGINT END AS "offset",
        CASE fate WHEN 2 THEN "offset" + 9 ELSE log_start_offset END AS log_start_offset,
        log_end_offset + fate::BIGINT AS log_end_offset)
    FROM ({rows}) WHERE fate <> 0"""
_AS_CSV = """
    SELECT * REPLACE (strftime(taken_at AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') AS taken_at) FROM ({rows})"""

# The verdicts of migrate_groups/spark/reconciliation/reconcile.py as SQL; the latest row of each side counts.
_VERDICTS = """
    WITH sides AS (
        SELECT *, 'before' AS side FROM {before}
        UNION ALL BY NAME
        SELECT *, 'after' AS side FROM {after} WHERE "group" IN (SELECT "group" FROM {before})
    ), pairs AS (
        SELECT cluster_id, "group", topic, "partition",
            max_by(row, taken_at) FILTER (side = 'before') AS before,
            max_by(row, taken_at) FILTER (side = 'after') AS after
        FROM (
            SELECT *, struct_pack("offset", log_start_offset, log_end_offset, topic_id, source_group) AS row FROM sides
        )
        GROUP BY ALL
    ), compared AS (
        SELECT *, coalesce(before.topic_id <> after.topic_id, false) AS recreated,
            before.offset AS before_offset, after.offset AS after_offset
        FROM pairs
    )
    SELECT cluster_id, "group", before.source_group AS source_group, topic, "partition",
        CASE WHEN after_offset < after.log_start_offset THEN 'below-log-start'
            WHEN before_offset IS NULL AND after_offset IS NULL THEN 'no-commit'
            WHEN after_offset IS NULL THEN 'missing'
            WHEN before_offset IS NULL OR recreated THEN 'unexpected'
            WHEN after_offset < before_offset THEN 'behind'
            WHEN after_offset > before_offset THEN 'ahead' ELSE 'exact' END AS status,
        before_offset, after_offset,
        before.log_end_offset - before_offset AS lag_before, after.log_end_offset - after_offset AS lag_after,
        CASE WHEN NOT recreated THEN after.log_end_offset - before.log_end_offset END AS produced,
        CASE WHEN NOT recreated THEN after_offset - before_offset END AS consumed
    FROM compared"""
VERDICT_COLUMNS = (
    'cluster_id, "group", source_group, topic, "partition", status, before_offset, after_offset, '
    "lag_before, lag_after, produced, consumed"
)
_CSV_TYPES = {
    **dict.fromkeys(["cluster_id", "group", "source_group", "group_state", "group_type"], "VARCHAR"),
    **dict.fromkeys(["topic", "topic_id", "metadata"], "VARCHAR"),
    **dict.fromkeys(["offset", "log_start_offset", "log_end_offset"], "BIGINT"),
    **dict.fromkeys(["partition", "leader_epoch"], "INTEGER"),
    "taken_at": "TIMESTAMPTZ",
}


class Run(NamedTuple):
    """Seconds and CPU seconds of a command, peak memory in MB of its largest process, and the `totals` it computed."""

    seconds: float
    cpu_seconds: float
    megabytes: int
    totals: dict[str, int]


def generate(rows: int, folder: Path, *, kind: str) -> tuple[Path, Path]:
    """Write a split file and a snapshot taken after it; return their paths. ``kind`` is csv or parquet."""
    made = []
    everything = _ROWS.format(rows=rows)
    for name, query in (("before", _BEFORE), ("after", _AFTER)):
        made.append(folder / f"{name}.{kind}")
        save(query.format(rows=everything), made[-1])
    return made[0], made[1]


def save(query: str, path: Path) -> None:
    """Write the rows of a query, which has the columns of a snapshot, as CSV or as Parquet."""
    options = "FORMAT parquet"
    if path.suffix == ".csv":
        query, options = _AS_CSV.format(rows=query), "FORMAT csv, HEADER"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' ({options})")


def verdicts(before: Path, after: Path) -> str:
    """Return the query that computes the expected ``partition_verdict``."""
    return _VERDICTS.format(before=table(before), after=table(after))


def totals(before: Path, after: Path, memory: str = "80%") -> dict[str, int]:
    """Return the query's totals: the number of partitions, their number by status, and the sums of the columns `SUMS`.

    DuckDB uses at most ``memory``, and writes the rest to the folder of ``before``.
    """
    counts = ", ".join(f"count(*) FILTER (status = '{status}')" for status in STATUSES)
    sums = ", ".join(f"sum({name})" for name in SUMS)
    with duckdb.connect() as connection:
        connection.execute(f"SET temp_directory = '{before.parent}'; SET memory_limit = '{memory}'")
        found = connection.execute(f"SELECT count(*), {counts}, {sums} FROM ({verdicts(before, after)})").fetchone()
    return dict(zip(("partitions", *STATUSES, *SUMS), map(int, found or ()), strict=True))


def fingerprint(rows: str) -> tuple[Any, ...]:
    """Return the row count and two sums over the hash of each row: equal for equal tables in any order."""
    with duckdb.connect() as connection:
        query = f"SELECT count(*), sum(h), bit_xor(h) FROM (SELECT hash({VERDICT_COLUMNS}) AS h FROM ({rows}))"
        found = connection.execute(query).fetchone()
    return found or ()


def table(path: Path) -> str:
    """Return the table of a snapshot file, for the FROM of a query."""
    if path.suffix == ".csv":
        return f"read_csv('{path}', header = true, types = {_CSV_TYPES})"
    return f"read_parquet('{path}')"


def with_spark(before: Path, after: Path, *options: str) -> Run:
    """Measure ``migrate-groups reconcile``."""
    command = [sys.executable, "-m", "migrate_groups", "reconcile", str(before), str(after), "--format", "json"]
    figures, said = measured([*command, *options])
    found = json.loads(said)["totals"]
    return Run(*figures, _flat(found))


def _flat(found: dict[str, Any]) -> dict[str, int]:
    return {key: found["counts"].get(key, found.get(key)) for key in ("partitions", *STATUSES, *SUMS)}


def with_plain_spark(before: Path, after: Path) -> Run:
    """Measure our job in a Spark session with Spark's own defaults."""
    figures, said = measured([sys.executable, __file__, "--plain", str(before), str(after)])
    return Run(*figures, json.loads(said))


def in_plain_spark(before: Path, after: Path) -> dict[str, int]:
    """Return the totals of our job in a session with Spark's own defaults."""
    from pyspark.sql import SparkSession  # here, so that DuckDB's process does not pay for the import

    from migrate_groups.spark.reconciliation.job import run_reconcile

    with SparkSession.builder.getOrCreate() as spark:
        return _flat(run_reconcile(spark, [str(before)], [str(after)]).totals._asdict())


def with_duckdb(before: Path, after: Path, memory: str) -> Run:
    """Measure the query in DuckDB, in a new process."""
    command = [sys.executable, __file__, "--query", str(before), str(after), "--duckdb-memory", memory]
    figures, said = measured(command)
    return Run(*figures, json.loads(said))


def measured(command: Sequence[str]) -> tuple[tuple[float, float, int], str]:
    """Run a process; return its wall-clock seconds, CPU seconds and peak MB, and what it printed on stdout."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err)
        cpu: dict[int, float] = {}
        memory: dict[int, int] = {}
        while process.poll() is None:
            for pid in _family(process.pid):
                with suppress(OSError, ValueError, IndexError):
                    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                    cpu[pid] = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
                    memory[pid] = int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) // 1024
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        out.seek(0), err.seek(0)
        if process.returncode not in (0, 6):
            sys.exit(f"{' '.join(command)} exited with {process.returncode}: {err.read()}")
        return (round(seconds, 2), round(sum(cpu.values()), 2), max(memory.values())), out.read()


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def measure(size: str, kind: str, runs: int, folder: Path, memory: str) -> dict[str, Any]:
    """Measure one size, print each run, and return the results."""
    work = Path(tempfile.mkdtemp(prefix=f"{size}-{kind}-", dir=folder))
    try:
        before, after = generate(SIZES[size], work, kind=kind)
        contenders: dict[str, Callable[[], Run]] = {
            "spark": lambda: with_spark(before, after),
            "duckdb": lambda: with_duckdb(before, after, memory),
        }
        if SIZES[size] <= MOST_IN_PLAIN_SPARK:
            contenders["plain"] = lambda: with_plain_spark(before, after)
        sides: dict[str, list[Run]] = {name: [] for name in contenders}
        for number in range(runs):
            for name, contender in contenders.items():
                last = contender()
                sides[name].append(last)
                print(
                    f"{size} {kind} {number + 1} {name:6} {last.seconds:8.2f} s {last.cpu_seconds:8.2f} s CPU "
                    f"{last.megabytes:6} MB  load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
        equal = all(run.totals == sides["duckdb"][0].totals for runs in sides.values() for run in runs)
        print(f"{size} {kind} totals equal: {equal}", flush=True)
        if SIZES[size] <= MOST_COMPARED_BY_ROW:
            tables = with_spark(before, after, "--output", str(work / "out"))
            written = f"read_parquet('{work}/out/partition_verdict.parquet/*.parquet')"
            same_rows = fingerprint(f"FROM {written}") == fingerprint(verdicts(before, after))
            print(f"{size} {kind} with tables {tables.seconds:.2f} s, every row equal: {same_rows}", flush=True)
            equal = equal and same_rows
        return {
            "size": size,
            "kind": kind,
            "bytes": before.stat().st_size + after.stat().st_size,
            "equal": equal,
            **{name: _summed_up(runs) for name, runs in sides.items()},
        }
    finally:
        shutil.rmtree(work)


def _summed_up(runs: Sequence[Run]) -> dict[str, Any]:
    seconds = [run.seconds for run in runs]
    return {
        "seconds": statistics.median(seconds),
        "least": min(seconds),
        "most": max(seconds),
        "cpu_seconds": statistics.median(run.cpu_seconds for run in runs),
        "megabytes": max(run.megabytes for run in runs),
        "runs": [run._asdict() for run in runs],
    }


def main() -> int:
    """Measure what the command line asks for; return 0 if all results are equal, 1 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10k,1M,10M,50M", help="rows of each file: some of " + ",".join(SIZES))
    parser.add_argument("--csv", default="", metavar="SIZES", help="measure these sizes as CSV, too")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the generated files go; 50M take some 3 GB")
    parser.add_argument("--duckdb-memory", default="80%", metavar="8GB")
    parser.add_argument("--json", type=Path, metavar="FILE")
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
    wanted = [
        (size, kind)
        for kind in ("parquet", "csv")
        for size in (options.csv if kind == "csv" else options.sizes).split(",")
        if size
    ]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        with_spark(*generate(100, Path(folder), kind="csv"))
        found = [measure(size, kind, options.runs, Path(folder), options.duckdb_memory) for size, kind in wanted]
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "duckdb": duckdb.__version__}
    if options.json:
        options.json.write_text(json.dumps({**machine, "sizes": found}, indent=1) + "\n")
    print(
        "\nrows  format   Spark s (least-most)  DuckDB s (least-most)  ratio  CPU s: Spark, DuckDB  peak MB  equal"
        "  plain Spark s"
    )
    for each in found:
        ours, theirs = each["spark"], each["duckdb"]
        print(
            f"{each['size']:5} {each['kind']:8} {_span(ours):21} {_span(theirs):22} "
            f"{ours['seconds'] / theirs['seconds']:5.1f}  {ours['cpu_seconds']:12.1f} {theirs['cpu_seconds']:7.1f} "
            f"{ours['megabytes']:8}  {each['equal']}  {_span(each['plain']) if 'plain' in each else ''}"
        )
    return 0 if all(each["equal"] for each in found) else 1


def _span(side: dict[str, Any]) -> str:
    return f"{side['seconds']:.1f} ({side['least']:.1f}-{side['most']:.1f})"


if __name__ == "__main__":
    sys.exit(main())
