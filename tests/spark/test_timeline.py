from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual, assertSchemaEqual

import migrate_groups.spark.reconciliation.result
from migrate_groups.spark.reconciliation.comparable import align
from migrate_groups.spark.reconciliation.job import reconcile_tables
from migrate_groups.spark.reconciliation.mapping import TOPIC_MAPPING
from migrate_groups.spark.reconciliation.result import Moment
from migrate_groups.spark.reconciliation.timeline import lag_timeline, most_telling

SnapshotTable = Callable[..., DataFrame]
NOON = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
SCHEMA = (
    "cluster_id string, group string, topic string, taken_at timestamp, source_group string, "
    "partitions bigint not null, committed bigint not null, lag bigint, produced bigint, consumed bigint"
)


def row(hour: int, offset: int | None, end: int = 100, **changes: Any) -> dict[str, Any]:
    return {"taken_at": NOON + timedelta(hours=hour), "offset": offset, "log_end_offset": end, **changes}


@pytest.fixture
def mapping(spark: SparkSession) -> DataFrame:
    """A mapping: topic ``orders`` goes from group big to group billing."""
    return spark.createDataFrame([("big", "orders", "billing")], TOPIC_MAPPING)


def points(timeline: DataFrame) -> list[tuple[Any, ...]]:
    """Return (hours after noon, source group, lag, produced, consumed) for each row, by group, topic and time."""
    rows = timeline.orderBy("group", "topic", "taken_at").collect()
    hours = [round((each.taken_at.astimezone(UTC) - NOON) / timedelta(hours=1)) for each in rows]
    return [
        (hour, each.source_group, each.lag, each.produced, each.consumed)
        for hour, each in zip(hours, rows, strict=True)
    ]


def test_curve_continues_from_the_source_group_to_the_target_group(
    spark: SparkSession, snapshot: SnapshotTable, mapping: DataFrame
) -> None:
    """The lag timeline of a moved topic contains the source group's history, then the target group's.

    Each point has the lag, and the records produced and consumed since the previous point.
    """
    before = snapshot(row(0, 10, 50), row(1, 40, 70), {"topic": "others"})
    after = snapshot(*(row(hour, offset, end, group="billing") for hour, offset, end in ((2, 40, 90), (3, 85, 95))))
    timeline = lag_timeline(before, after, mapping)
    assertSchemaEqual(timeline.schema, spark.createDataFrame([], SCHEMA).schema)
    cells = [
        ("big", 40, None, None),
        ("big", 30, 20, 30),
        (None, 50, 20, 0),
        (None, 10, 5, 45),
    ]
    rows = [
        ("cluster-a", "billing", "orders", NOON + timedelta(hours=hour), source, 1, 1, *figures)
        for hour, (source, *figures) in enumerate(cells)
    ]
    assertDataFrameEqual(timeline, spark.createDataFrame(rows, SCHEMA))


def test_curve_leaves_the_source_group_where_the_target_group_begins(
    snapshot: SnapshotTable, mapping: DataFrame
) -> None:
    """From the target group's first committed offset on, the lag timeline shows its lag, not the source group's.

    In this test BEFORE and AFTER both contain all snapshots.
    """
    old = [row(hour, min(10 * hour, 20)) for hour in range(5)]
    new = [row(hour, 10 * hour, group="billing") for hour in (3, 4)]
    for each in new:  # because a snapshot reads one group after the other
        each["taken_at"] -= timedelta(milliseconds=5)
    everything = snapshot(*old, *new, *new)
    assert points(lag_timeline(everything, everything, mapping)) == [
        (0, "big", 100, None, None),
        (1, "big", 90, 0, 10),
        (2, "big", 80, 0, 10),
        (3, None, 70, 0, 10),
        (4, None, 60, 0, 10),
    ]


def test_lag_is_null_without_a_committed_offset(snapshot: SnapshotTable) -> None:
    """In the lag timeline, lag is summed over the partitions with a committed offset, and null if there is none."""
    rows = [row(0, None), row(1, None), row(1, 70, partition=1), row(2, 90), row(2, 80, partition=1)]
    timeline = lag_timeline(snapshot(*rows), snapshot(*rows))
    assert points(timeline) == [(0, None, None, None, None), (1, None, 30, 0, None), (2, None, 30, 0, 10)]
    assert [each.committed for each in timeline.orderBy("taken_at").collect()] == [0, 1, 2]


