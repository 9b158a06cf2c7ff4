"""Whether a topic was created again: Spark's answer equals that of `model.topics`."""

from __future__ import annotations

import itertools

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from migrate_groups.model import topics
from migrate_groups.spark.topic_ids import are_recreated, is_recreated

IDS = [None, "a", "b"]


def test_a_recreated_topic_is_found_as_in_python(spark: SparkSession) -> None:
    """For each pair of topic ids, Spark and Python agree whether the topic is known to be recreated, or the same.

    Two ids that are not known are never equal. The aggregate over distinct ids gives the same answer.
    """
    pairs = [*itertools.product(IDS, IDS)]
    ids = F.col("then"), F.col("now")
    table = spark.createDataFrame(pairs, "then string, now string").select(
        *ids,
        is_recreated(*ids, if_unknown=False).alias("known"),
        is_recreated(*ids, if_unknown=True).alias("possible"),
        is_recreated(*ids, if_unknown=F.lit(None).cast("boolean")).alias("null"),
    )
    for row in table.collect():
        assert row.known == row.null == (topics.is_same_topic(row.then, row.now) is False), row
        assert row.possible == (topics.is_same_topic(row.then, row.now) is not True), row
    both = table.select("then", "now", F.explode(F.array_distinct(F.array(*ids))).alias("id"))
    counted = both.groupBy("then", "now").agg(are_recreated(F.col("id")).alias("several"))
    assert {(row.then, row.now): row.several for row in counted.collect()} == {
        pair: topics.is_same_topic(*pair) is False for pair in pairs
    }
