"""The reconcile job: reads the snapshots, concludes, writes the tables; and the main function for spark-submit."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from migrate_groups.errors import HandOverBroken, InvalidInput, MigrateGroupsError
from migrate_groups.spark.comparable import align
from migrate_groups.spark.failures import readable_failures
from migrate_groups.spark.reconcile import MAPPING, expected, group_topic_summary, partition_verdict, split_mapping
from migrate_groups.spark.result import Reconciliation, conclude
from migrate_groups.spark.session import submitted_session
from migrate_groups.spark.snapshots import read_snapshots, spark_path


def run_reconcile(
    spark: SparkSession,
    before_paths: Sequence[str],
    after_paths: Sequence[str],
    mapping_rows: Iterable[tuple[str, str, int, str]] | None = None,
    out: Path | str | None = None,
) -> Reconciliation:
    """Compare snapshots taken before and after.

    Args:
        spark: any session, also a remote one.
        before_paths: files, folders or globs (`snapshots.read_snapshots`).
        after_paths: the same of the new groups.
        mapping_rows: (source group, topic, partition, new group); needed if BEFORE is a snapshot of the old group as
            it was taken.
        out: see `reconcile_tables`.

    Raises:
        InvalidInput: a file that can't be read or is wrong somewhere; sides that can't be compared; ``out`` exists.
    """
    mapping = None if mapping_rows is None else spark.createDataFrame([*mapping_rows], MAPPING)
    before = read_snapshots(spark, before_paths)
    return reconcile_tables(before, read_snapshots(spark, after_paths), mapping, out)


def reconcile_tables(
    before: DataFrame, after: DataFrame, mapping: DataFrame | None = None, out: Path | str | None = None
) -> Reconciliation:
    """`run_reconcile` for DataFrames with the columns of `snapshots.SNAPSHOT` (and of `reconcile.MAPPING`).

    ``out`` is a folder that must not exist. It gets four folders as Spark writes them (part files, and ``_SUCCESS``
    when complete): ``partition_verdict.parquet`` and ``.csv``, ``group_topic_summary.parquet`` and ``.csv`` (one part
    file each, sorted). After a failure it is gone.
    """
    spark = before.sparkSession
    with readable_failures():
        if out is not None:
            _require_new(spark, str(out))
        cluster_id, hints = align(expected(before, mapping), after)
        before, after = (side.fillna(cluster_id, ["cluster_id"]) for side in (before, after))
        verdicts = partition_verdict(before, after, mapping)
        if out is None:
            return conclude(verdicts, hints)
        with _all_or_nothing(str(out)):
            # what follows reads the verdicts from this table instead of computing them again
            verdicts.write.parquet(f"{out}/partition_verdict.parquet")
            verdicts = spark.read.schema(verdicts.schema).parquet(f"{out}/partition_verdict.parquet")
            summary = group_topic_summary(verdicts).coalesce(1).sortWithinPartitions("cluster_id", "group", "topic")
            verdicts.write.csv(f"{out}/partition_verdict.csv", header=True, escape='"')
            summary.write.parquet(f"{out}/group_topic_summary.parquet")
            summary.write.csv(f"{out}/group_topic_summary.csv", header=True, escape='"')
            return conclude(verdicts, hints)


def main(arguments: Sequence[str], stdout: TextIO, stderr: TextIO) -> int:
    """What ``scripts/spark_reconcile.py`` runs: one line of JSON on stdout, hints and errors on stderr, the exit code.

    It is 0 or, with a problem, that of `HandOverBroken`; an error's own otherwise.
    """
    parser = argparse.ArgumentParser(prog="spark_reconcile.py", description="Compare snapshots before and after.")
    parser.add_argument("before", metavar="BEFORE", help="CSV or Parquet; a file, a folder or a glob")
    parser.add_argument("after", metavar="AFTER", help="the same, of the new groups")
    parser.add_argument("--split", metavar="FILE", help="a file that split wrote, if BEFORE is not one")
    parser.add_argument("-o", "--out", metavar="FOLDER", help="where the tables go; must not exist")
    options = parser.parse_args(arguments)
    spark = submitted_session()
    try:
        mapping = split_mapping(read_snapshots(spark, [options.split])) if options.split else None
        before, after = read_snapshots(spark, [options.before]), read_snapshots(spark, [options.after])
        found = reconcile_tables(before, after, mapping, options.out)
    except MigrateGroupsError as error:
        stderr.write(f"error: {error}\n")
        return error.exit_code
    stderr.writelines(f"{hint}\n" for hint in found.hints)
    stdout.write(json.dumps({"clean": found.clean, **found.totals._asdict()}) + "\n")
    return 0 if found.clean else HandOverBroken.exit_code


def _require_new(spark: SparkSession, out: str) -> None:
    if _exists(spark, out):
        raise InvalidInput(f"{out}: exists already; choose another or remove it")
    if "://" not in out:
        parent = next(folder for folder in Path(out).absolute().parents if folder.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise InvalidInput(f"{out}: can't be written: {parent} is not a folder that we may write to")


def _exists(spark: SparkSession, path: str) -> bool:
    try:
        spark.read.text(spark_path(path))
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
    return True


@contextmanager
def _all_or_nothing(out: str) -> Iterator[None]:
    """Removes a folder on this machine that could not be completed; elsewhere a ``_SUCCESS`` is missing then."""
    try:
        yield
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise
