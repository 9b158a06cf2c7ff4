"""Find out when partitions of KIP-848 groups had no owner. The owner is the member to which a partition is assigned."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.offsets_topic.consumer_values import OWNED


def without_owner(owned: DataFrame, of_member: DataFrame) -> DataFrame:
    """Return the periods in which partitions of an application (`overload`) were assigned to no member.

    Periods that have not ended are left out. owned: the result of `group_records.owners`. of_member: columns
    group, member_id, application. Columns: group, application, begun, seconds, whole (whether every partition of the
    application lost its owner).
    """
    # A partition loses its owner when the owner's next record no longer lists the partition, or deletes the member. It
    # gets an owner when a record of any member lists it.
    own = Window.partitionBy("group", "member_id").orderBy("log_offset")
    none = F.array().cast(OWNED)
    before = F.coalesce(F.lag("owned").over(own), none)
    rows = owned.where(F.col("owned").isNotNull()).withColumn("_before", before).join(of_member, ["group", "member_id"])
    changes = rows.select(
        *("group", "application", "log_offset", "log_time"),
        F.explode(
            F.concat(
                F.transform(F.array_except("_before", "owned"), lambda each: _change(each, lost=True)),
                F.transform(F.array_except("owned", "_before"), lambda each: _change(each, lost=False)),
            )
        ).alias("_change"),
    ).select("*", "_change.*")
    in_order = Window.partitionBy("group", "partition").orderBy("log_offset")
    spells = changes.withColumn("ended", F.lead("log_time").over(in_order)).where(
        F.col("lost") & F.col("ended").isNotNull()
    )
    ordered = Window.partitionBy("group", "application").orderBy("log_time", "ended")
    earlier = ordered.rowsBetween(Window.unboundedPreceding, -1)
    # Periods that overlap are merged.
    new = F.coalesce(F.col("log_time") > F.max("ended").over(earlier), F.lit(True))
    spells = spells.withColumn("_new", new.cast("int")).withColumn("_number", F.sum("_new").over(ordered))
    every = changes.groupBy("group", "application").agg(F.count_distinct("partition").alias("_partitions"))
    return (
        spells.groupBy("group", "application", "_number")
        .agg(
            F.min("log_time").alias("begun"),
            F.max("ended").alias("_ended"),
            F.count_distinct("partition").alias("_lost"),
        )
        .join(every, ["group", "application"])
        .select(
            *("group", "application", "begun"),
            ((F.unix_micros("_ended") - F.unix_micros("begun")) / 1e6).alias("seconds"),
            (F.col("_lost") == F.col("_partitions")).alias("whole"),
        )
    )


def _change(partition: Column, *, lost: bool) -> Column:
    return F.struct(partition.alias("partition"), F.lit(lost).alias("lost"))
