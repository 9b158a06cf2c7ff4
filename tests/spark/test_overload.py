"""Who was a member of each generation of a group, and how long applications stood still, from the offsets topic."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from migrate_groups.spark.local_table import local_table
from migrate_groups.spark.offsets_topic.generations import commits, consumers, generations
from migrate_groups.spark.offsets_topic.offsets_log import RAW
from migrate_groups.spark.offsets_topic.overload import overload
from migrate_groups.spark.offsets_topic.ownership import owners, without_owner
from tests.spark.test_members import texts

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
GROUP_KEY = b"\0\2" + texts("g")


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4) + data


def member(client: str, topic: str, *, partitions: tuple[int, ...] = (0,), version: int = 3) -> bytes:
    """Return a member of a generation: its id is its client id, and it subscribes to one topic."""
    ids = texts(client) + (texts(None) if version >= 3 else b"") + texts(client.rstrip("x"), "/h")
    subscription = bytes(2) + (1).to_bytes(4) + texts(topic) + sized(b"")
    numbers = b"".join(each.to_bytes(4) for each in partitions)
    assigned = (1).to_bytes(4) + texts(topic) + len(partitions).to_bytes(4) + numbers if partitions else bytes(4)
    timeouts = (300_000).to_bytes(4) + bytes(4) if version >= 1 else (300_000).to_bytes(4)
    return ids + timeouts + sized(subscription) + sized(bytes(2) + assigned + sized(b""))


def generation(number: int, *members: bytes, version: int = 3, assignor: str = "range") -> bytes:
    head = version.to_bytes(2) + texts("consumer") + number.to_bytes(4) + texts(assignor, "leader")
    return head + (bytes(8) if version >= 2 else b"") + len(members).to_bytes(4) + b"".join(members)


def log(spark, *records: tuple[float, bytes, bytes | None]):
    """Return a copied log of records: seconds after noon, key, value."""
    rows = [(0, at, NOON + timedelta(seconds=when), "record", k, v) for at, (when, k, v) in enumerate(records)]
    return local_table(spark, rows, RAW)


def commit(when: float, topic: str) -> tuple[float, bytes, bytes]:
    return when, b"\0\1" + texts("g", topic) + bytes(4), b"\0\3"


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_an_application_stands_still_from_its_last_commit_to_the_next_generation(spark, assignor):
    """The others are named as cause; who restarted has an outage; nobody else stands still in a cooperative group."""
    a, b = member("a-1", "x"), member("b-1", "y")
    raw = log(
        spark,
        (0, GROUP_KEY, generation(1, a, b, assignor=assignor)),
        *(commit(when, topic) for when, topic in ((9, "x"), (10, "x"), (12, "y"))),
        (15, GROUP_KEY, generation(2, a, assignor=assignor)),
        commit(17, "x"),
        (20, GROUP_KEY, generation(3, a, member("b-1x", "y"), assignor=assignor)),
        commit(21, "y"),
    )
    found = overload(generations(raw), consumers(raw), owners(raw), commits(raw))
    stood = {
        (row.generation, row.application): (row.caused_by, row.by_others, row.replaced, row.seconds, row.gone)
        for row in found.stood_still.collect()
    }
    eager = assignor == "range"
    assert stood == {
        (1, "a"): (["b"], True, False, 5.0 if eager else None, 0.0),
        (1, "b"): (["b"], False, True, 8.0, 3.0),
        (2, "a"): (["b"], True, False, 3.0 if eager else None, 0.0),
    }
    assert {(row.application, tuple(row.topics), row.members) for row in found.subscriptions.collect()} == {
        ("a", ("x",), 1),
        ("b", ("y",), 2),
    }
    joined = {row.generation: (row.joined, row.left) for row in found.generations.collect()}
    assert joined[1] == ([], ["b-1"])
    assert joined[2] == (["b-1"], [])


def test_each_version_of_a_generation_is_decoded(spark):
    """Versions 0 to 3 have the same members; an Empty generation has none; an unknown version and a cut one are not."""
    values = [generation(1, member("a", "x", partitions=(0, 7), version=v), version=v) for v in range(4)]
    wrong = [generation(1, version=4), values[3][:-1], values[3] + b"x"]
    raw = log(spark, *((number, GROUP_KEY, value) for number, value in enumerate([*values, generation(2), *wrong])))
    rows = [row.members for row in generations(raw).orderBy("log_offset").collect()]
    assert [[(m.client_id, m.topics, [p.partition for p in m.partitions]) for m in each] for each in rows[:4]] == [
        [("a", ["x"], [0, 7])]
    ] * 4
    assert {row[0].rebalance_timeout_ms for row in rows[:4]} == {300_000}
    assert rows[4:] == [[], None, None]


def test_broken_records_fail_no_job(spark):
    """Changed and missing bytes in keys and values give other rows or none, and no error."""
    chance = random.Random(1)
    whole = generation(1, member("a-1", "x"), member("b-1", "y"))
    records = []
    for _ in range(150):
        value = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            value[chance.randrange(len(value))] = chance.randrange(256)
        key = b"\0\5" + texts("g", "m") if chance.random() < 0.4 else GROUP_KEY
        records.append((0.0, key[: chance.randint(3, len(key) + 9)], bytes(value[: chance.randint(0, len(value))])))
    raw = log(spark, *records)
    for decoded in (generations(raw), consumers(raw), owners(raw), commits(raw)):
        decoded.collect()


PARTITION = bytes(15) + b"\1"
"""The id of a topic."""


def owned(
    member_id: str, *partitions: int, revoking: tuple[int, ...] = (), epochs: bool = False
) -> tuple[bytes, bytes]:
    """Return the record of what a KIP-848 member owns and has to revoke of a topic. epochs: as Kafka 4.3 writes it."""

    def listed(numbers: tuple[int, ...]) -> bytes:
        tags = b"\1\0\5" + bytes(5) if epochs else b"\0"
        each = PARTITION + bytes([len(numbers) + 1]) + b"".join(one.to_bytes(4) for one in numbers) + tags
        return b"\2" + each if numbers else b"\1"

    value = bytes(2) + bytes(8) + b"\0" + listed(partitions) + listed(revoking) + b"\0"
    return b"\0\10" + texts("g", member_id), value


@pytest.mark.parametrize("epochs", [False, True])
def test_a_partition_has_no_owner_until_another_member_has_it(spark, epochs):
    """A restart of all members counts once, however many partitions; a partition to revoke still has its owner."""
    empty = b"\1\0"
    subscribed = [(b"\0\5" + texts("g", each), b"\0\0\0\0" + b"\4b-1" + b"\3/h\2\2x" + empty) for each in "abc"]
    raw = log(
        spark,
        *((0, key, value) for key, value in subscribed),
        (1, *owned("a", 0, 1, 2, epochs=epochs)),
        (2, *owned("a", 0, revoking=(1, 2), epochs=epochs)),
        (3, *owned("a", 0, epochs=epochs)),
        (5, *owned("b", 1, epochs=epochs)),
        (6, *owned("b", 1, 2, epochs=epochs)),
        (10, owned("a")[0], None),
        (11, owned("b")[0], None),
        (14, *owned("c", 0, 1, 2, epochs=epochs)),
        (15, owned("c")[0], None),
    )
    whose = spark.createDataFrame(
        [("g", each, "app") for each in "abc"], "group string, member_id string, application string"
    )
    found = [
        (row.begun - NOON.replace(tzinfo=row.begun.tzinfo), row.seconds, row.whole)
        for row in without_owner(owners(raw), whose).orderBy("begun").collect()
    ]
    assert [(seconds, whole) for _, seconds, whole in found] == [(3.0, False), (4.0, True)]
    rows = overload(generations(raw), consumers(raw), owners(raw), commits(raw)).stood_still.collect()
    assert [(row.assignor, row.caused_by == [row.application], row.by_others) for row in rows] == [
        ("consumer", True, False)
    ] * 2
