"""Failures of Spark become one-line errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from migrate_groups.errors import InvalidInput, MigrateGroupsError
from migrate_groups.spark.failures import readable_failures
from migrate_groups.spark.reconciliation.snapshots import read_snapshots

ABORTED = """An error occurred while calling o9.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2935)
Caused by: java.lang.RuntimeException: java.io.IOException: %s
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:520)
"""


@pytest.mark.parametrize(
    ("thrown", "kind", "code", "message"),
    [
        (PySparkException(ABORTED % "of no kind"), MigrateGroupsError, 1, "Spark failed: IOException: of no kind"),
        (PySparkException("one line\nand more"), MigrateGroupsError, 1, "Spark failed: one line"),
        (
            PySparkException(ABORTED % "No space left on device"),
            InvalidInput,
            2,
            "no disk space left where Spark writes",
        ),
        (ConnectionRefusedError(111, "refused"), MigrateGroupsError, 1, "Spark failed: Spark's Java process has ended"),
    ],
)
def test_spark_failure_is_a_one_line_error(
    thrown: Exception, kind: type[MigrateGroupsError], code: int, message: str
) -> None:
    """A failure of Spark becomes a one-line error without the stack trace.

    The exit code is 2 if the disk is full, and 1 for any other failure.
    """
    with pytest.raises(MigrateGroupsError) as error, readable_failures():
        raise thrown
    assert (type(error.value), error.value.exit_code) == (kind, code)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_other_exceptions_are_raised_unchanged() -> None:
    """An exception that is not Spark's is raised unchanged."""
    with pytest.raises(KeyError), readable_failures():
        raise KeyError("a")


def test_interrupt_stays_an_interrupt() -> None:
    """If PySpark handles an interrupt with a call that fails, the interrupt is raised, not the failure of the call."""
    failure = ConnectionResetError("by the call that PySpark makes once more")
    failure.__context__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), readable_failures():
        raise failure


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("a[.csv", "Unclosed character class"),
        ("{a.csv", "Unclosed group"),
        ("x:y.csv", "Relative path in absolute URI"),
        ("foo://x/y.csv", 'No FileSystem for scheme "foo"'),
        ("s3a://bucket/x.parquet", "S3AFileSystem not found"),
        ("*.csv", "Relative path in absolute URI: 12:00.csv"),
    ],
)
def test_invalid_path_is_named_in_the_error(spark: SparkSession, tmp_path: Path, path: str, message: str) -> None:
    """If Spark can't read a path, the error is one line that names the path.

    The reasons are an invalid glob or scheme, a file name with a colon, and a missing connector.
    """
    (tmp_path / "12:00.csv").write_text("topic,partition\n")
    path = path if ":" in path else str(tmp_path / path)
    with pytest.raises(InvalidInput) as error:
        read_snapshots(spark, [path])
    assert str(error.value).startswith(f"{path}: Spark can't read or write it: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
