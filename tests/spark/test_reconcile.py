from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.testing import assertDataFrameEqual, assertSchemaEqual

from migrate_groups.errors import InvalidInput, Undetermined
from migrate_groups.spark.failures import readable_failures
from migrate_groups.spark.reconciliation.comparable import align
from migrate_groups.spark.reconciliation.job import reconcile_tables
from migrate_groups.spark.reconciliation.mapping import MAPPING, split_mapping
from migrate_groups.spark.reconciliation.reconcile import (
    AHEAD_PROVES_NOTHING,
    STATUSES,
    group_topic_summary,
    partition_verdict,
)
from migrate_groups.spark.reconciliation.result import MAX_SUMMARY, MAX_WORST, GroupTopic, Reconciliation, conclude

SnapshotTable = Callable[..., DataFrame]
Row = dict[str, Any]
NOON = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)  # the time of the fixture's rows
PROBLEMS = {"missing", "below-log-start", "behind", "unexpected"}
SPLIT: Row = {"group": "billing", "source_group": "big"}
NEW: Row = {"group": "billing", "taken_at": NOON + timedelta(minutes=1)}

VERDICT_SCHEMA = (
    "cluster_id string, group string, source_group string, topic string, partition int, status string, "
    "before_offset bigint, after_offset bigint, before_log_start bigint, before_log_end bigint, "
    "after_log_start bigint, after_log_end bigint, lag_before bigint, lag_after bigint, produced bigint, "
    "consumed bigint, reason string"
)

# The row before and the row after, by their differences (None: no row), with the expected status and reason.
PLANTED: dict[str, tuple[Row | None, Row | None, str, str | None]] = {
    "equal": ({"offset": 100}, {"offset": 100}, "exact", None),
    "equal at 0": ({"offset": 0}, {"offset": 0}, "exact", None),
    "further": ({"offset": 100}, {"offset": 130}, "ahead", "the committed offset is 30 higher"),
    "further, beyond the end": (
        {"offset": 100},
        {"offset": 151},
        "ahead",
        "the committed offset is above the log end offset as it was read, 150",
    ),
    "smaller": ({"offset": 100}, {"offset": 99}, "behind", "1 record will be processed again"),
    "smaller, at 0": ({"offset": 100}, {"offset": 0}, "behind", "100 records will be processed again"),
    "no row after": ({"offset": 100}, None, "missing", "offset 100 was committed before, none after"),
    "no commit after": (
        {"offset": 100},
        {"offset": None},
        "missing",
        "offset 100 was committed before, none after",
    ),
    "0 before, no commit after": ({"offset": 0}, {"offset": None}, "missing", "offset 0 was committed before"),
    "no row before": (
        None,
        {"offset": 100},
        "unexpected",
        "offset 100 is committed after, none was before",
    ),
    "no commit before": (
        {"offset": None},
        {"offset": 0},
        "unexpected",
        "offset 0 is committed after, none was before",
    ),
    "no commit": ({"offset": None}, {"offset": None}, "no-commit", None),
    "no commit, no row": ({"offset": None}, None, "no-commit", None),
    "equal, below the start": (
        {"offset": 100},
        {"offset": 100, "log_start_offset": 120},
        "below-log-start",
        "the log start offset is 120: 20 records already deleted",
    ),
    "smaller, below the start": (
        {"offset": 100},
        {"offset": 90, "log_start_offset": 95},
        "below-log-start",
        "the log start offset is 95: 5 records already deleted; 10 records will be processed again",
    ),
    "unknown, below the start": (
        {"offset": None},
        {"offset": 1, "log_start_offset": 5},
        "below-log-start",
        "4 records already deleted; offset 1 is committed after, none was before",
    ),
    "equal, at the start": ({"offset": 100}, {"offset": 100, "log_start_offset": 100}, "exact", None),
    "equal, recreated": ({"topic_id": "a"}, {"topic_id": "b"}, "unexpected", "the topic was recreated"),
    "recreated, no commit after": (
        {"topic_id": "a"},
        {"topic_id": "b", "offset": None},
        "missing",
        "the topic was recreated: its offsets can't be compared; offset 100 was committed before, none after",
    ),
    "equal, an id unknown": ({"topic_id": "a"}, {"topic_id": None}, "exact", None),
    "equal, no log bounds": (
        {"log_start_offset": None, "log_end_offset": None},
        {"log_start_offset": None, "log_end_offset": None},
        "exact",
        None,
    ),
}


