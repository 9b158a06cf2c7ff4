"""Our decoding of the offsets topic equals that of Kafka's own tools."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.spark.offsets_topic.offsets_log import RAW, decode
from tests.support.kafkas_decoding import VISIBLE, commit, compare, compare_members, join
from tests.support.versions import is_at_least


@pytest.mark.parametrize(
    ("commits", "levels", "quiet"),
    [(10_000, ["read_uncommitted"], 5), pytest.param(200_000, [*VISIBLE], 15, marks=pytest.mark.long)],
    ids=["short", "both levels"],
)
def test_decoded_commits_equal_those_of_kafkas_formatter(
    spark: SparkSession, tmp_path, java, kafka_jars, commits, levels, quiet
) -> None:
    """Commits, and some transactional, aborted or deleted ones, are decoded as Kafka's formatter prints them.

    From Kafka 4.3 on, every commit that is not in a transaction has a topic id, and Kafka's tool prints the members of
    groups as our code decodes them.
    """
    with start_sandbox(kafka_jars, java=java) as sandbox:
        commit(sandbox.bootstrap_servers, commits)
        latest = is_at_least(kafka_jars.version, "4.3.0")
        if latest:
            join(sandbox.bootstrap_servers)
        found = compare(sandbox, spark, tmp_path, *levels, quiet=quiet)
        if latest:
            our_members, different_members = compare_members(sandbox, spark, tmp_path)
            assert different_members == {}
            assert our_members >= 5  # one for each of the four KIP-848 members, and at least one of the classic group
    for ours, by_kafka, different in found.values():
        assert (ours, different) == (by_kafka, 0)
        assert ours > commits
    raw = spark.read.schema(RAW).parquet(str(tmp_path))
    with_ids = decode(raw).where(F.col("topic_id").isNotNull()).count()
    assert with_ids == (commits if latest else 0)
    kinds = raw.groupBy("kind").count().collect()
    # Every tenth batch of 500 commits is followed by a transaction with 20 commits, and every second one is aborted.
    transactions = commits // 500 // 10
    found_kinds = {row.kind: row["count"] for row in kinds if row.kind != "record"}
    assert found_kinds == {"aborted": transactions // 2 * 20, "control": transactions}
