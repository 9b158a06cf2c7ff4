from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from migrate_groups.errors import InvalidInput
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget, cover
from migrate_groups.spark.reconciliation.mapping import TOPIC_MAPPING, SplitMapping, spec_mapping
from migrate_groups.spark.reconciliation.reconcile import PLANNED, partition_verdict

SnapshotTable = Callable[..., DataFrame]


def split(**targets: str) -> SplitMapping:
    """Return the mapping of a split spec with source group ``big``. targets: a topic pattern for each target group."""
    spec = SplitSpec(
        source="big",
        targets=tuple(SplitTarget(group=group, topics=(TopicPattern(topics),)) for group, topics in targets.items()),
        stay=(TopicPattern("legacy"),),
    )
    return SplitMapping("big", lambda topics: cover(spec, topics).targets)


def test_a_spec_is_expanded_by_topic(spark: SparkSession, snapshot: SnapshotTable) -> None:
    """A spec's topic patterns are matched with the source group's topics in BEFORE.

    Every partition of a topic goes to the target group whose pattern matches the topic.
    """
    before = snapshot(
        *({"topic": "pay.a", "partition": partition} for partition in (0, 1)),
        *({"topic": topic} for topic in ("pay.b", "find", "legacy")),
        {"group": "other", "topic": "foreign"},
    )
    mapping = spec_mapping(before, split(billing="pay.*", search="find"))
    rows = [("big", "pay.a", "billing"), ("big", "pay.b", "billing"), ("big", "find", "search")]
    assertDataFrameEqual(mapping, spark.createDataFrame(rows, TOPIC_MAPPING))
    new = [{"group": "billing", "topic": "pay.a", "partition": partition} for partition in (0, 1)]
    verdicts = partition_verdict(before, snapshot(*new, {"group": "billing", "topic": "pay.b", "offset": 7}), mapping)
    assert {(row.group, row.source_group, row.topic, row.partition, row.status) for row in verdicts.collect()} == {
        ("billing", "big", "pay.a", 0, "exact"),
        ("billing", "big", "pay.a", 1, "exact"),
        ("billing", "big", "pay.b", 0, "behind"),
        ("search", "big", "find", 0, "missing"),
    }


def test_driver_gets_each_topic_once(snapshot: SnapshotTable) -> None:
    """To expand a spec, Spark's driver gets each topic of the source group once, sorted, and not once for each row."""
    seen: list[Sequence[str]] = []

    def covered(topics: Sequence[str]) -> Mapping[str, Sequence[str]]:
        seen.append(topics)
        return {"billing": topics}

    spec_mapping(snapshot(*({"partition": n, "topic": f"t{n % 2}"} for n in range(9))), SplitMapping("big", covered))
    assert seen == [["t0", "t1"]]


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        (
            [{"topic": "pay"}, {"topic": "legacy"}, {"topic": "left"}],
            {"billing": "pay"},
            "no target group takes topic left",
        ),
        ([{"topic": "pay"}, {"topic": "legacy"}], {"a": "pay", "b": "p*"}, "several groups take topic pay"),
        ([{"topic": "pay"}, {"topic": "legacy"}], {"a": "pay", "b": "x*"}, r"no topic of the group matches x\* \(b\)"),
        (
            [{"group": "large"}, {"group": "0"}],
            {"a": "*"},
            "BEFORE has no rows of source group 'big'; it has 0, large: pass its snapshot",
        ),
        ([{"source_group": "older"}], {"a": "*"}, "BEFORE has been split already"),
    ],
)
def test_uncovered_and_overlapping_topics_are_refused(
    snapshot: SnapshotTable, rows: list[dict[str, str]], targets: dict[str, str], message: str
) -> None:
    """A split spec is refused if no target group, or several target groups, take a topic of BEFORE.

    A pattern that matches no topic, a snapshot of another group, and a snapshot that was split already are also
    refused.
    """
    with pytest.raises(InvalidInput, match=message):
        spec_mapping(snapshot(*rows), split(**targets))


def test_planned_offset_is_compared_if_none_was_committed(spark: SparkSession, snapshot: SnapshotTable) -> None:
    """If a partition has no committed offset in BEFORE, its offset in AFTER is compared with the planned offset.

    ``lag_before`` is then null. A partition with an offset in AFTER, and neither before nor in the plan, is not
    compared, because the plan does not hand it over.
    """
    moved = {"group": "billing", "source_group": "big"}
    before = snapshot({**moved, "offset": None}, {**moved, "partition": 1, "offset": None}, {**moved, "partition": 5})
    after = snapshot(
        *({"group": "billing", "partition": partition, "offset": 40} for partition in (0, 1, 2)),
        {"group": "billing", "partition": 5},
    )
    rows = [("cluster-a", "billing", "orders", partition, offset) for partition, offset in ((0, 40), (1, 30), (3, 9))]
    verdicts = partition_verdict(before, after, None, spark.createDataFrame(rows, PLANNED)).orderBy("partition")
    found = [(row.partition, row.status, row.lag_before, row.consumed, row.reason) for row in verdicts.collect()]
    set_to = "no offset was committed before, and the plan sets %s"
    assert found == [
        (0, "exact", None, 0, set_to % 40),
        (
            1,
            "ahead",
            None,
            10,
            f"{set_to % 30}; the committed offset is 10 higher: records were processed since, or skipped",
        ),
        (3, "missing", None, None, "the plan sets 9, and no offset is committed after"),
        (5, "exact", 50, 0, None),
    ]
