"""Decode the records of KIP-848 members: their subscriptions, and the partitions that they own.

Messages: ``ConsumerGroupMemberMetadataValue.json`` and ``ConsumerGroupCurrentMemberAssignmentValue.json``, version 0.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.offsets_topic.classic_values import Fields, member_struct
from migrate_groups.spark.offsets_topic.record_bytes import (
    after_compact_string,
    bind,
    compact_string,
    has_all_before,
    let,
    number,
    place,
    strings,
    varint,
)

OWNED = "array<string>"
"""The type of a list of owned partitions in Spark."""

# The smallest size in bytes of a topic (an id of 16 bytes, a count, and tagged fields) and of a partition.
_LEAST_TOPIC, _LEAST_PARTITION, _ID = 18, 4, 16


def fields_at() -> Column:
    """Return the positions of these fields of a KIP-848 member: group instance id, rack, client id, host, topics."""
    return F.aggregate(
        F.sequence(F.lit(1), F.lit(4)),
        F.array(F.lit(3)),
        lambda found, _: F.array_append(found, place(let(F.element_at(found, -1), after_compact_string))),
    )


def topics(fields: Column) -> Column:
    """Return the topics to which a KIP-848 member subscribes, as the result of `strings`. fields: as of `fields_at`."""
    return let(
        fields[4],
        lambda at: let(
            varint(at)[1], lambda count: F.struct(strings(at + varint(at)[0], count - 1, compact_string).alias("of"))
        ),
    )["of"]


def members(places: Column, subscribed: Column, fields: Collection[str]) -> Column:
    """Return a list of the one KIP-848 member of a record; null if the record ends before the member's topics.

    The member's topics are null if the record ends within them. places: the result of `fields_at`. subscribed: the
    result of `topics`. fields: the fields of the member to decode.
    """
    found: Fields = {
        "member_id": lambda: F.col("member"),
        "client_id": lambda: let(places[2], lambda at: compact_string(at)[1]),
        "client_host": lambda: let(places[3], lambda at: compact_string(at)[1]),
        "rebalance_timeout_ms": lambda: F.lit(None),
        "topics": lambda: F.when(has_all_before(subscribed["at"]), F.array_sort(subscribed["texts"])),
        "regex": lambda: F.nullif(let(subscribed["at"], lambda at: compact_string(at)[1]), F.lit("")),
        "partitions": lambda: F.lit(None),
    }
    return F.when(has_all_before(places[4]), F.array(member_struct(found, fields)))


def owned() -> Column:
    """Return the partitions that a KIP-848 member owns; null if the record is cut short."""
    # The version, two epochs and the state are followed by two lists: the assigned partitions, and those to revoke.
    return bind(
        _owned_list(F.lit(12)),
        lambda assigned: bind(
            _owned_list(assigned["at"]),
            lambda to_revoke: F.when(has_all_before(to_revoke["at"]), F.concat(assigned["found"], to_revoke["found"])),
        ),
    )


def _owned_list(start: Column) -> Column:
    """Read the list of topics and partitions that begins at position ``start`` of the record's value.

    Returns a struct of the partitions (``found``, as texts) and the position after the list (``at``).
    """
    begun = F.struct(place(start + varint(start)[0]).alias("at"), F.array().cast(OWNED).alias("found"))
    # At least one, so that a value that ends within its first topic is read beyond its end.
    count = F.least(varint(start)[1] - 1, F.octet_length("value") / _LEAST_TOPIC + 1).cast("int")

    def step(state: Column, _: Column) -> Column:
        numbers = state["at"] + _ID
        size, length = varint(numbers)
        most = F.octet_length("value") / _LEAST_PARTITION
        return let(
            F.greatest(F.least(length - 1, most).cast("int"), F.lit(0)),
            lambda many: F.struct(
                place(_after_tags(numbers + size + 4 * many)).alias("at"),
                F.concat(state["found"], _named(state["at"], numbers + size, many)).alias("found"),
            ),
        )

    stepped = F.aggregate(F.sequence(F.lit(1), F.greatest(count, F.lit(1))), begun, step)
    return F.when(count > 0, stepped).otherwise(begun)


def _named(topic: Column, at: Column, count: Column) -> Column:
    """Return the texts ``<topic id>-<partition>`` for some partitions of a topic.

    topic: the position of the topic id in the record's value. at: the position of the first partition number. count:
    the number of partitions.
    """
    name = F.hex(F.substring("value", topic.cast("int"), _ID))
    texts = F.transform(
        F.sequence(F.lit(0), F.greatest(count - 1, F.lit(0))),
        lambda each: F.concat_ws("-", name, number(at + 4 * each, 4).cast("string")),
    )
    return F.when(count > 0, texts).otherwise(F.array().cast(OWNED))


def _after_tags(at: Column) -> Column:
    """Return the position after the tagged fields that begin at position ``at`` of the record's value."""
    # There is either no field, or AssignmentEpochs (since Kafka 4.3).
    return let(
        place(at + 1 + varint(at + 1)[0]),
        lambda field: F.when(varint(at)[1] == 0, at + 1).otherwise(field + varint(field)[0] + varint(field)[1]),
    )