def test_each_pair_of_rows_gets_its_status_and_reason(snapshot: SnapshotTable) -> None:
    """A partition's row in BEFORE and its row in AFTER together give the expected status and reason."""
    pairs = [*enumerate(PLANTED.values())]
    before = snapshot(*(SPLIT | row | {"partition": number} for number, (row, *_) in pairs if row is not None))
    after = snapshot(*(NEW | row | {"partition": number} for number, (_, row, *_) in pairs if row is not None))
    rows = partition_verdict(before, after).orderBy("partition").collect()
    found = {name: (row.status, row.reason) for name, row in zip(PLANTED, rows, strict=True)}
    assert {name: status for name, (status, _) in found.items()} == {
        name: planted[2] for name, planted in PLANTED.items()
    }
    for name, (_, reason) in found.items():
        assert (reason is None) if PLANTED[name][3] is None else (PLANTED[name][3] in (reason or "")), name
    assert {status for status, _ in found.values()} == set(STATUSES)
    result = conclude(partition_verdict(before, after))
    problems = {number for number, (_, planted) in enumerate(PLANTED.items()) if planted[2] in PROBLEMS}
    assert {row.partition for row in result.worst} == problems
    assert (result.problems, result.hints) == (len(problems), (AHEAD_PROVES_NOTHING,))
    severities = [STATUSES.index(row.status) for row in result.worst]
    assert severities == sorted(severities)


def test_verdict_has_lags_and_records_produced_and_consumed(spark: SparkSession, snapshot: SnapshotTable) -> None:
    """A verdict contains the lags, and the numbers of records produced and consumed between BEFORE and AFTER.

    The columns are the documented ones.
    """
    before = snapshot(SPLIT | {"offset": 100, "log_start_offset": 10, "log_end_offset": 150})
    after = snapshot(NEW | {"offset": 130, "log_start_offset": 20, "log_end_offset": 170})
    verdicts = partition_verdict(before, after)
    schema = spark.createDataFrame([], VERDICT_SCHEMA).schema
    reason = "the committed offset is 30 higher: records were processed since, or skipped"
    row = ("cluster-a", "billing", "big", "orders", 0, "ahead", 100, 130, 10, 150, 20, 170, 50, 40, 20, 30, reason)
    assertSchemaEqual(verdicts.schema, schema)
    assertDataFrameEqual(verdicts, spark.createDataFrame([row], schema))


def test_lag_is_null_without_a_committed_offset(snapshot: SnapshotTable) -> None:
    """Lag is null without a committed offset, 0 at the log end, and negative for an offset above the log end."""
    offsets = [None, 150, 155]
    before = snapshot(*(SPLIT | {"offset": offset, "partition": number} for number, offset in enumerate(offsets)))
    after = snapshot(*(NEW | {"offset": offset, "partition": number} for number, offset in enumerate(offsets)))
    rows = partition_verdict(before, after).orderBy("partition").collect()
    assert [(row.lag_before, row.lag_after) for row in rows] == [(None, None), (0, 0), (-5, -5)]


def test_offsets_of_a_recreated_topic_are_not_subtracted(snapshot: SnapshotTable) -> None:
    """In a verdict, offsets of a recreated topic are not subtracted from offsets of the old topic."""
    before, after = snapshot(SPLIT | {"topic_id": "a"}), snapshot(NEW | {"topic_id": "b", "offset": 3})
    [row] = partition_verdict(before, after).collect()
    assert (row.produced, row.consumed, row.lag_before, row.lag_after) == (None, None, 50, 147)


def test_names_of_digits_stay_text(snapshot: SnapshotTable) -> None:
    """Names of digits are compared as text: group `00123` differs from group `123`, and topic `007` from topic `7`."""
    before = snapshot(*({"group": group, "topic": topic} for group in ("00123", "123") for topic in ("007", "7")))
    after = snapshot({"group": "00123", "topic": "007"}, {"group": "123", "topic": "7"})
    rows = partition_verdict(before, after).collect()
    exact = {(row.group, row.topic) for row in rows if row.status == "exact"}
    missing = {(row.group, row.topic) for row in rows if row.status == "missing"}
    assert exact == {("00123", "007"), ("123", "7")}
    assert missing == {("00123", "7"), ("123", "007")}


