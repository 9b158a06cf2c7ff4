"""Decode the members of a group in each generation, from the log of ``__consumer_offsets``.

Messages: ``GroupMetadataValue.json`` (versions 0 to 3) and, for KIP-848, ``ConsumerGroupMemberMetadataValue.json``.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.applications import HOLD_REBALANCE_TIMEOUT
from migrate_groups.spark.offsets_topic.offsets_log import of_kinds
from migrate_groups.spark.offsets_topic.record_bytes import (
    after_bytes,
    after_compact_string,
    after_string,
    bind,
    compact_string,
    fold,
    has_all_before,
    let,
    number,
    place,
    signed,
    string,
    text,
    unsigned,
    varint,
)

_CLASSIC, _KIP_848 = 2, 5
_VERSIONS = (0, 1, 2, 3)
# The smallest size of a member, a topic and a partition in bytes. It limits the counts that a damaged record can claim.
_LEAST_MEMBER, _LEAST_TOPIC, _LEAST_PARTITION = 18, 2, 4
_PARTITIONS = "array<struct<topic:string,partition:int>>"


def generations(raw: DataFrame) -> DataFrame:
    """Return one row for each generation of a classic consumer group. Connect and other protocol types are left out.

    raw: the copied records of ``__consumer_offsets`` (`offsets_log.RAW`).

    Columns: group, log_partition, log_offset, log_time, generation, assignor, members. The column members is a list of
    structs (member_id, client_id, rebalance_timeout_ms, topics, partitions), without the member of a hold; null: it
    can't be decoded.
    """
    rows = records(raw, _CLASSIC)
    version = F.when(F.octet_length("value") >= 2, number(F.lit(1), 2))
    protocol_type = text("value", F.lit(5), number(F.lit(3), 2))
    rows = rows.where(version.isin(*_VERSIONS)).select(
        "*",
        version.alias("_version"),
        F.coalesce(protocol_type, F.lit("")).alias("_type"),
        place(after_string(F.lit(3))).alias("_generation_at"),
    )
    rows = rows.where(F.col("_type").isin("", "consumer"))
    rows = rows.withColumn("_members_at", _members_at(F.col("_generation_at"), F.col("_version")))
    size = number(F.col("_generation_at") + 4, 2)
    return rows.select(
        "group",
        "log_partition",
        "log_offset",
        "log_time",
        number(F.col("_generation_at"), 4).cast("int").alias("generation"),
        F.coalesce(text("value", F.col("_generation_at") + 6, size), F.lit("")).alias("assignor"),
        _members().alias("members"),
    )


def member_count() -> Column:
    """Return how many members the record of a classic group has in its column ``value``; null: it can't be decoded."""
    version = number(F.lit(1), 2)

    def count(at: Column) -> Column:
        found = number(at, 4)
        # A record that is cut short must not count members that it does not have.
        return F.when(has_all_before(at + 4 + F.greatest(found, F.lit(0)) * _LEAST_MEMBER), found)

    counted = let(after_string(F.lit(3)), lambda generation: let(_members_at(generation, version), count))
    return F.when(version.isin(*_VERSIONS), counted)


def _members_at(generation: Column, version: Column) -> Column:
    """Return the position of the number of members in the record of a classic group's generation.

    generation: the position of the generation's number. version: the version of the record's value.
    """
    return let(
        after_string(generation + 4),  # after the generation and the assignor
        lambda leader: place(after_string(leader) + F.when(version >= 2, 8).otherwise(0)),
    )


def consumers(raw: DataFrame) -> DataFrame:
    """Return one row for each record that has the subscription of a KIP-848 member.

    raw: the copied records of ``__consumer_offsets`` (`offsets_log.RAW`). Columns: group, log_partition, log_offset,
    log_time, member_id, client_id, topics (null: they can't be decoded), regex (the regular expression, or null).
    """
    rows = records(raw, _KIP_848).where(number(F.lit(1), 2) == 0)
    # The positions of the group instance id, the rack, the client id, the host and the topics.
    places = F.aggregate(
        F.sequence(F.lit(1), F.lit(4)),
        F.array(F.lit(3)),
        lambda found, _: F.array_append(found, place(let(F.element_at(found, -1), after_compact_string))),
    )
    rows = rows.withColumn("_at", places)
    topics = let(
        F.col("_at")[4],
        lambda at: let(
            varint(at)[1], lambda count: F.struct(_strings(at + varint(at)[0], count - 1, compact_string).alias("of"))
        ),
    )["of"]
    rows = rows.withColumn("_topics", topics)
    return rows.select(
        "group",
        "log_partition",
        "log_offset",
        "log_time",
        F.col("member").alias("member_id"),
        let(F.col("_at")[2], lambda at: compact_string(at)[1]).alias("client_id"),
        F.when(has_all_before(F.col("_topics")["at"]), F.array_sort(F.col("_topics")["texts"])).alias("topics"),
        F.nullif(let(F.col("_topics")["at"], lambda at: compact_string(at)[1]), F.lit("")).alias("regex"),
    )


