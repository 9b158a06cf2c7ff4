"""Decode the records of ``__consumer_offsets``, as Kafka's message definitions up to 4.3 describe them.

No record fails the job. If a record can't be decoded, the column problem says why.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from migrate_groups.spark.files import CHECKED, spark_path
from migrate_groups.spark.offsets_topic.evidence import Range
from migrate_groups.spark.offsets_topic.record_bytes import fold, signed, text, unsigned

RAW = StructType(
    [
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("log_offset", LongType(), nullable=False),
        StructField("log_time", TimestampType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("producer_id", LongType()),
    ]
)
"""The columns of a copied log, the copy of the offsets topic's log in files.

log_partition, log_offset: the record's partition and offset in the offsets topic. log_time: when it was written. kind:
``record``, ``control`` or ``aborted``. key, value: bytes. producer_id: of the record's transaction; null: none."""

KINDS = {
    0: "offset-commit",
    1: "offset-commit",
    2: "group-metadata",
    3: "consumer-group-metadata",
    4: "consumer-group-partition-metadata",
    5: "consumer-group-member-metadata",
    6: "consumer-group-target-assignment-metadata",
    7: "consumer-group-target-assignment-member",
    8: "consumer-group-current-member-assignment",
    10: "share-group-member-metadata",
    11: "share-group-metadata",
    12: "share-group-target-assignment-metadata",
    13: "share-group-target-assignment-member",
    14: "share-group-current-member-assignment",
    15: "share-group-state-partition-metadata",
    16: "consumer-group-regular-expression",
    17: "streams-group-metadata",
    19: "streams-group-member-metadata",
    20: "streams-group-target-assignment-metadata",
    21: "streams-group-target-assignment-member",
    22: "streams-group-current-member-assignment",
    23: "streams-group-topology",
}
"""The kind of a record, by the number with which its key begins. Any other number N has the kind ``type-N``."""

OFFSET_COMMIT = "offset-commit"
GROUP_RECORDS = ("group-metadata", "consumer-group-metadata", "streams-group-metadata")
"""The kinds of records that exist as long as their group: of a classic, a consumer (KIP-848) and a streams group
(KIP-1071)."""

# In keys of these types a second string follows the group: the topic of a commit, a member id or, in type 16, a regular
# expression.
_WITH_SECOND = (0, 1, 5, 7, 8, 10, 13, 14, 16, 19, 21, 22)
_COMMIT_VERSIONS = (0, 1, 2, 3, 4)
# A value of version 4 ends with tagged fields: their number, then for each its tag, its length and its bytes, in the
# order of the tags. The topic id has tag 0 and 16 bytes. Kafka writes no topic id of zeros. The patterns match
# hexadecimal digits.
_TOPIC_ID_BYTES = 1 + 2 + 16
_TOPIC_ID = "^(?!00)..0010(?!0{32})"
_CUT_SHORT_TOPIC_ID = "^(?!00)..(?!0010.{32})(00|$)"
# The end of the year 9999, because Python can't represent later timestamps.
_LAST_MILLISECOND = 253_402_300_799_999


class CopiedFiles(NamedTuple):
    """A copy of the log of ``__consumer_offsets`` in a folder of Parquet files.

    - ranges: the range of offsets that was copied from each partition.
    - consistent: ranges (partition, first offset, end) in which, if a record is there, compaction has removed no later
      record of the same key.
    - copied_at: when the ends of the ranges were read. of_followers: partitions whose end may not be that of the log.
    """

    folder: str
    ranges: Sequence[Range]
    cluster_id: str
    consistent: Sequence[tuple[int, int, int]] = ()
    copied_at: datetime | None = None
    of_followers: Collection[int] = ()


def copied_log(spark: SparkSession, folder: str) -> DataFrame:
    """Return the copied log of ``__consumer_offsets``. folder: Parquet files with the columns of `RAW`."""
    return spark.read.options(**CHECKED).schema(RAW).parquet(spark_path(folder))


