"""Spark's verdicts equal those of the same query in DuckDB: a small run of the benchmark's comparison."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrate_groups.spark.reconciliation.job import run_reconcile
from scripts.bench_reconcile import STATUSES, SUMS, fingerprint, generate, totals, verdicts


@pytest.mark.parametrize(("kind", "session"), [("csv", "spark"), ("parquet", "compiled")])
def test_totals_and_rows_equal_duckdbs(request: pytest.FixtureRequest, tmp_path: Path, kind: str, session: str) -> None:
    """For 5,000 partitions with every status, totals and rows equal DuckDB's, with and without compiled expressions."""
    spark: SparkSession = request.getfixturevalue(session)
    before, after = generate(5_000, tmp_path, kind=kind)
    expected = totals(before, after)
    assert min(expected[status] for status in STATUSES) > 0
    found = run_reconcile(spark, [str(before)], [str(after)], out=tmp_path / "out").totals
    assert {"partitions": found.partitions, **found.counts, **{name: getattr(found, name) for name in SUMS}} == expected
    table = f"FROM read_parquet('{tmp_path}/out/partition_verdict.parquet/*.parquet')"
    assert fingerprint(table) == fingerprint(verdicts(before, after))


def test_different_row_fails_the_comparison(tmp_path: Path) -> None:
    """One different offset in one row makes the comparison fail."""
    before, after = generate(5_000, tmp_path, kind="parquet")
    right = verdicts(before, after)
    last = "topic = 'topic-49' AND \"partition\" = 19 AND \"group\" = 'new-4'"
    wrong = f"SELECT * REPLACE (CASE WHEN {last} THEN 1 ELSE before_offset END AS before_offset) FROM ({right})"  # noqa: S608 (our own query)
    assert fingerprint(wrong) != fingerprint(right)