@pytest.fixture
def mapping(spark: SparkSession) -> DataFrame:
    """A mapping: topic ``orders`` goes to group billing, partition 0 of ``searches`` to group search.

    Other partitions stay.
    """
    rows = [("big", "orders", 0, "billing"), ("big", "orders", 1, "billing"), ("big", "searches", 0, "search")]
    return spark.createDataFrame(rows, MAPPING)


def test_mapped_rows_are_expected_in_the_target_group(snapshot: SnapshotTable, mapping: DataFrame) -> None:
    """If a mapping moves a partition, its offset in BEFORE is compared with the target group's offset in AFTER.

    Partitions that are not mapped, and the source group's rows in AFTER, are left out.
    """
    topics = [("orders", 0), ("orders", 1), ("searches", 0), ("searches", 1), ("legacy", 0)]
    old = [{"topic": topic, "partition": partition} for topic, partition in topics]
    before = snapshot(*old, {"group": "other", "topic": "orders"})
    new = [NEW | {"topic": "orders"}, NEW | {"topic": "searches", "group": "search", "offset": 90}]
    rows = partition_verdict(before, snapshot(*old, *new), mapping).collect()
    assert {(row.source_group, row.group, row.topic, row.partition, row.status) for row in rows} == {
        ("big", "billing", "orders", 0, "exact"),
        ("big", "billing", "orders", 1, "missing"),
        ("big", "search", "searches", 0, "behind"),
    }


def test_split_file_gives_the_same_verdicts_as_before_and_as_mapping(snapshot: SnapshotTable) -> None:
    """A split file gives the same verdicts whether it is BEFORE, the mapping, or both.

    A partition is compared once, even if the split file has rows of two times for it.
    """
    old = snapshot({"topic": "orders"}, {"topic": "searches"})
    parts = [SPLIT | {"topic": "orders"}, SPLIT | {"topic": "searches", "group": "search"}]
    split = snapshot(*parts, *(part | {"taken_at": NOON - timedelta(days=1)} for part in parts))
    after = snapshot(NEW | {"topic": "orders"}, NEW | {"topic": "searches", "group": "search"})
    as_before = partition_verdict(split, after)
    assert {row.status for row in as_before.collect()} == {"exact"}
    assertDataFrameEqual(partition_verdict(old, after, split_mapping(split)), as_before)
    assertDataFrameEqual(partition_verdict(split, after, split_mapping(split)), as_before)


def test_fan_out_has_a_verdict_for_each_group(spark: SparkSession, snapshot: SnapshotTable) -> None:
    """If a partition is handed over to several groups, there is a verdict for each of these groups."""
    mapping = spark.createDataFrame([("big", "orders", 0, "billing"), ("big", "orders", 0, "audit")], MAPPING)
    rows = partition_verdict(snapshot({}), snapshot(NEW), mapping).collect()
    assert {(row.group, row.status) for row in rows} == {("billing", "exact"), ("audit", "missing")}


def test_without_source_and_mapping_a_group_is_compared_with_itself(snapshot: SnapshotTable) -> None:
    """Without a mapping, a group in BEFORE is compared with the same group in AFTER.

    Groups that BEFORE lacks are omitted.
    """
    rows = partition_verdict(snapshot({}), snapshot({"offset": 120}, NEW)).collect()
    assert [(row.group, row.source_group, row.status) for row in rows] == [("big", None, "ahead")]


def test_latest_row_of_each_side_counts(snapshot: SnapshotTable) -> None:
    """If a partition has several rows, its latest row in BEFORE is compared with its latest row in AFTER.

    A row without a time is taken for the oldest. Duplicate rows make no difference.
    """
    history: list[dict[str, Any]] = [
        {"taken_at": None, "offset": 500},
        {"taken_at": NOON - timedelta(days=1), "offset": 300},
        {"offset": 100},
    ]
    after = [NEW | {"offset": 100}, NEW | {"offset": 100}, NEW | {"taken_at": NOON, "offset": 50}]
    for rows in (history, history[::-1]):
        [row] = partition_verdict(snapshot(*(SPLIT | row for row in rows)), snapshot(*after)).collect()
        assert (row.status, row.before_offset, row.after_offset) == ("exact", 100, 100)