def commits(raw: DataFrame) -> DataFrame:
    """Return one row for each commit in the copied records of ``__consumer_offsets`` (`offsets_log.RAW`).

    Columns: group, topic, partition, log_partition, log_offset, log_time, offset (null: it can't be decoded).
    """
    # No other field of a commit is decoded, because the callers need none.
    said = of_kinds(raw, (0, 1)).where(F.col("kind") == "record")
    group_size = fold(unsigned("key", 3, 2), 16)
    sized = said.where(F.col("value").isNotNull()).select(
        *("log_partition", "log_offset", "log_time", "key"),
        group_size.alias("_size"),
        F.when(F.octet_length("value") >= 10, signed("value", 3)).alias("offset"),
    )
    sized = sized.withColumn("_topic_size", fold(unsigned("key", 5 + F.col("_size"), 2), 16))
    return sized.where(F.octet_length("key") == 10 + F.col("_size") + F.col("_topic_size")).select(
        text("key", F.lit(5), F.col("_size")).alias("group"),
        text("key", 7 + F.col("_size"), F.col("_topic_size")).alias("topic"),
        fold(unsigned("key", -4, 4), 32).cast("int").alias("partition"),
        *("log_partition", "log_offset", "log_time", "offset"),
    )


def records(raw: DataFrame, kind: int, *, deleted: bool = False) -> DataFrame:
    """Return the records of ``__consumer_offsets`` that have a valid key of one type.

    raw: the copied records (`offsets_log.RAW`). kind: the number with which the key begins. deleted: include
    tombstones. Columns: group, member (member id; empty for a classic group), log_partition, log_offset, log_time,
    value (bytes).
    """
    said = of_kinds(raw, (kind,)).where(F.col("kind") == "record")
    group_size = fold(unsigned("key", 3, 2), 16)
    member_size = fold(unsigned("key", 5 + group_size, 2), 16)
    has_member = kind != _CLASSIC
    size = 4 + group_size + (2 + member_size if has_member else 0)
    return said.where((F.lit(deleted) | F.col("value").isNotNull()) & (F.octet_length("key") == size)).select(
        text("key", F.lit(5), group_size).alias("group"),
        (text("key", 7 + group_size, member_size) if has_member else F.lit("")).alias("member"),
        *("log_partition", "log_offset", "log_time", "value"),
    ).where(F.col("group").isNotNull())  # fmt: skip


def member_starts(at: Column, count: Column, version: Column) -> Column:
    """Return the positions at which the members in a classic group's record begin, and the position after the last one.

    at: the position of the first member. count: their number; at least one is read. version: that of the record. The
    result is a struct with the fields ``starts`` (an array of positions) and ``at`` (the position after the members).
    """
    begun = F.struct(at.cast("int").alias("at"), F.array().cast("array<int>").alias("starts"))

    def step(state: Column, _: Column) -> Column:
        after = member_fields(state["at"], version, lambda *places: place(after_bytes(places[-1])))
        return F.struct(after.alias("at"), F.array_append(state["starts"], state["at"]).alias("starts"))

    # Only positions are collected, because each step copies what the steps before it collected.
    return F.aggregate(F.sequence(F.lit(1), F.greatest(count, F.lit(1))), begun, step)


def member_fields(start: Column, version: Column, then: Callable[[Column, Column, Column, Column], Column]) -> Column:
    """Return ``then(client, host, subscription, assignment)``: the positions of these fields of a classic member.

    start: the position at which the member begins. version: that of the record.
    """
    instance = after_string(start)
    return let(
        F.when(version >= 3, after_string(instance)).otherwise(instance),
        lambda client: let(
            after_string(client),
            lambda host: let(
                after_string(host) + F.when(version >= 1, 8).otherwise(4),
                lambda subscription: let(
                    after_bytes(subscription), lambda assignment: then(client, host, subscription, assignment)
                ),
            ),
        ),
    )


