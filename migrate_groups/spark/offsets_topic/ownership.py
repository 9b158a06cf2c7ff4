"""Find out when partitions of KIP-848 groups had no owner. The owner is the member to which a partition is assigned."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.offsets_topic.generations import records
from migrate_groups.spark.offsets_topic.record_bytes import bind, has_all_before, let, number, place, varint

_ASSIGNMENT = 8
# The smallest size in bytes of a topic (an id of 16 bytes, a count, and tagged fields) and of a partition.
_LEAST_TOPIC, _LEAST_PARTITION, _ID = 18, 4, 16
_OWNED = "array<string>"


def owners(raw: DataFrame) -> DataFrame:
    """Return the partitions that each KIP-848 member owns, one row for each assignment record.

    raw: the copied records of ``__consumer_offsets`` (`offsets_log.RAW`). Columns: group, member_id, log_offset,
    log_time, owned (a list of texts ``<topic id>-<partition>``; null: the record can't be decoded).
    """
    rows = records(raw, _ASSIGNMENT, deleted=True)
    sound = F.col("value").isNull() | (number(F.lit(1), 2) == 0)
    # The version, two epochs and the state are followed by two lists: the assigned partitions, and those to revoke.
    owned = bind(
        _partitions(F.lit(12)),
        lambda first: bind(_partitions(first["at"]), lambda second: _joined_if_complete(first, second)),
    )
    none = F.array().cast(_OWNED)
    return rows.where(sound).select(
        "group",
        F.col("member").alias("member_id"),
        "log_offset",
        "log_time",
        F.when(F.col("value").isNull(), none).otherwise(owned).alias("owned"),
    )


def _joined_if_complete(assigned: Column, to_revoke: Column) -> Column:
    return F.when(has_all_before(to_revoke["at"]), F.concat(assigned["found"], to_revoke["found"]))


def without_owner(owned: DataFrame, of_member: DataFrame) -> DataFrame:
    """Return the periods in which partitions of an application (members that share topics) were assigned to no member.

    Periods that have not ended are left out. owned: the result of `owners`. of_member: columns group, member_id,
    application. Columns: group, application, begun, seconds, whole (whether every partition of the application lost its
    owner).
    """
    # A partition loses its owner when the owner's next record no longer lists the partition, or deletes the member. It
    # gets an owner when a record of any member lists it.
    own = Window.partitionBy("group", "member_id").orderBy("log_offset")
    none = F.array().cast(_OWNED)
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


def _partitions(start: Column) -> Column:
    """Read the list of topics and partitions that begins at position ``start`` of the record's value.

    Returns a struct of the partitions (``found``, as texts) and the position after the list (``at``).
    """
    begun = F.struct(place(start + varint(start)[0]).alias("at"), F.array().cast(_OWNED).alias("found"))
    # At least one, so that a value that ends within its first topic is read beyond its end.
    count = F.least(varint(start)[1] - 1, F.octet_length("value") / _LEAST_TOPIC + 1).cast("int")

    def step(state: Column, _: Column) -> Column:
        numbers = state["at"] + _ID
        most = F.octet_length("value") / _LEAST_PARTITION
        size, length = varint(numbers)
        return let(
            F.greatest(F.least(length - 1, most).cast("int"), F.lit(0)),
            lambda many: F.struct(
                place(_after_tags(numbers + size + 4 * many)).alias("at"),
                F.concat(state["found"], F.when(many > 0, _named(state["at"], numbers + size, many)).otherwise(
                    F.array().cast(_OWNED)
                )).alias("found"),
            ),
        )  # fmt: skip

    stepped = F.aggregate(F.sequence(F.lit(1), F.greatest(count, F.lit(1))), begun, step)
    return F.when(count > 0, stepped).otherwise(begun)


def _named(topic: Column, at: Column, count: Column) -> Column:
    """Return the texts ``<topic id>-<partition>`` for some partitions of a topic.

    topic: the position of the topic id in the record's value. at: the position of the first partition number. count:
    the number of partitions, 1 or more.
    """
    name = F.hex(F.substring("value", topic.cast("int"), _ID))
    return F.transform(
        F.sequence(F.lit(0), count - 1),
        lambda each: F.concat_ws("-", name, number(at + 4 * each, 4).cast("string")),
    )


def _after_tags(at: Column) -> Column:
    """Return the position after the tagged fields that begin at position ``at`` of the record's value."""
    # There is either no field, or AssignmentEpochs (since Kafka 4.3).
    return let(
        place(at + 1 + varint(at + 1)[0]),
        lambda field: F.when(varint(at)[1] == 0, at + 1).otherwise(field + varint(field)[0] + varint(field)[1]),
    )