@pytest.mark.parametrize("side", ["BEFORE", "AFTER"])
@pytest.mark.parametrize(("time", "offsets"), [(NOON, (100, 101)), (NOON, (0, None)), (None, (None, 5))])
def test_two_offsets_at_the_same_time_are_refused(
    snapshot: SnapshotTable, side: str, time: datetime | None, offsets: tuple[int | None, int | None]
) -> None:
    """Two offsets of a partition at the same time, in BEFORE or in AFTER, are refused."""
    once, twice = snapshot({}), snapshot(*({"taken_at": time, "offset": offset} for offset in offsets))
    sides = (twice, once) if side == "BEFORE" else (once, twice)
    with pytest.raises(InvalidInput, match=f"{side} has two offsets .* orders-0 of group big"), readable_failures():
        partition_verdict(*sides).collect()


def test_two_source_groups_for_one_target_partition_are_refused(snapshot: SnapshotTable) -> None:
    """Two source groups for a target group's partition are refused, because it can't start at both offsets."""
    before = snapshot(SPLIT, SPLIT | {"source_group": "large", "taken_at": NOON - timedelta(hours=1)})
    with pytest.raises(InvalidInput, match=r"two source groups \(big, large\) for orders-0"), readable_failures():
        partition_verdict(before, snapshot(NEW)).collect()


def test_a_summary_has_counts_and_totals(snapshot: SnapshotTable) -> None:
    """The summary has one row for each topic of a group: the worst status, numbers of partitions by status, and sums.

    A sum leaves out the partitions without a value.
    """
    before = snapshot(
        *(SPLIT | {"partition": number, "offset": offset} for number, offset in enumerate([100, 100, None])),
        SPLIT | {"topic": "searches"},
    )
    after = snapshot(NEW, NEW | {"partition": 1, "offset": 90, "log_end_offset": 160}, NEW | {"topic": "searches"})
    rows = {row.topic: row.asDict() for row in group_topic_summary(partition_verdict(before, after)).collect()}
    counts = dict.fromkeys(("missing", "below_log_start", "behind", "unexpected", "ahead", "no_commit", "exact"), 0)
    assert rows["orders"] == {
        "cluster_id": "cluster-a",
        "group": "billing",
        "topic": "orders",
        "worst": "behind",
        "partitions": 3,
        **(counts | {"exact": 1, "behind": 1, "no_commit": 1}),
        "lag_before": 100,
        "lag_after": 120,
        "produced": 10,
        "consumed": -10,
    }
    assert rows["searches"]["worst"] == "exact"
    assert set(rows) == {"orders", "searches"}


def test_sums_that_are_too_large_are_null(snapshot: SnapshotTable) -> None:
    """If a sum in the summary overflows, it is null, and the verdicts are still given."""
    rows = [{"partition": number, "offset": 0, "log_end_offset": 2**63 - 1} for number in (0, 1)]
    found = conclude(partition_verdict(snapshot(*rows), snapshot(*rows)))
    assert (found.clean, found.totals.counts["exact"], found.totals.lag_before) == (True, 2, None)


def test_time_lag_of_a_topic_is_the_largest_of_its_partitions(snapshot: SnapshotTable) -> None:
    """A topic's time lag is the largest of its partitions, in seconds, and 0 if a timestamp is in the future.

    The time lag is null if no record is unread, or if the snapshot has no column oldest_unconsumed_at.
    """
    oldest = F.timestamp_add("MILLISECOND", F.col("partition") * 1500 - 2500, "taken_at")
    sides = [
        snapshot(*({**side, "partition": number} for number in range(3)), side | {"topic": "searches"})
        for side in (SPLIT, NEW)
    ]
    timed = sides[0].withColumn("oldest_unconsumed_at", F.when(F.col("topic") == "orders", oldest))
    verdicts = partition_verdict(timed, sides[1])
    rows = {(row.topic, row.partition): (row.time_lag_before, row.time_lag_after) for row in verdicts.collect()}
    assert rows == {
        ("orders", 0): (2.5, None),
        ("orders", 1): (1.0, None),
        ("orders", 2): (0.0, None),
        ("searches", 0): (None, None),
    }
    found = reconcile_tables(timed, sides[1])
    assert {row.topic: (row.time_lag_before, row.time_lag_after) for row in (*found.summary, found.totals)} == {
        "orders": (2.5, None),
        "searches": (None, None),
        None: (2.5, None),
    }
    found = reconcile_tables(sides[0], sides[1])
    assert (found.totals.time_lag_before, found.totals.time_lag_after) == (None, None)