def _members() -> Column:
    """Return the consumers that the record of a classic group's generation lists; null if the record is cut short."""
    found, version = number(F.col("_members_at"), 4), F.col("_version")
    count = F.least(found, F.octet_length("value") / _LEAST_MEMBER).cast("int")
    nobody = F.array().cast(_MEMBERS)

    def decoded(start: Column) -> Column:
        return member_fields(
            start, version, lambda client, _, subscription, assignment: _member(start, client, subscription, assignment)
        )

    return bind(
        member_starts(F.col("_members_at") + 4, count, version),
        lambda read: F.when(found == 0, nobody).when(
            (found > 0) & (found == count) & (read["at"] == F.octet_length("value") + 1),
            F.filter(F.transform(read["starts"], decoded), lambda each: ~_holds(each)),
        ),
    )


def _holds(member: Column) -> Column:
    """Return whether a member, as a struct, is this tool's own, which kept consumers out of the group."""
    return member["rebalance_timeout_ms"].eqNullSafe(F.lit(int(HOLD_REBALANCE_TIMEOUT * 1000)))


_MEMBERS = (
    "array<struct<member_id:string,client_id:string,rebalance_timeout_ms:int,topics:array<string>,"
    f"partitions:{_PARTITIONS}>>"
)


def _member(member_id: Column, client_id: Column, subscription: Column, assignment: Column) -> Column:
    """Return one member as a struct. Each argument is the position in the record's value where that field begins."""
    timeout = F.when(F.col("_version") >= 1, number(subscription - 8, 4)).otherwise(number(subscription - 4, 4))
    topics = _strings(subscription + 10, number(subscription + 6, 4), string)["texts"]
    return F.struct(
        text("value", member_id + 2, number(member_id, 2)).alias("member_id"),
        text("value", client_id + 2, number(client_id, 2)).alias("client_id"),
        timeout.cast("int").alias("rebalance_timeout_ms"),
        F.when(number(subscription, 4) >= 6, F.array_sort(topics))
        .otherwise(F.array().cast("array<string>"))
        .alias("topics"),
        F.when(number(assignment, 4) >= 6, _assigned(assignment + 6))
        .otherwise(F.array().cast(_PARTITIONS))
        .alias("partitions"),
    )


def _assigned(at: Column) -> Column:
    """Return the partitions of a member's assignment, as an array of structs (topic, partition).

    at: the position in the record's value at which the list of topics begins. The first position is 1.
    """
    count = F.least(number(at, 4), F.octet_length("value") / _LEAST_TOPIC).cast("int")
    begun = F.struct((at + 4).cast("int").alias("at"), F.array().cast(_PARTITIONS).alias("found"))

    def step(state: Column, _: Column) -> Column:
        def with_partitions(numbers: Column) -> Column:
            most = F.octet_length("value") / _LEAST_PARTITION
            count = F.greatest(F.least(number(numbers, 4), most).cast("int"), F.lit(0))
            topic = text("value", state["at"] + 2, number(state["at"], 2))
            made = F.transform(
                F.sequence(F.lit(1), F.greatest(count, F.lit(1))),
                lambda each: F.struct(
                    topic.alias("topic"), number(numbers + 4 * each, 4).cast("int").alias("partition")
                ),
            )
            return F.struct(
                place(numbers + 4 + 4 * count).alias("at"),
                F.when(count > 0, F.concat(state["found"], made)).otherwise(state["found"]).alias("found"),
            )

        return let(after_string(state["at"]), with_partitions)

    stepped = F.aggregate(F.sequence(F.lit(1), F.greatest(count, F.lit(1))), begun, step)["found"]
    return F.when(count > 0, stepped).otherwise(F.array().cast(_PARTITIONS))


def _strings(at: Column, count: Column, read: Callable[[Column], tuple[Column, Column]]) -> Column:
    """Return ``count`` strings of the record's value, from position ``at`` on, and the position after the strings.

    The result is a struct with the fields ``texts`` (the strings) and ``at`` (the position after the strings). read:
    takes the position of a string, and returns the position after the string, and the string.
    """
    bounded = F.least(count, F.octet_length("value") / _LEAST_TOPIC).cast("int")
    begun = F.struct(place(at).alias("at"), F.array().cast("array<string>").alias("texts"))

    def step(state: Column, _: Column) -> Column:
        after, said = read(state["at"])
        return F.struct(place(after).alias("at"), F.array_append(state["texts"], said).alias("texts"))

    stepped = F.aggregate(F.sequence(F.lit(1), F.greatest(bounded, F.lit(1))), begun, step)
    return F.when(bounded > 0, stepped).otherwise(begun)
