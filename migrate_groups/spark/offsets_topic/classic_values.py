"""Decode the record of a classic group's generation: ``GroupMetadataValue.json``, versions 0 to 3."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.offsets_topic.record_bytes import (
    after_bytes,
    after_string,
    bind,
    has_all_before,
    let,
    number,
    place,
    string,
    strings,
)

VERSIONS = (0, 1, 2, 3)
"""The known versions of the record's value."""

# The smallest size in bytes of a member, a topic and a partition. It limits the counts that a damaged record can claim.
_LEAST_MEMBER, _LEAST_TOPIC, _LEAST_PARTITION = 18, 2, 4
_TEXTS, _PARTITIONS = "array<string>", "array<struct<topic:string,partition:int>>"
MEMBER_TYPES = {
    "member_id": "string",
    "client_id": "string",
    "client_host": "string",
    "rebalance_timeout_ms": "int",
    "topics": _TEXTS,
    "regex": "string",
    "partitions": _PARTITIONS,
}
"""The fields of a member, of a classic group or by KIP-848, and their types in Spark."""

# Functions, because PySpark makes hundreds of calls to Java for a field, also for one that is not used.
Fields = Mapping[str, Callable[[], Column]]
"""The fields of one member: by name, a function that returns the column."""


def array_of(fields: Collection[str]) -> str:
    """Return the type of a list of members with some of the fields in `MEMBER_TYPES`."""
    return f"array<struct<{','.join(f'{name}:{of}' for name, of in MEMBER_TYPES.items() if name in fields)}>>"


def member_struct(found: Fields, fields: Collection[str]) -> Column:
    """Return a member as a struct with some of its fields. found: all fields in `MEMBER_TYPES`."""
    return F.struct(*(found[name]().cast(of).alias(name) for name, of in MEMBER_TYPES.items() if name in fields))


def member_count() -> Column:
    """Return how many members the record of a classic group has; null: it can't be decoded."""
    version = number(F.lit(1), 2)

    def count(at: Column) -> Column:
        found = number(at, 4)
        # A record that is cut short must not count members that it does not have.
        return F.when(has_all_before(at + 4 + F.greatest(found, F.lit(0)) * _LEAST_MEMBER), found)

    counted = let(after_string(F.lit(3)), lambda generation: let(members_at(generation, version), count))
    return F.when(version.isin(*VERSIONS), counted)


def members_at(generation: Column, version: Column) -> Column:
    """Return the position of the number of members in the record of a classic group's generation.

    generation: the position of the generation's number. version: the version of the record's value.
    """
    return let(
        after_string(generation + 4),  # after the generation and the assignor
        lambda leader: place(after_string(leader) + F.when(version >= 2, 8).otherwise(0)),
    )


def members(count_at: Column, version: Column, fields: Collection[str]) -> Column:
    """Return the members that the record of a classic group's generation lists; null if its length is wrong.

    count_at: the result of `members_at`. version: that of the record. fields: the fields of a member to decode.
    """
    found = number(count_at, 4)
    count = F.least(found, F.octet_length("value") / _LEAST_MEMBER).cast("int")

    def decoded(start: Column) -> Column:
        return _member_fields(start, version, lambda *places: member_struct(_member(start, version, places), fields))

    return bind(
        _member_starts(count_at + 4, count, version),
        lambda read: F.when(found == 0, F.array().cast(array_of(fields))).when(
            (found > 0) & (found == count) & (read["at"] == F.octet_length("value") + 1),
            F.transform(read["starts"], decoded),
        ),
    )


def _member_starts(at: Column, count: Column, version: Column) -> Column:
    """Return the positions at which the members in a classic group's record begin, and the position after the last one.

    at: the position of the first member. count: their number; at least one is read. version: that of the record. The
    result is a struct with the fields ``starts`` (an array of positions) and ``at`` (the position after the members).
    """
    begun = F.struct(at.cast("int").alias("at"), F.array().cast("array<int>").alias("starts"))

    def step(state: Column, _: Column) -> Column:
        after = _member_fields(state["at"], version, lambda *places: place(after_bytes(places[-1])))
        return F.struct(after.alias("at"), F.array_append(state["starts"], state["at"]).alias("starts"))

    # Only positions are collected, because each step copies what the steps before it collected.
    return F.aggregate(F.sequence(F.lit(1), F.greatest(count, F.lit(1))), begun, step)


def _member_fields(start: Column, version: Column, then: Callable[[Column, Column, Column, Column], Column]) -> Column:
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


def _member(start: Column, version: Column, places: tuple[Column, Column, Column, Column]) -> Fields:
    """Return the fields of a classic member. start: where it begins. places: of the fields as in `_member_fields`."""
    client, host, subscription, assignment = places
    return {
        "member_id": lambda: string(start)[1],
        "client_id": lambda: string(client)[1],
        "client_host": lambda: string(host)[1],
        # The timeouts come before the subscription. Version 0 has one, which is for both sessions and rebalances.
        "rebalance_timeout_ms": lambda: number(subscription - F.when(version >= 1, 8).otherwise(4), 4),
        "topics": lambda: F.when(number(subscription, 4) >= 6, _subscribed(subscription + 6)).otherwise(
            F.array().cast(_TEXTS)
        ),
        "regex": lambda: F.lit(None),
        "partitions": lambda: F.when(number(assignment, 4) >= 6, _assigned(assignment + 6)).otherwise(
            F.array().cast(_PARTITIONS)
        ),
    }


def _subscribed(at: Column) -> Column:
    """Return the topics of a member's subscription, sorted. at: the position at which the list of topics begins."""
    return F.array_sort(strings(at + 4, number(at, 4), string)["texts"])


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
            topic = string(state["at"])[1]
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