def test_clean_hand_over_has_no_problem_and_no_hint(snapshot: SnapshotTable) -> None:
    """If each offset is equal in BEFORE and AFTER, or missing in both, reconcile finds no problem and gives no hint."""
    before = snapshot(SPLIT, SPLIT | {"partition": 1, "offset": None})
    found = reconcile_tables(before, snapshot(NEW, NEW | {"partition": 1, "offset": None}))
    assert found.clean
    assert (found.worst, found.hints, found.topics) == ((), (), 1)
    assert found.totals.counts == dict.fromkeys(STATUSES, 0) | {"exact": 1, "no-commit": 1}
    assert (found.totals.partitions, found.totals.lag_before, found.totals.lag_after) == (2, 50, 50)
    [row] = found.summary
    assert row._replace(cluster_id=None, group=None, topic=None) == found.totals


def test_without_a_committed_offset_there_is_no_verdict(snapshot: SnapshotTable, tmp_path: Path) -> None:
    """If no partition has a committed offset, before or after, nothing was compared: no verdict, and no tables."""
    before, after = snapshot(SPLIT | {"offset": None}), snapshot(NEW | {"offset": None})
    with pytest.raises(Undetermined, match="no verdict: none of 1 partition has a committed offset in BEFORE or AFTER"):
        reconcile_tables(before, after, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rows_without_a_topic_id_are_a_hint(snapshot: SnapshotTable) -> None:
    """If rows have no topic id, a hint says that a topic that was created again would not be recognised."""
    found = reconcile_tables(snapshot(SPLIT | {"topic_id": None}), snapshot(NEW))
    assert found.clean
    assert found.hints == (
        "1 row without a topic id: it is not known whether a topic was deleted and created again in between",
    )


@pytest.mark.parametrize("status", STATUSES)
def test_only_problem_statuses_break_a_hand_over(status: str) -> None:
    """One partition with status missing, below-log-start, behind or unexpected makes a hand-over broken.

    Partitions with the other statuses do not.
    """
    counts = dict.fromkeys(STATUSES, 0) | {"exact": 99} | {status: 1}
    totals = GroupTopic(None, None, None, status, 100, counts, None, None, None, None)
    found = Reconciliation(totals=totals, topics=1, summary=(), worst=(), hints=())
    assert found.clean == (status not in PROBLEMS)
    assert found.problems == (status in PROBLEMS)


def test_size_of_a_result_is_limited(snapshot: SnapshotTable) -> None:
    """The result of reconcile lists at most `MAX_SUMMARY` topics and `MAX_WORST` partitions, the worst first.

    All partitions are counted.
    """
    topics = [f"t{number}" for number in range(MAX_SUMMARY + 5)]
    before = snapshot(*(SPLIT | {"topic": topic} for topic in topics))
    lost = topics[-MAX_WORST - 1 :]
    found = conclude(
        partition_verdict(before, snapshot(*(NEW | {"topic": topic} for topic in topics if topic not in lost)))
    )
    assert found.topics == found.totals.partitions == len(topics)
    assert len(found.summary) == MAX_SUMMARY
    assert {row.topic for row in found.summary[: len(lost)]} == set(lost)
    assert found.problems == found.totals.counts["missing"] == MAX_WORST + 1
    assert len(found.worst) == MAX_WORST


def reconciled(snapshot: SnapshotTable, before: list[Row], after: list[Row]) -> Reconciliation:
    return reconcile_tables(snapshot(*before), snapshot(*after))


@pytest.mark.parametrize(
    ("before", "after", "cluster_id"),
    [(["a"], ["a"], "a"), ([None], ["a"], "a"), (["a"], [None], "a"), (["a", None], ["a"], "a"), ([None], [None], "")],
)
def test_missing_cluster_id_is_filled_in(
    snapshot: SnapshotTable, before: list[str | None], after: list[str | None], cluster_id: str
) -> None:
    """Rows without a cluster id get the cluster id of the other rows in BEFORE and AFTER."""
    sides = [snapshot(*({"cluster_id": cluster} for cluster in clusters)) for clusters in (before, after)]
    aligned = align(*sides)
    assert (aligned.cluster_id, aligned.hints, aligned.has_history) == (cluster_id, (), False)


def test_rows_with_and_without_a_cluster_id_are_summed(snapshot: SnapshotTable) -> None:
    """Rows with and without a cluster id are summed up in one row of the summary, because they are from one cluster."""
    nameless = {"cluster_id": None}
    before = [SPLIT, SPLIT | nameless | {"partition": 1}]
    found = reconciled(snapshot, before, [NEW | nameless, NEW | {"partition": 1}])
    assert (found.clean, found.totals.partitions) == (True, 2)
    assert [row.cluster_id for row in found.summary] == ["cluster-a"]
    [row] = partition_verdict(snapshot(SPLIT | nameless), snapshot(NEW | nameless)).collect()
    assert (row.cluster_id, row.status) == (None, "exact")


def test_several_clusters_are_kept_apart(snapshot: SnapshotTable) -> None:
    """If two clusters have a group of the same name, it is compared and summed up separately for each cluster."""
    both = [{"cluster_id": "a", "offset": 1}, {"cluster_id": "b", "offset": 2}]
    found = reconciled(snapshot, [SPLIT | row for row in both], [NEW | row for row in both])
    assert (found.clean, found.topics) == (True, 2)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([], [NEW], "BEFORE has no rows"),
        ([SPLIT], [], "AFTER has no rows"),
        (
            [SPLIT],
            [NEW | {"cluster_id": "cluster-b"}],
            "BEFORE is of cluster cluster-a, AFTER of cluster-b: pass",
        ),
        (
            [SPLIT, SPLIT | {"cluster_id": "b"}],
            [NEW | {"cluster_id": None}],
            "no cluster_id, and the other rows are of several",
        ),
        (
            [{}],
            [NEW],
            "BEFORE and AFTER have no group in common: after a split, pass the spec with --spec, or .* as BEFORE",
        ),
        ([SPLIT], [{}], "AFTER has none of the new groups, such as 'billing'"),
        ([{"group": None}], [NEW], "a row has no group"),
        ([SPLIT], [{"group": None}], "a row has no group"),
    ],
)
def test_snapshots_that_cannot_be_compared_are_refused(
    snapshot: SnapshotTable, before: list[Row], after: list[Row], message: str
) -> None:
    """If two snapshots cannot be compared, for example because they are of different clusters, reconcile is refused.

    The error says why.
    """
    with pytest.raises(InvalidInput, match=message):
        reconciled(snapshot, before, after)


