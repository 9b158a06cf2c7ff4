"""Find out from the log of ``__consumer_offsets`` whether a group had members at each moment.

A coordinator accepts a commit without membership only while the group has no members, except in a transaction
(docs/kafka-behaviour.md#altering-offsets). It writes a record when members join, and when the last one has left.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.offsets_topic.generations import member_count

_CLASSIC = "group-metadata"
_ONE_MEMBER = ("consumer-group-member-metadata", "streams-group-member-metadata")


def shows_members() -> Column:
    """Return, as a boolean column, whether a decoded record says that its group has members.

    The record of a classic group holds all members. Other groups have a record for each member, which is deleted when
    the member leaves. Null: the record is of another kind. A record that can't be decoded shows no members.
    """
    is_kind = F.col("problem").isNull() & ~F.col("tombstone")
    return F.when(
        F.col("kind") == _CLASSIC, F.when(is_kind, F.coalesce(member_count() > 0, F.lit(False))).otherwise(False)
    ).when(F.col("kind").isin(*_ONE_MEMBER), is_kind)


def with_members(rows: DataFrame) -> DataFrame:
    """Return the rows with two more columns, sorted and distributed by group.

    has_members: whether the group had members at the row's offset of the log. had_members: whether it had any at this
    offset or before. Both are false before the first record of a member in ``rows``.

    rows: the records of some groups, with the columns log_partition, group, log_offset, kind, member and shows_members
    (`shows_members`).
    """
    # Each window below needs the rows of a group together. Otherwise Spark would exchange them for each window.
    rows = rows.repartition("log_partition", "group")
    of_record = Window.partitionBy("log_partition", "group", "kind", "member").orderBy("log_offset")
    until_now = (
        Window.partitionBy("log_partition", "group")
        .orderBy("log_offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    shown = F.col("shows_members").cast("int")
    rows = rows.withColumn("_joined", shown - F.coalesce(F.lag(shown).over(of_record), F.lit(0)))
    return rows.withColumns(
        {
            "has_members": F.coalesce(F.sum("_joined").over(until_now) > 0, F.lit(False)),
            "had_members": F.coalesce(F.max("shows_members").over(until_now), F.lit(False)),
        }
    ).drop("_joined")
