"""The verdicts of ``reconcile`` equal those of the same query in DuckDB, as in ``scripts/bench_reconcile.py``."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from migrate_groups.spark.reconciliation.job import run_reconcile
from migrate_groups.spark.reconciliation.mapping import SplitMapping
from tests.support.reconcile_in_duckdb import STATUSES, SUMS, fingerprint, generate, save, table, totals, verdicts


@pytest.mark.usefixtures("by_hash_only")
@pytest.mark.parametrize(("kind", "session"), [("csv", "spark"), ("parquet", "compiled")])
def test_totals_and_rows_equal_duckdbs(request: pytest.FixtureRequest, tmp_path: Path, kind: str, session: str) -> None:
    """For 5,000 partitions, reconcile's totals and rows equal those that DuckDB computes.

    This holds whether Spark compiles expressions or interprets them. Each status of a partition occurs.
    """
    spark: SparkSession = request.getfixturevalue(session)
    before, after = generate(5_000, tmp_path, kind=kind)
    expected = totals(before, after)
    assert min(expected[status] for status in STATUSES) > 0
    found = run_reconcile(spark, [str(before)], [str(after)], out=tmp_path / "out").totals
    assert {"partitions": found.partitions, **found.counts, **{name: getattr(found, name) for name in SUMS}} == expected
    assert fingerprint(written(tmp_path)) == fingerprint(verdicts(before, after))


def written(folder: Path) -> str:
    return f"FROM read_parquet('{folder}/out/partition_verdict.parquet/*.parquet')"


@pytest.mark.parametrize(("kind", "plan"), [("csv", "by_hash_only"), ("parquet", "by_order_only")])
def test_rows_with_a_spec_and_a_plan_equal_duckdbs(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path, kind: str, plan: str
) -> None:
    """If a split spec maps the topics, the rows that reconcile writes equal those that DuckDB computes.

    In this test the output folder is a URI, and one partition number has a planned offset in place of a committed one.
    Partitions that have an offset only in AFTER are left out, because the plan does not hand them over.
    """
    request.getfixturevalue(plan)
    before, after = generate(1_000, tmp_path, kind=kind)
    of_topic, committed = "'new-' || substr(topic, 7)::INT % 3", '"partition" % 7 <> 0'
    new, source, filled = (tmp_path / f"{name}.{kind}" for name in ("new", "source", "filled"))
    save(f'SELECT * REPLACE ({of_topic} AS "group") FROM {table(after)}', new)
    # Every seventh partition of the source group has no committed offset; one of these gets one from the plan.
    for path, where, groups in (
        (source, committed, 'source_group AS "group", NULL::VARCHAR AS source_group'),
        (filled, f'{committed} OR "partition" = 7', f'{of_topic} AS "group"'),
    ):
        save(f'SELECT * REPLACE (CASE WHEN {where} THEN "offset" END AS "offset", {groups}) FROM {table(before)}', path)
    columns = 'cluster_id, "group", topic, "partition", "offset"'
    query = f'SELECT {columns} FROM {table(filled)} WHERE "partition" = 7 AND "offset" IS NOT NULL'
    with duckdb.connect() as connection:
        planned = connection.execute(query).fetchall()
    topics = {f"new-{number}": [f"topic-{topic}" for topic in range(number, 50, 3)] for number in range(3)}
    run_reconcile(
        spark,
        [str(source)],
        [str(new)],
        split=SplitMapping("old-0", lambda _: topics),
        planned=planned,
        out=(tmp_path / "out").as_uri(),
    )
    hidden = (f'CASE WHEN "partition" <> 7 THEN {name} END AS {name}' for name in ("before_offset", "lag_before"))
    handed_over = "before_offset IS NOT NULL OR after_offset IS NULL"
    expected = f"SELECT * REPLACE ({', '.join(hidden)}) FROM ({verdicts(filled, new)}) WHERE {handed_over}"
    assert fingerprint(written(tmp_path)) == fingerprint(expected)
    assert fingerprint(written(tmp_path)) != fingerprint(verdicts(filled, new))


def test_different_row_fails_the_comparison(tmp_path: Path) -> None:
    """If one offset in one row differs, the comparison with DuckDB's rows fails."""
    before, after = generate(5_000, tmp_path, kind="parquet")
    right = verdicts(before, after)
    last = "topic = 'topic-49' AND \"partition\" = 19 AND \"group\" = 'new-4'"
    wrong = f"SELECT * REPLACE (CASE WHEN {last} THEN 1 ELSE before_offset END AS before_offset) FROM ({right})"
    assert fingerprint(wrong) != fingerprint(right)
