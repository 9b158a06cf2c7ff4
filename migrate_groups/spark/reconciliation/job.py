"""The Spark job behind ``reconcile``, and its main function for spark-submit."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.errors import HandOverBroken, InvalidInput, MigrateGroupsError
from migrate_groups.spark.failures import readable_failures
from migrate_groups.spark.files import literal, spark_path, write_csv, written_path
from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.reconciliation.cells import PROBLEM
from migrate_groups.spark.reconciliation.comparable import Alignment, align
from migrate_groups.spark.reconciliation.mapping import SplitMapping, expected, spec_mapping, split_mapping
from migrate_groups.spark.reconciliation.pairs import NOT_SINGLE
from migrate_groups.spark.reconciliation.quarantine import right, set_aside
from migrate_groups.spark.reconciliation.reconcile import PLANNED, group_topic_summary, partition_verdict
from migrate_groups.spark.reconciliation.result import Reconciliation, conclude, moments
from migrate_groups.spark.reconciliation.snapshots import examined, read_snapshots, strict
from migrate_groups.spark.reconciliation.timeline import lag_timeline
from migrate_groups.spark.session import SMALL, submitted_session
from migrate_groups.text import counted


def run_reconcile(
    spark: SparkSession,
    before_paths: Sequence[str],
    after_paths: Sequence[str],
    *,
    split: SplitMapping | str | None = None,
    planned: Iterable[tuple[str, str, str, int, int]] | None = None,
    out: Path | str | None = None,
    quarantine: Path | str | None = None,
) -> Reconciliation:
    """Compare snapshots from before a migration with snapshots from after it.

    Args:
        spark: any session, also a remote one.
        before_paths: files, folders or globs of snapshots from before.
        after_paths: files, folders or globs of snapshots of the target groups from after.
        split: a split spec, or the path of a file that the command ``split`` wrote. It is needed if ``before_paths``
            has only the source group's snapshot.
        planned: offsets that a plan sets where the source group has none, as (cluster id, target group, topic,
            partition, offset). Partitions that the plan does not hand over are then not compared. None: without a plan.
        out: a new folder for the tables; None: no tables are written.
        quarantine: a new folder for invalid rows; None: an invalid row fails the job.

    Raises:
        InvalidInput: a file can't be read or has an invalid row; the snapshots can't be compared; the split spec does
            not cover a topic; a folder exists already or can't be written.
        Undetermined: no partition has a committed offset, before or after.
    """
    with readable_failures():
        for folder in (out, quarantine):
            if folder is not None:
                _require_new(spark, str(folder))
        if out is not None and quarantine is not None:
            _require_apart(str(out), str(quarantine))
        _require_two(before_paths, after_paths)
        before, after = examined(spark, before_paths), examined(spark, after_paths)
        aside = (0, 0)
        if quarantine is None:
            # The first job goes over all rows and fails at an invalid one, so the later jobs need not check again.
            checked, rows = (strict(before), strict(after)), (before.drop(PROBLEM), after.drop(PROBLEM))
        else:
            with _all_or_nothing(str(quarantine)):
                aside = set_aside(before, after, written_path(str(quarantine)))
            checked = rows = right(before), right(after)
        mapping = _mapping(checked[0], split)
        to_start = None if planned is None else local_table(spark, planned, PLANNED)
        found = _reconcile(checked, rows, mapping, to_start, out)
    if not any(aside):
        return found
    hint = (
        f"set aside in {quarantine}: {counted(sum(aside), 'invalid row')} (BEFORE {aside[0]}, AFTER {aside[1]}); "
        "the verdict is about the other rows only"
    )
    return replace(found, hints=(hint, *found.hints), quarantined=sum(aside))


def reconcile_tables(
    before: DataFrame,
    after: DataFrame,
    mapping: DataFrame | None = None,
    planned: DataFrame | None = None,
    out: Path | str | None = None,
) -> Reconciliation:
    """Compare DataFrames of snapshots from before and after a migration.

    Args:
        before: rows from before the migration (columns: `snapshots.SNAPSHOT`).
        after: rows from after the migration, with the same columns.
        mapping: the target group of each partition of a source group (`mapping.MAPPING`); None: each row of ``before``
            is compared under its own group.
        planned: offsets that a plan sets where the source group has none (`reconcile.PLANNED`). Partitions that the
            plan does not hand over are then not compared. None: without a plan.
        out: a new folder for the tables ``partition_verdict`` and ``group_topic_summary``. If a group has snapshots of
            three or more points in time, the table ``lag_timeline`` is also written. Each table is written as Parquet
            and as CSV. A file ``_SUCCESS`` means that the table is complete.

    Raises:
        InvalidInput: the snapshots can't be compared, or ``out`` exists already or can't be written.
        Undetermined: no partition has a committed offset, before or after.
    """
    return _reconcile((before, after), (before, after), mapping, planned, out)


def _reconcile(
    checked: tuple[DataFrame, DataFrame],
    rows: tuple[DataFrame, DataFrame],
    mapping: DataFrame | None,
    planned: DataFrame | None,
    out: Path | str | None,
) -> Reconciliation:
    """Compare snapshots from before and after a migration. Write the tables to ``out``, if given.

    rows: the snapshots (before, after). checked: the same snapshots, as tables that fail a job at an invalid row.
    mapping: the target group of each topic or partition. planned: offsets that a plan sets where ``before`` has none.
    """
    # Only the first job reads `checked`, so that the later jobs need not check the rows again.
    spark = rows[0].sparkSession
    with readable_failures():
        if out is not None:
            _require_new(spark, str(out))
        aligned = align(expected(checked[0], mapping), checked[1])
        before, after = (_with_cluster(side, aligned) for side in rows)

        def result(*, single: bool) -> Reconciliation:
            verdicts = partition_verdict(
                before, after, mapping, planned, single=single, other_groups=aligned.other_groups
            )
            timeline = lag_timeline(before, after, mapping) if aligned.has_history else None
            if out is None:
                return conclude(verdicts, aligned.hints, moments(timeline))
            with _all_or_nothing(str(out)):
                verdicts = _written(verdicts, f"{out}/partition_verdict")
                _written(_sorted(group_topic_summary(verdicts)), f"{out}/group_topic_summary")
                if timeline is not None:
                    timeline = _written(_sorted(timeline, "taken_at"), f"{out}/lag_timeline")
                return conclude(verdicts, aligned.hints, moments(timeline))

        if not aligned.single or aligned.rows < SMALL:
            return result(single=False)
        try:
            return result(single=True)
        except PySparkException as error:
            if NOT_SINGLE not in str(error):
                raise
            return result(single=False)


def main(arguments: Sequence[str], stdout: TextIO, stderr: TextIO) -> int:
    """Run ``scripts/spark_reconcile.py``, and return the exit code. A line of JSON goes to stdout, an error to stderr.

    The exit code is 0 if no partition has a problem, and 6 (`HandOverBroken`) if a partition has one. If the comparison
    fails, it is the exit code of the error.
    """
    parser = argparse.ArgumentParser(prog="spark_reconcile.py", description="Compare snapshots before and after.")
    parser.add_argument("before", metavar="BEFORE", help="CSV or Parquet; a file, a folder or a glob")
    parser.add_argument("after", metavar="AFTER", help="the same, of the new groups")
    parser.add_argument("--before", metavar="PATH", action="append", default=[], dest="more_before", help="also BEFORE")
    parser.add_argument("--after", metavar="PATH", action="append", default=[], dest="more_after", help="also AFTER")
    parser.add_argument("--split", metavar="FILE", help="the output of the command split, if it is not BEFORE")
    parser.add_argument("-o", "--out", metavar="FOLDER", help="a new folder for the tables")
    parser.add_argument("--quarantine", metavar="FOLDER", help="a new folder for invalid rows")
    options = parser.parse_args(arguments)
    try:
        found = run_reconcile(
            submitted_session(),
            [options.before, *options.more_before],
            [options.after, *options.more_after],
            split=options.split,
            out=options.out,
            quarantine=options.quarantine,
        )
    except MigrateGroupsError as error:
        stderr.write(f"error: {error}\n")
        return error.exit_code
    # The hints are in the line, because spark-submit sends stderr of Python to stdout.
    line = {"clean": found.clean, "quarantined": found.quarantined, **found.totals._asdict(), "hints": found.hints}
    stdout.write(json.dumps(line) + "\n")
    return 0 if found.clean else HandOverBroken.exit_code


def _with_cluster(rows: DataFrame, aligned: Alignment) -> DataFrame:
    """Return the rows of a snapshot. Rows without a cluster id get ``aligned.cluster_id``."""
    if aligned.clusters > 1:
        return rows.fillna(aligned.cluster_id, ["cluster_id"])
    # A constant, so that Spark need not read, exchange and compare it.
    return rows.withColumn("cluster_id", F.lit(aligned.cluster_id))


def _mapping(before: DataFrame, split: SplitMapping | str | None) -> DataFrame | None:
    if isinstance(split, str):
        return split_mapping(read_snapshots(before.sparkSession, [split]))
    return None if split is None else spec_mapping(before, split)


def _written(table: DataFrame, path: str) -> DataFrame:
    """Write a table as Parquet and as CSV. Return the table as read back from the Parquet."""
    # "overwrite", because a failed attempt with `pairs.single_rows` may have left this folder.
    table.write.mode("overwrite").parquet(written_path(f"{path}.parquet"))
    read = table.sparkSession.read.schema(table.schema).parquet(spark_path(f"{path}.parquet"))
    write_csv(read, written_path(f"{path}.csv"))
    return read


def _sorted(table: DataFrame, *further: str) -> DataFrame:
    return table.coalesce(1).sortWithinPartitions("cluster_id", "group", "topic", *further)


def _require_new(spark: SparkSession, folder: str) -> None:
    with readable_failures(folder):
        exists = _exists(spark, folder)
    if exists:
        raise InvalidInput(f"{folder} exists already: pass another folder, or remove it")
    if "://" not in folder:
        parent = next(each for each in Path(folder).absolute().parents if each.exists())
        try:
            Path(tempfile.mkdtemp(dir=parent)).rmdir()
        except OSError as error:
            raise InvalidInput(
                f"{folder} can't be written ({parent}: {error.strerror or error}): pass another folder"
            ) from error


def _require_apart(out: str, quarantine: str) -> None:
    one, other = Path(out).absolute(), Path(quarantine).absolute()
    if one.is_relative_to(other) or other.is_relative_to(one):
        raise InvalidInput(
            f"{out} and {quarantine} contain each other: pass separate folders for tables and quarantine"
        )


def _require_two(before: Sequence[str], after: Sequence[str]) -> None:
    twice = {_place(path) for path in before} & {_place(path) for path in after}
    if twice:
        raise InvalidInput(
            f"{min(twice)} is both BEFORE and AFTER: take a snapshot of the new groups now, and pass it as AFTER"
        )


def _place(path: str) -> str:
    """Return the real path of a local path, so that ``./a.csv`` equals ``a.csv``. A URI is returned unchanged."""
    return path if "://" in path else os.path.realpath(path)


def _exists(spark: SparkSession, path: str) -> bool:
    try:
        spark.read.text(literal(written_path(path))).inputFiles()  # with Spark Connect, reading alone accesses no file
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
    return True


@contextmanager
def _all_or_nothing(folder: str) -> Iterator[None]:
    """Delete a local folder if the ``with`` block fails. A remote folder stays, without the file ``_SUCCESS``."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
