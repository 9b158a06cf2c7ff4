"""Read numbers, texts and positions in the bytes of a binary column, as expressions of Spark.

A position is the number of a byte; the first is 1. Most functions read the column ``value`` of the records of
``__consumer_offsets``: Kafka's types in it are int16, int32, int64, string, bytes and, in flexible versions of a
message, varint and compact string (https://kafka.apache.org/protocol#protocol_types).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

# The smallest size of a string in bytes. It limits the number of strings that a damaged record can claim.
_LEAST_SIZE = 2


def unsigned(column: str, start: Column | int, size: int) -> Column:
    """Return the unsigned number in ``size`` bytes (at most 7) of a binary column, from position ``start`` on.

    The first position is 1, the last -1. The result is null if no byte is there, and wrong if there are fewer than
    ``size``.
    """
    # Numbers are read with conv, because in ANSI mode a cast that overflows would fail the job.
    return F.conv(F.hex(F.substring(column, start, size)), 16, 10).cast("bigint")


def signed(column: str, start: Column | int) -> Column:
    """Return the signed number in 8 bytes of a binary column, from position ``start`` on. The first position is 1."""
    return F.conv(F.hex(F.substring(column, start, 8)), 16, -10).cast("bigint")


def fold(number: Column, bits: int) -> Column:
    """Return the signed number that has the same bits as an unsigned number of ``bits`` bits."""
    sign = 1 << (bits - 1)
    return number.bitwiseXOR(sign) - sign


def text(column: str, start: Column, size: Column) -> Column:
    """Return the text in ``size`` bytes of a binary column, from position ``start`` on. The first position is 1.

    The result is null if the bytes are not UTF-8, or if ``size`` is negative.
    """
    return F.when(size >= 0, F.try_validate_utf8(F.substring(column, start, size.cast("int")).cast("string")))


def number(at: Column, size: int) -> Column:
    """Return the signed number in ``size`` bytes of the record's value, from position ``at`` on.

    The first position is 1. The result is null if the value ends before ``at``, and wrong if it ends within the number.
    """
    return fold(unsigned("value", at.cast("int"), size), 8 * size)


def varint(at: Column) -> tuple[Column, Column]:
    """Return the varint at position ``at`` of the record's value: its size in bytes (1 to 3), and its decoded value.

    Both are null if the value ends before the varint does, or if the varint is 2,097,152 (2**21) or more.
    """
    # Three bytes are enough for the length of a string, which is at most 32,767, and for any list in a record of up to
    # 2 MiB.
    one, two, three = (unsigned("value", (at + place).cast("int"), 1) for place in range(3))
    size = F.when(one < 128, 1).when(two < 128, 2).when(three < 128, 3)
    low = one.bitwiseAND(0x7F)
    decoded = (
        F.when(one < 128, one)
        .when(two < 128, low + two * 2**7)
        .when(three < 128, low + two.bitwiseAND(0x7F) * 2**7 + three * 2**14)
    )
    return size, decoded


def string(at: Column) -> tuple[Column, Column]:
    """Return the position after the string that begins at position ``at`` of the record's value, and the string."""
    return after_string(at), text("value", at + 2, number(at, 2))


def compact_string(at: Column) -> tuple[Column, Column]:
    """Return the position after the compact string that begins at position ``at`` of the value, and the string."""
    size, length = varint(at)
    return after_compact_string(at), text("value", at + size, length - 1)


def after_string(at: Column) -> Column:
    """Return the position after the string that begins at position ``at``: two bytes with its length, then its text."""
    return at + 2 + F.greatest(number(at, 2), F.lit(0))


def after_bytes(at: Column) -> Column:
    """Return the position after the byte array at position ``at``: four bytes with its length, then its bytes."""
    return at + 4 + F.greatest(number(at, 4), F.lit(0))


def after_compact_string(at: Column) -> Column:
    """Return the position after the compact string at ``at``: a varint with its length plus 1, then its text."""
    size, length = varint(at)
    return at + size + F.greatest(length - 1, F.lit(0))


def place(at: Column) -> Column:
    """Return the position ``at`` in the record's value, limited to the number of the value's bytes plus 2.

    The first position is 1. A position exceeds the limit only in a damaged record.
    """
    return F.least(at, F.octet_length("value") + 2).cast("int")


def let(at: Column, then: Callable[[Column], Column]) -> Column:
    """Return ``then(at)``, where ``at`` is a position in the record's value. Spark computes ``at`` only once."""
    # Otherwise Spark would compute the position wherever `then` uses it, and the expression would double in size with
    # each field.
    return bind(place(at), then)


def bind(value: Column, then: Callable[[Column], Column]) -> Column:
    """Return ``then(value)``, and make Spark compute ``value`` only once."""
    return F.transform(F.array(value), then)[0]


def has_all_before(at: Column) -> Column:
    """Return whether the record's value has all bytes before the position ``at``. The first position is 1."""
    return at <= F.octet_length("value") + 1


def strings(at: Column, count: Column, read: Callable[[Column], tuple[Column, Column]]) -> Column:
    """Return ``count`` strings of the record's value, from position ``at`` on, and the position after the strings.

    The result is a struct with the fields ``texts`` (the strings) and ``at`` (the position after the strings). read:
    takes the position of a string, and returns the position after the string, and the string.
    """
    bounded = F.least(count, F.octet_length("value") / _LEAST_SIZE).cast("int")
    begun = F.struct(place(at).alias("at"), F.array().cast("array<string>").alias("texts"))

    def step(state: Column, _: Column) -> Column:
        after, found = read(state["at"])
        return F.struct(place(after).alias("at"), F.array_append(state["texts"], found).alias("texts"))

    stepped = F.aggregate(F.sequence(F.lit(1), F.greatest(bounded, F.lit(1))), begun, step)
    return F.when(bounded > 0, stepped).otherwise(begun)
