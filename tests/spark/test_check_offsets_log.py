"""A short run of ``scripts/check_offsets_log.py``, which compares our decoded records with Kafka's own tools."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.spark.offsets_topic.offsets_log import RAW, decode
from tests.support.versions import is_at_least

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_offsets_log.py"


def test_decoded_commits_equal_those_of_kafkas_formatter(spark: SparkSession, tmp_path, java, kafka_jars) -> None:
    """10,000 commits, and some transactional, aborted or deleted ones, are decoded as Kafka's formatter prints them.

    From Kafka 4.3 on, every commit that is not in a transaction has a topic id, and Kafka's tool prints the members of
    groups as our code decodes them.
    """
    specification = importlib.util.spec_from_file_location("check_offsets_log", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    check = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(check)
    with start_sandbox(kafka_jars, java=java) as sandbox:
        check.commit(sandbox.bootstrap_servers, 10_000)
        latest = is_at_least(kafka_jars.version, "4.3.0")
        if latest:
            check.join(sandbox.bootstrap_servers)
        found = check.compare(sandbox, spark, tmp_path, "read_uncommitted", quiet=5)
        if latest:
            our_members, members_by_kafka, members_that_differ = check.compare_members(sandbox, spark, tmp_path)
            assert (our_members, members_that_differ) == (members_by_kafka, 0)
            assert our_members >= 5  # one for each of the four KIP-848 members, and at least one of the classic group
    ours, by_kafka, different = found["read_uncommitted"]
    assert (ours, different) == (by_kafka, 0)
    assert ours > 10_000
    raw = spark.read.schema(RAW).parquet(str(tmp_path))
    with_ids = decode(raw).where(F.col("topic_id").isNotNull()).count()
    assert with_ids == (10_000 if latest else 0)
    kinds = raw.groupBy("kind").count().collect()
    assert {row.kind: row["count"] for row in kinds if row.kind != "record"} == {"aborted": 20, "control": 2}
