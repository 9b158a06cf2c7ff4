"""The exported types of tables, and the examples in docs/pyspark.md, which use these types."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StructType

from migrate_groups.spark import tables
from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.reconciliation.reconcile import group_topic_summary, partition_verdict
from migrate_groups.spark.reconciliation.timeline import lag_timeline
from tests.spark.conftest import DEFAULTS, NOON

PAGE = (Path(__file__).parents[2] / "docs" / "pyspark.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def columns(schema: StructType) -> list[tuple[str, str]]:
    return [(each.name, each.dataType.simpleString()) for each in schema]


def test_results_have_the_exported_types(snapshot: Callable[..., DataFrame]) -> None:
    """The verdicts, the summary and the lag timeline have the columns of their exported types, in the same order."""
    side = snapshot({})
    verdicts = partition_verdict(side, side)
    assert columns(verdicts.schema) == columns(tables.PARTITION_VERDICT)
    assert columns(group_topic_summary(verdicts).schema) == columns(tables.GROUP_TOPIC_SUMMARY)
    assert columns(lag_timeline(side, side).schema) == columns(tables.LAG_TIMELINE)


@pytest.mark.parametrize("single", [False, True])
def test_time_lags_are_where_the_page_says(snapshot: Callable[..., DataFrame], single: bool) -> None:
    """In the verdicts, the columns of time lags follow the column lag_after, as docs/pyspark.md says.

    In the summary they are the last columns.
    """
    side = snapshot({}).withColumn("oldest_unconsumed_at", F.col("taken_at"))
    verdicts, lags = partition_verdict(side, side, single=single), columns(tables.TIME_LAGS)
    plain = columns(tables.PARTITION_VERDICT)
    at = [name for name, _ in plain].index("lag_after") + 1
    assert columns(verdicts.schema) == [*plain[:at], *lags, *plain[at:]]
    assert columns(group_topic_summary(verdicts).schema) == [*columns(tables.GROUP_TOPIC_SUMMARY), *lags]


def test_page_names_every_exported_table() -> None:
    """docs/pyspark.md names each type that `spark.tables` exports, except OLDEST_UNCONSUMED and TIME_LAGS."""
    for name in {*tables.__all__} - {"OLDEST_UNCONSUMED", "TIME_LAGS"}:
        assert f"`{name}`" in PAGE


def test_examples_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples in docs/pyspark.md run unchanged, one after the other, and save a table in the catalog."""
    monkeypatch.chdir(tmp_path)
    header, cells = ",".join(DEFAULTS), {"taken_at": "2026-11-20T12:00:00Z", "group": "new", "source_group": "big"}
    row = {name: "" if value is None else value for name, value in DEFAULTS.items()} | cells
    Path("split.csv").write_text(f"{header}\n{','.join(map(str, row.values()))}\n")
    snapshot = [tuple((DEFAULTS | {"group": "new", "offset": 99, "taken_at": NOON + timedelta(1)}).values())]
    # Absolute, because the JVM keeps the working directory in which it was started.
    local_table(spark, snapshot, tables.SNAPSHOT).write.parquet(str(tmp_path / "after.parquet"))
    scope: dict[str, Any] = {"spark": spark}
    try:
        for code in EXAMPLES:
            exec(compile(code, "docs/pyspark.md", "exec"), scope)  # noqa: S102
        [found] = spark.table("partition_verdict").collect()
        assert (found.status, found.reason) == ("behind", "1 record will be processed again")
    finally:
        spark.sql("DROP TABLE IF EXISTS partition_verdict")