def test_offsets_of_a_recreated_topic_are_not_subtracted(snapshot: SnapshotTable) -> None:
    """In the lag timeline, offsets of a recreated topic are not subtracted from offsets of the old topic.

    This also holds if a snapshot between them has no topic id.
    """
    rows = snapshot(row(0, 50, topic_id="a"), row(1, 5, 9, topic_id="b"), row(2, 6, 9, topic_id="b"))
    assert points(lag_timeline(rows, rows)) == [(0, None, 50, None, None), (1, None, 4, None, None), (2, None, 3, 0, 1)]
    rows = snapshot(row(0, 50, topic_id="a"), row(1, 60, topic_id=None), row(2, 5, 9, topic_id="b"))
    assert points(lag_timeline(rows, rows))[1:] == [(1, None, 40, 0, 10), (2, None, 4, None, None)]


def test_history_needs_three_times(snapshot: SnapshotTable) -> None:
    """A lag timeline is made only if a group has snapshots of three times on one cluster.

    A verdict already shows two.
    """
    sides = [
        [row(hour, 1, cluster_id=name) for name, hour in moments]
        for moments in ((("a", 0), ("b", 1)), (("a", 2), ("b", 3)))
    ]
    assert not align(*(snapshot(*side) for side in sides)).has_history
    assert align(snapshot(*sides[0], row(2, 1, cluster_id="b")), snapshot(*sides[1])).has_history
    other = [row(hour, 1, cluster_id="a", group="other") for hour in range(5)]
    assert not align(snapshot(*sides[0]), snapshot(*sides[1], *other)).has_history
    nameless = [row(hour, 1, cluster_id=None) for hour in (2, 3)]
    assert align(snapshot(row(0, 1)), snapshot(*nameless)).has_history
    assert not align(snapshot({"taken_at": None}, row(0, 1)), snapshot(row(1, 1))).has_history


def test_driver_gets_a_curve_for_each_topic_and_for_the_group(snapshot: SnapshotTable, mapping: DataFrame) -> None:
    """Spark's driver gets the lag timeline of each topic and of the whole group, sorted, in UTC to the microsecond."""
    before = snapshot(row(0, 10), row(1, 20))
    after = snapshot(row(2, 20, group="billing"), row(2, 5, 6, group="billing", topic="new"))
    found = reconcile_tables(before, after, mapping)
    at = [NOON + timedelta(hours=hour) for hour in range(3)]
    assert found.timeline == (
        Moment("cluster-a", "billing", None, at[0], 1, 90, None, None),
        Moment("cluster-a", "billing", None, at[1], 1, 80, 0, 10),
        Moment("cluster-a", "billing", None, at[2], 2, 81, 0, 0),
        Moment("cluster-a", "billing", "new", at[2], 1, 1, None, None),
        Moment("cluster-a", "billing", "orders", at[0], 1, 90, None, None),
        Moment("cluster-a", "billing", "orders", at[1], 1, 80, 0, 10),
        Moment("cluster-a", "billing", "orders", at[2], 1, 80, 0, 0),
    )


def test_size_of_a_history_is_limited(snapshot: SnapshotTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a lag timeline has too many rows, groups are kept rather than topics, and large lags rather than small ones.

    If only a part of a group's or topic's rows fits, the latest ones are kept.
    """
    rows = [
        row(hour, 100 - lag, group=group, topic=topic)
        for group, topic, lag in (("g", "small", 1), ("g", "large", 70), ("h", "middle", 30))
        for hour in range(3)
    ]
    history = lag_timeline(snapshot(*rows), snapshot(*rows))
    kept = [(each.group, each.topic) for each in most_telling(history, 11).collect()]
    assert kept == [*[("g", None)] * 3, *[("g", "large")] * 3, *[("h", None)] * 3, *[("h", "middle")] * 2]
    monkeypatch.setattr(migrate_groups.spark.reconciliation.result, "MAX_TIMELINE", 2)
    found = reconcile_tables(snapshot(*rows), snapshot(*rows))
    assert [(each.group, each.taken_at) for each in found.timeline] == [
        ("g", NOON + timedelta(hours=hour)) for hour in (1, 2)
    ]