def test_a_mapping_that_matches_nothing_is_refused(spark: SparkSession, snapshot: SnapshotTable) -> None:
    """A mapping that matches no row of BEFORE is refused, because nothing would be compared."""
    for rows in ([], [("large", "orders", 0, "billing")]):
        with pytest.raises(InvalidInput, match="no rows for the split"):
            reconcile_tables(snapshot({}), snapshot(NEW), spark.createDataFrame(rows, MAPPING))


def test_hint_names_groups_that_were_not_compared(snapshot: SnapshotTable) -> None:
    """A hint names a group that was not compared, and says how many there are.

    For groups that BEFORE lacks, the hint suggests ``--spec``; for groups that AFTER lacks, another snapshot.
    """
    found = reconciled(snapshot, [{}], [{}, NEW, NEW | {"group": "search"}])
    assert found.clean
    assert found.hints == (
        "not compared: 2 groups of AFTER, such as 'billing', without rows in BEFORE; "
        "after a split, pass the spec with --spec, or the output of the command split as BEFORE",
    )
    found = reconciled(snapshot, [SPLIT, SPLIT | {"group": "search"}], [NEW, {}])
    assert found.hints == (
        "AFTER has no rows of 1 expected group, such as 'search': take a snapshot with all new groups",
        "not compared: 1 group of AFTER, such as 'big', without rows in BEFORE",
    )
    assert found.totals.counts["missing"] == 1