def decode(raw: DataFrame, *more: str) -> DataFrame:
    """Decode the records of ``__consumer_offsets``. Control records and aborted records are left out.

    raw: the copied records (columns: `RAW`). more: further columns of ``raw`` to keep. Columns of the result:

    - log_partition, log_offset, log_time, group.
    - key: bytes. kind: the name of the record's kind, such as ``offset-commit``.
    - member: the member id or regular expression in the key, or null.
    - tombstone: whether the value is null. problem: why the record can't be decoded, or null.
    - of commits: topic, partition, version, offset, leader_epoch, topic_id (hexadecimal), metadata, commit_time,
      expire_time.
    - of other records: value (bytes).
    """
    # A key begins with a two-byte number, the type, followed by the name of the group. The key of a commit continues
    # with topic and partition. A value begins with its version.
    place = ("log_partition", "log_offset", "log_time")
    rows = raw.where(F.col("kind") == "record").select(
        *place,
        "key",
        "value",
        *more,
        F.octet_length("key").alias("_key_size"),
        F.octet_length("value").alias("_value_size"),
        F.when(F.octet_length("key") >= 4, unsigned("key", 1, 4)).alias("_head"),
        # The first 16 bytes of a value, as two numbers. They hold the version, the offset and the fields after it.
        signed("value", 1).alias("_first"),
        signed("value", 9).alias("_next"),
    )
    rows = rows.withColumns(
        {
            "type": fold(F.shiftright("_head", 16), 16),
            "_group_size": _bits("_head", 0, 16),
            "_version": F.shiftright("_first", 48),
            "_commit": F.shiftright("_head", 16).between(0, 1),
            "_two": F.shiftright("_head", 16).isin(*_WITH_SECOND),
        }
    )
    # A string is a two-byte length and its bytes, so its position depends on the length of the string before it.
    rows = rows.withColumns(
        {
            "group": text("key", F.lit(5), F.col("_group_size")),
            "_second_size": fold(unsigned("key", 5 + F.col("_group_size"), 2), 16),
        }
    )
    rows = rows.withColumns(
        {
            "_second": text("key", 7 + F.col("_group_size"), F.col("_second_size")),
            "partition": fold(unsigned("key", -4, 4), 32).cast("int"),
        }
    )
    rows = _with_metadata_place(rows).withColumn("_committed_at", F.col("_metadata_at") + F.col("_metadata_size"))
    after = F.col("_committed_at") + 8
    rows = rows.withColumns(
        {
            "metadata": text("value", F.col("_metadata_at"), F.col("_metadata_size")),
            "_committed": signed("value", F.col("_committed_at")),
            "_expires": F.when(F.col("_version") == 1, signed("value", after)),
            "_tagged": F.when(F.col("_version") == 4, F.hex(F.substring("value", after, _TOPIC_ID_BYTES))),
        }
    )
    rows = rows.withColumn("problem", F.coalesce(_key_problem(), _value_problem()))
    commit, sound = F.col("_commit"), F.col("problem").isNull()
    rows = rows.withColumns(
        {
            "_valued": commit & sound & F.col("value").isNotNull(),
            "_epoch": F.when(F.col("_version") >= 3, _bits("_next", 16, 32)),
        }
    )
    valued, epoch = F.col("_valued"), F.col("_epoch")
    return rows.select(
        *place,
        _kind().alias("kind"),
        "key",
        *more,
        "group",
        F.when(F.col("_two") & ~commit & sound, F.col("_second")).alias("member"),
        F.when(commit & sound, F.col("_second")).alias("topic"),
        F.when(commit & sound, F.col("partition")).alias("partition"),
        F.col("value").isNull().alias("tombstone"),
        F.when(valued, F.col("_version")).cast("int").alias("version"),
        F.when(valued, F.shiftleft("_first", 16).bitwiseOR(_mask("_next", 48, 16))).alias("offset"),
        F.when(valued & (epoch >= 0), epoch).cast("int").alias("leader_epoch"),
        F.when(valued & F.col("_tagged").rlike(_TOPIC_ID), F.substring("_tagged", 7, 32)).alias("topic_id"),
        F.when(valued, F.col("metadata")).alias("metadata"),
        F.when(valued, _time("_committed")).alias("commit_time"),
        F.when(valued, _time("_expires")).alias("expire_time"),
        "problem",
        F.when(~commit, F.col("value")).alias("value"),
    )


def of_kinds(log: DataFrame, *kinds: str) -> DataFrame:
    """Return the records of some kinds. log: decoded records (`decode`). Spark decodes no record of another kind."""
    # Not by kind, because Spark evaluates this filter for each record before it decodes any, and this one is cheap.
    numbers = (f"{number:04X}" for number, kind in KINDS.items() if kind in kinds)
    return log.where(F.hex(F.substring("key", 1, 2)).isin(*numbers))


