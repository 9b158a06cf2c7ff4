"""Decode the values of the records about groups in ``__consumer_offsets``: generations, members, owned partitions.

Messages: ``GroupMetadataValue.json`` (versions 0 to 3) and, for KIP-848, ``ConsumerGroupMemberMetadataValue.json`` and
``ConsumerGroupCurrentMemberAssignmentValue.json``. No record fails the job. What can't be decoded is null.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.offsets_topic import classic_values, consumer_values
from migrate_groups.spark.offsets_topic.classic_values import MEMBER_TYPES, array_of
from migrate_groups.spark.offsets_topic.offsets_log import in_place, of_kinds
from migrate_groups.spark.offsets_topic.record_bytes import after_string, number, place, string

CLASSIC, MEMBER = "group-metadata", "consumer-group-member-metadata"
"""The kinds of the records that list members: all members of a classic group, and one KIP-848 member."""

_ASSIGNMENT, _STREAMS_MEMBER = "consumer-group-current-member-assignment", "streams-group-member-metadata"
_PLACE = ("group", "log_partition", "log_offset", "log_time")


def group_records(log: DataFrame, fields: Collection[str] = tuple(MEMBER_TYPES)) -> DataFrame:
    """Return one row for each record of the kinds `CLASSIC` and `MEMBER` that has a valid key.

    log: decoded records (`offsets_log.decode`). fields: the fields of a member to decode.

    Columns:

    - group, log_partition, log_offset, log_time, kind, member (the member id in the key, or null), tombstone.
    - generation, assignor, protocol_type: of a classic group; null in other records.
    - members: all members of a classic group, with the member of a hold; of a KIP-848 member a list of this member.
      Fields: `classic_values.MEMBER_TYPES`. Empty in a tombstone; null: the record can't be decoded.
    """
    kind, version = F.col("kind"), F.col("_version")
    rows = _with_version(log, CLASSIC, MEMBER)
    is_classic, is_member = (
        (kind == CLASSIC) & version.isin(*classic_values.VERSIONS),
        (kind == MEMBER) & (version == 0),
    )
    # Positions are columns, so that Spark computes each once.
    rows = rows.withColumns(
        {
            "_generation_at": F.when(is_classic, place(after_string(F.lit(3)))),
            "_fields_at": F.when(is_member, consumer_values.fields_at()),
        }
    )
    generation_at, fields_at = F.col("_generation_at"), F.col("_fields_at")
    rows = rows.withColumns(
        {
            "_members_at": F.when(is_classic, classic_values.members_at(generation_at, version)),
            "_topics": F.when(is_member, consumer_values.topics(fields_at)),
        }
    )
    members = (
        F.when(F.col("tombstone"), F.array().cast(array_of(fields)))
        .when(is_classic, classic_values.members(F.col("_members_at"), version, fields))
        .when(is_member, consumer_values.members(fields_at, F.col("_topics"), fields))
    )
    return rows.select(
        *(*_PLACE, "kind", "member", "tombstone"),
        number(generation_at, 4).cast("int").alias("generation"),
        F.when(is_classic, F.coalesce(string(generation_at + 4)[1], F.lit(""))).alias("assignor"),
        F.when(is_classic, F.coalesce(string(F.lit(3))[1], F.lit(""))).alias("protocol_type"),
        members.alias("members"),
    )


def owners(log: DataFrame) -> DataFrame:
    """Return the partitions that each KIP-848 member owns, one row for each record of an assignment.

    log: decoded records (`offsets_log.decode`). Columns: group, log_partition, log_offset, log_time, member_id, owned
    (a list of texts ``<topic id>-<partition>``; null: the record can't be decoded).
    """
    owned = F.when(F.col("tombstone"), F.array().cast(consumer_values.OWNED)).when(
        F.col("_version") == 0, consumer_values.owned()
    )
    rows = _with_version(log, _ASSIGNMENT)
    return rows.select(*_PLACE, F.col("member").alias("member_id"), owned.alias("owned"))


def _with_version(log: DataFrame, *kinds: str) -> DataFrame:
    """Return the records of some kinds that have a valid key, with the column ``_version`` (of the value)."""
    rows = of_kinds(log, *kinds).where(in_place(F.col("problem").isNull()))
    return rows.withColumn("_version", F.when(F.octet_length("value") >= 2, number(F.lit(1), 2)))


def shows_members() -> Column:
    """Return, as a boolean column, whether a record that `offsets_log.decode` returned says that its group has members.

    The record of a classic group holds all members. Other groups have a record for each member, which is deleted when
    the member leaves. Null: the record is of another kind. A record that can't be decoded shows no members.
    """
    is_sound = F.col("problem").isNull() & ~F.col("tombstone")
    some_members = F.when(is_sound, classic_values.member_count() > 0)
    return F.when(F.col("kind") == CLASSIC, F.coalesce(some_members, F.lit(False))).when(
        F.col("kind").isin(MEMBER, _STREAMS_MEMBER), is_sound
    )
