"""`pairs.single_rows`, which needs one row for each partition, and `pairs.latest_rows`, which sorts rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.testing import assertDataFrameEqual

from migrate_groups.errors import InvalidInput
from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.reconciliation.job import reconcile_tables
from migrate_groups.spark.reconciliation.pairs import NOT_SINGLE
from migrate_groups.spark.reconciliation.reconcile import PLANNED, STATUSES, partition_verdict
from tests.spark.conftest import NOON

SnapshotTable = Callable[..., DataFrame]
Row = dict[str, Any]
AFTER: Row = {"taken_at": NOON + timedelta(minutes=1)}
SPLIT: Row = {"group": "billing", "source_group": "big"}


def random_rows(chance: random.Random, cluster: str | None) -> tuple[list[Row], list[Row]]:
    """Return rows of BEFORE and rows of AFTER. Each of 400 partitions has a row in both, in one, or in neither."""
    before: list[Row] = []
    after: list[Row] = []
    for number in range(400):
        group = f"new-{number % 7}"
        place = {"cluster_id": cluster, "group": group, "topic": f"topic-{number % 20}", "partition": number}
        for side, rows in (("before", before), ("after", after)):
            figures = {
                "topic_id": chance.choice([None, "id", "id", "other"]),
                "offset": chance.choice([None, 0, 9, 10, 11]),
                "log_start_offset": chance.choice([None, 0, 10]),
                "log_end_offset": chance.choice([None, 10, 20]),
            }
            if chance.random() < 0.9:
                source = {"source_group": f"old-{number % 7}"} if side == "before" and number % 7 else {}
                rows.append(place | figures | (AFTER if side == "after" else {}) | source)
    return before, [*after, AFTER | {"cluster_id": cluster, "group": "of somebody else"}]


@pytest.mark.parametrize("cluster", ["cluster-a", None])
@pytest.mark.parametrize("session", ["spark", "compiled"])
def test_single_rows_and_latest_rows_give_equal_verdicts(
    request: pytest.FixtureRequest, snapshot: SnapshotTable, session: str, cluster: str | None
) -> None:
    """`pairs.single_rows` and `pairs.latest_rows` give equal verdicts.

    The rows are random, with nulls, recreated topics, time lags and planned offsets.
    """
    spark: SparkSession = request.getfixturevalue(session)
    rows = random_rows(random.Random(f"22 {cluster}"), cluster)
    oldest = F.when(F.col("partition") % 3 > 0, F.col("taken_at") - F.make_dt_interval(secs=F.col("partition")))
    before, after = (snapshot(*side).withColumn("oldest_unconsumed_at", oldest) for side in rows)
    planned = [(cluster, f"new-{number % 7}", f"topic-{number % 20}", number, 10) for number in range(0, 410, 5)]
    to_start = local_table(spark, planned, PLANNED)
    hashed, by_order = (partition_verdict(before, after, None, to_start, single=single) for single in (True, False))
    assertDataFrameEqual(hashed, by_order)
    assert {row.status for row in hashed.select("status").distinct().collect()} == {*STATUSES}


@pytest.mark.usefixtures("by_hash_only")
def test_one_row_for_each_partition_is_not_sorted(snapshot: SnapshotTable, tmp_path: Path) -> None:
    """If each partition has one row in BEFORE and one in AFTER, reconcile sorts no row.

    This also holds if BEFORE and AFTER have the same time.
    """
    before = snapshot(SPLIT | {"partition": 0}, SPLIT | {"partition": 1})
    after = snapshot({"group": "billing", "partition": 0}, {"group": "billing", "partition": 1, "offset": 99})
    found = reconcile_tables(before, after, out=tmp_path / "out")
    assert (found.totals.counts["exact"], found.totals.counts["behind"]) == (1, 1)
    assert [(row.source_group, row.reason) for row in found.worst] == [("big", "1 record will be processed again")]


@pytest.mark.usefixtures("always_large")
@pytest.mark.parametrize("remote", [False, True])
def test_a_row_that_occurs_twice_makes_the_job_sort_rows(snapshot: SnapshotTable, tmp_path: Path, remote: bool) -> None:
    """If a partition has two rows with the same time and offset, a large job sorts the rows, as a small job does.

    The large job's first attempt, without sorting, fails. The second attempt replaces the files of the first, even if
    the output folder is given as a URI.
    """
    new = AFTER | {"group": "billing"}
    other = SPLIT | {"log_start_offset": 5, "log_end_offset": 130}
    before, after = snapshot(SPLIT, other), snapshot(new, new)
    out = tmp_path / "out"
    found = reconcile_tables(before, after, out=out.as_uri() if remote else out)
    # Of equal offsets, the row with the higher log start offset counts. The maximum of each column would make lag 50.
    assert (found.totals.partitions, found.totals.counts["exact"], found.totals.lag_before) == (1, 1, 30)
    assert (out / "partition_verdict.parquet" / "_SUCCESS").exists()


@pytest.mark.usefixtures("always_large")
def test_a_group_of_two_source_groups_makes_the_job_sort_rows(snapshot: SnapshotTable, tmp_path: Path) -> None:
    """If a target group gets partitions of two source groups, each verdict names its partition's source group."""
    more = {"topic": "payments", "source_group": "large"}
    new = AFTER | {"group": "billing"}
    found = reconcile_tables(
        snapshot(SPLIT, SPLIT | more), snapshot(new | {"offset": 1}, new | more | {"offset": 1}), out=tmp_path / "out"
    )
    assert [(row.topic, row.source_group) for row in found.worst] == [("orders", "big"), ("payments", "large")]


@pytest.mark.usefixtures("always_large")
def test_contradictions_are_named_as_in_a_small_job(snapshot: SnapshotTable) -> None:
    """If a partition has two offsets at the same time, the error of a large job names the partition.

    A small job gives the same error.
    """
    with pytest.raises(InvalidInput, match="BEFORE has two offsets at the same moment for orders-0 of group billing"):
        reconcile_tables(snapshot(SPLIT, SPLIT | {"offset": 1}), snapshot(AFTER | {"group": "billing"}))


def test_a_second_row_fails_a_job_over_single_rows(snapshot: SnapshotTable) -> None:
    """A job with `pairs.single_rows` fails if a partition has two rows, even with different topic ids."""
    after = snapshot(AFTER | {"topic_id": "one"}, AFTER | {"topic_id": "two"})
    with pytest.raises(PySparkException, match=NOT_SINGLE):
        partition_verdict(snapshot({}), after, single=True).collect()