def in_place(condition: Column) -> Column:
    """Return an equivalent condition that Spark's optimizer does not move before `decode`."""
    # Otherwise Spark would move a filter with this condition before `decode`, and decode each record twice. Spark does
    # not move a nondeterministic condition.
    return F.when(condition, F.monotonically_increasing_id() >= 0)


def _with_metadata_place(rows: DataFrame) -> DataFrame:
    """Return the rows with the columns ``_metadata_at`` and ``_metadata_size``.

    They are the position and the length of a commit's metadata in the record's value.
    """
    # In version 4 the length plus one is a varint: groups of 7 bits, the lowest first. Two groups are enough for 16,382
    # bytes; brokers accept 4,096 characters by default (offset.metadata.max.bytes). Longer metadata is a problem of the
    # record. A third group would make the method that Spark generates too large for the JVM to compile.
    version, one, two = F.col("_version"), _mask("_next", 8, 8), _mask("_next", 0, 8)
    varint = F.when(one < 128, one).when(two < 128, one.bitwiseAND(0x7F) + two * 128)
    return rows.withColumns(
        {
            "_metadata_at": F.when(version <= 2, 13).when(version == 3, 17).when(one < 128, 16).otherwise(17),
            "_metadata_size": F.when(version <= 2, _bits("_next", 32, 16))
            .when(version == 3, _bits("_next", 0, 16))
            .otherwise(varint - 1)
            .cast("int"),
        }
    )


def _key_problem() -> Column:
    size, group, second = F.col("_key_size"), F.col("_group_size"), F.col("_second_size")
    commit, two = F.col("_commit"), F.col("_two")
    expected = 4 + group + F.when(two, 2 + second).otherwise(0) + F.when(commit, 4).otherwise(0)
    return (
        F.when(F.col("key").isNull(), "no key")
        .when(size < 2, "a key of less than 2 bytes")
        .when(size < 4, "a key that is cut short")
        .when(~F.col("type").isin(*KINDS), F.lit(None))
        .when((group < 0) | (two & (F.coalesce(second, F.lit(-1)) < 0)), "a key that is cut short")
        .when(size != expected, "a key of the wrong length")
        .when(F.col("group").isNull() | (two & F.col("_second").isNull()), "a key that is not UTF-8")
        .when(commit & (F.col("partition") < 0), "a negative partition")
    )


def _value_problem() -> Column:
    size, version = F.col("_value_size"), F.col("_version")
    end = F.col("_committed_at") + 7
    tail = F.when(version == 1, 8).otherwise(0)
    return F.when(F.col("_commit") & F.col("value").isNotNull(), (
        F.when(size < 2, "a value of less than 2 bytes")
        .when(~version.isin(*_COMMIT_VERSIONS), "a value of an unknown version")
        .when(size < 20, "a value that is cut short")
        .when(F.col("_metadata_size").isNull(), "metadata that is too long")
        .when(F.col("_metadata_size") < 0, "null metadata")
        # Version 4 ends with at least the number of its tagged fields, which takes one byte or more.
        .when(F.when(version == 4, size <= end).otherwise(size != end + tail), "a value of the wrong length")
        .when(F.col("metadata").isNull(), "metadata that is not UTF-8")
        .when(F.col("_tagged").rlike(_CUT_SHORT_TOPIC_ID), "a topic id that is cut short")
    ))  # fmt: skip


def _kind() -> Column:
    names = F.create_map(*(F.lit(each) for item in KINDS.items() for each in item))
    return F.coalesce(names[F.col("type").cast("int")], F.concat(F.lit("type-"), F.col("type").cast("string")))


def _mask(column: str, shift: int, bits: int) -> Column:
    """Drop the lowest ``shift`` bits of a 64-bit column, and return the next ``bits`` bits as an unsigned number."""
    return F.shiftright(column, shift).bitwiseAND((1 << bits) - 1)


def _bits(column: str, shift: int, bits: int) -> Column:
    """Drop the lowest ``shift`` bits of a 64-bit column, and return the next ``bits`` bits as a signed number."""
    return fold(_mask(column, shift, bits), bits)


def _time(milliseconds: str) -> Column:
    return F.timestamp_millis(F.when(F.col(milliseconds).between(0, _LAST_MILLISECOND), F.col(milliseconds)))
