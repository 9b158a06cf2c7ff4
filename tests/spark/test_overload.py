"""Members, rebalances and outages of applications that share a group, computed from the offsets topic."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, StringType, StructType

from migrate_groups.applications import topics_by_application
from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.offsets_topic.advice_job import advice
from migrate_groups.spark.offsets_topic.group_records import group_records, owners
from migrate_groups.spark.offsets_topic.load import keeps_up
from migrate_groups.spark.offsets_topic.offsets_log import OFFSET_COMMIT, decode, of_kinds
from migrate_groups.spark.offsets_topic.overload import (
    Overload,
    applications,
    consumers,
    generations,
    overload,
)
from tests.support.offsets_records import (
    commit_key,
    commit_value,
    generation,
    group_key,
    member,
    member_key,
    texts,
    varint,
)
from tests.support.raw_log import raw_log

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
GROUP_KEY = group_key("g")


def log(spark, *records: tuple[float, bytes, bytes | None], partition: int = 0):
    """Return a table with the columns of `RAW`. A record has seconds after noon, key and value."""
    rows = [(partition, at, NOON + timedelta(seconds=when), "record", k, v) for at, (when, k, v) in enumerate(records)]
    return raw_log(spark, rows)


def records(raw):
    """Return the decoded records of groups of these raw records."""
    return group_records(decode(raw))


def commits(raw):
    """Return the commits of these raw records."""
    return of_kinds(decode(raw), OFFSET_COMMIT).where("offset IS NOT NULL")


def commit(when: float, topic: str, group: str, partition: int = 0, offset: int = 0) -> tuple[float, bytes, bytes]:
    """Return the record of a commit: ``when``, key and value."""
    return when, commit_key(group, topic, partition), commit_value(offset)


TOPIC_ID = bytes(15) + b"\1"


def owned(*partitions: int, revoking: tuple[int, ...] = (), epochs: bool = False) -> bytes:
    """Return the value of a record that lists the partitions that a KIP-848 member owns, and those that it must revoke.

    epochs: whether the record has an epoch for each partition, as from Kafka 4.3 on.
    """

    def listed(numbers: tuple[int, ...]) -> bytes:
        tags = b"\1\0\5" + bytes(5) if epochs else b"\0"
        each = TOPIC_ID + varint(len(numbers) + 1) + b"".join(one.to_bytes(4) for one in numbers) + tags
        return b"\2" + each if numbers else b"\1"

    return bytes(2) + bytes(8) + b"\0" + listed(partitions) + listed(revoking) + b"\0"


def classic_records(assignor: str) -> list[tuple[float, bytes, bytes | None]]:
    """Return the records of a classic group, named after its assignor, with applications a and b.

    Application b restarts. Another commit of a is cut short.
    """
    a, b, key = member("a-1", "x"), member("b-1", "y"), group_key(assignor)
    return [
        (0, key, generation(1, a, b, assignor=assignor)),
        *(commit(when, topic, assignor) for when, topic in ((9, "x"), (10, "x"), (12, "y"))),
        (14, commit(14, "x", assignor)[1], b"\0\3"),
        (15, key, generation(2, a, assignor=assignor)),
        commit(17, "x", assignor),
        (20, key, generation(3, a, member("b-1", "y", member_id="b-1x"), assignor=assignor)),
        commit(21, "y", assignor),
    ]


def uneven_records() -> list[tuple[float, bytes, bytes | None]]:
    """Return the records of a group with one application, two generations, and members without a partition.

    In the first generation the members consume 80, 10, 0 and 0 records, in the second 30, 30 and 0. The last commit of
    partition 2 is a rewind.
    """
    idle, key = [member("c-3", "x", partitions=()), member("c-4", "x", partitions=())], group_key("uneven")
    first = member("c-1", "x", partitions=(0, 1)), member("c-2", "x", partitions=(2,)), *idle
    second = member("c-1", "x", partitions=(0,)), member("c-2", "x", partitions=(1, 2)), idle[0]
    committed = [
        [(0, 100), (1, 0), (2, 990), (0, 160), (1, 20), (2, 1000)],
        [(0, 170), (1, 20), (2, 1000), (0, 200), (1, 50), (2, 0)],
    ]
    commits = [[commit(1, "x", "uneven", partition, offset) for partition, offset in of] for of in committed]
    return [(0, key, generation(1, *first)), *commits[0], (60, key, generation(2, *second)), *commits[1]]


def placeholder_records() -> list[tuple[float, bytes, bytes | None]]:
    """Return the records of a group whose member ``b-1`` leaves for one without topics, as ``migrate --hold`` adds."""
    a, key = member("a-1", "x"), group_key("held")
    return [
        (0, key, generation(1, a, member("b-1", "y"))),
        commit(10, "x", "held"),
        (15, key, generation(2, a, member("placeholder"))),
        (20, key, generation(3, a)),
    ]


def upgraded_records() -> list[tuple[float, bytes, bytes | None]]:
    """Return the records of a KIP-848 group that was a classic group before. Its only member had no partition then."""
    subscribed = bytes(4) + b"\4a-1" + b"\3/h\2\2x" + b"\1\0"
    classic = generation(1, member("a-1", "x", partitions=()))
    return [(0, group_key("upgraded"), classic), (5, member_key("upgraded", "a"), subscribed)]


def consumer_records() -> list[tuple[float, bytes, bytes | None]]:
    """Return the records of a KIP-848 group: member a hands partitions over to b, then c replaces both."""
    subscribed = bytes(4) + b"\4b-1" + b"\3/h\2\2x" + b"\1\0"
    changes = [
        (1, "a", owned(0, 1, 2)),
        (2, "a", owned(0, revoking=(1, 2))),
        (3, "a", owned(0, epochs=True)),
        (5, "b", owned(1, epochs=True)),
        (6, "b", owned(1, 2, epochs=True)),
        (10, "a", None),
        (11, "b", None),
        (14, "c", owned(0, 1, 2)),
        (15, "c", None),
    ]
    return [
        *((0, member_key("new", each), subscribed) for each in "abc"),
        *((when, member_key("new", each, kind=8), value) for when, each, value in changes),
    ]


@pytest.fixture(scope="module")
def found(spark) -> dict[str, dict[str, list[Row]]]:
    """The tables of `Overload` and the table ``advice``, by group and by the name of the table, all from one job.

    The groups ``cooperative-sticky`` and ``new`` are in a log partition that lacks 7 offsets.
    """
    raw = log(spark, *classic_records("range"))
    raw = raw.unionByName(log(spark, *classic_records("cooperative-sticky"), *consumer_records(), partition=1))
    raw = raw.unionByName(log(spark, *uneven_records(), *upgraded_records(), *placeholder_records(), partition=2))
    decoded = records(raw).localCheckpoint()
    classic, new = generations(decoded), consumers(decoded)
    made = Overload(*(each.localCheckpoint() for each in overload(classic, new, owners(decode(raw)), commits(raw))))
    missing = local_table(
        spark, [(0, 0), (1, 7), (2, 0)], StructType().add("log_partition", "integer").add("missing", "long")
    )
    tables = {**made._asdict(), "advice": advice(made, classic, new, missing)}
    rows = {name: table.collect() for name, table in tables.items()}
    return {
        group: {name: [row for row in of if row.group == group] for name, of in rows.items()}
        for group in ("range", "cooperative-sticky", "new", "uneven", "upgraded", "held")
    }


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_an_application_stands_still_from_its_last_commit_to_the_next_generation(found, assignor):
    """If b restarts in an eager group, application a stands still from its last commit until the next generation.

    A commit that can't be decoded does not count. In a cooperative group a does not stand still. Application b has an
    outage in both.
    """
    tables, eager = found[assignor], assignor == "range"
    assert {
        (row.generation, row.application): (row.caused_by, row.by_others, row.replaced, row.seconds, row.gone)
        for row in tables["stood_still"]
    } == {
        (1, "a"): (["b"], True, False, 5.0 if eager else None, 0.0),
        (1, "b"): (["b"], False, True, 8.0, 3.0),
        (2, "a"): (["b"], True, False, 3.0 if eager else None, 0.0),
    }
    assert {(row.application, tuple(row.topics), row.members) for row in tables["subscriptions"]} == {
        ("a", ("x",), 1),
        ("b", ("y",), 2),
    }
    joined = {row.generation: (row.joined, row.left) for row in tables["generations"]}
    assert joined[1] == ([], ["b-1"])
    assert joined[2] == (["b-1"], [])


def test_a_member_without_topics_is_in_no_application(found):
    """A member without topics belongs to no application. If it joins or leaves, applications stand still for others."""
    tables = found["held"]
    assert {row.application for row in tables["advice"]} == {"a", "b"}
    assert {row.client_id for row in tables["subscriptions"]} == {"a-1", "b-1"}
    assert {
        (row.generation, row.application): (row.caused_by, row.by_others, row.seconds) for row in tables["stood_still"]
    } == {(1, "a"): (["b"], True, 5.0), (1, "b"): (["b"], False, None), (2, "a"): ([], True, None)}
    assert {(row.generation, row.members) for row in tables["generations"]} == {(1, 2), (2, 2), (3, 1)}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("range", {"a": (8.0, 0.0), "b": (0.0, 8.0)}),
        ("cooperative-sticky", {"a": (None, None), "b": (None, 8.0)}),
        ("new", {"b": (None, 7.0)}),
    ],
)
def test_times_without_a_cause_are_0_or_null(found, group, expected):
    """An application's ``stood_still`` and ``outage`` are 0 if no rebalance caused them.

    They are null instead of 0 if the log lacks records.
    """
    assert {row.application: (row.stood_still, row.outage) for row in found[group]["advice"]} == expected


def test_members_without_a_partition_and_the_busiest_member_are_found(found):
    """``spread`` is what the busiest member consumed, divided by the mean of all members, even without partitions.

    A rewind consumes nothing. ``idle`` is the number of members without a partition in the last generation.
    """
    rows = sorted(found["uneven"]["spread"], key=lambda row: row.generation)
    assert [(row.members, row.idle, row.consumed, row.busiest) for row in rows] == [(4, 2, 90, 80), (3, 1, 60, 30)]
    (row,) = found["uneven"]["advice"]
    assert (row.idle, row.spread) == (1, round((80 + 30) / (90 / 4 + 60 / 3), 2))


def test_a_spread_of_nothing_is_null(found):
    """An application's ``spread`` is null if its members have consumed nothing.

    ``spread`` and ``idle`` are null in a KIP-848 group, even if it was a classic group before.
    """
    assert {(row.idle, row.spread, row.keeps_up) for row in found["range"]["advice"]} == {(0, None, None)}
    for group in ("new", "upgraded"):
        assert {(row.idle, row.spread) for row in found[group]["advice"]} == {(None, None)}


def test_an_application_keeps_up_if_it_consumes_what_is_produced(spark):
    """An application's ``keeps_up`` is the number of consumed records divided by the number of produced records.

    The first measurement is left out, and so is each one without both numbers. ``best_third``, the highest ratio of the
    three thirds of the period, is null if nothing was produced in one of them.
    """
    figures: dict[str, list[tuple[int | None, int | None]]] = {
        "behind": [(10, 5), (10, 8), (20, 11)],
        "late": [(10, 5), (10, 15), (10, 10)],
        "quiet": [(10, 5), (0, 2), (10, 5)],
        "stopped": [(10, 0), (10, 0), (10, 0)],
        "unknown": [(None, 5), (10, None), (None, None)],
        "silent": [(0, 0), (0, 0), (0, 0)],
    }
    moments = [
        ("g", topic, NOON + timedelta(minutes=minute), *of)
        for topic, known in figures.items()
        for minute, of in enumerate([(99, 99), *known])
    ]
    columns = StructType().add("group", "string").add("topic", "string").add("taken_at", "timestamp")
    columns = columns.add("produced", "long").add("consumed", "long")
    timeline = local_table(spark, moments, columns)
    columns = StructType().add("group", "string").add("application", "string")
    columns = columns.add("topics", ArrayType(StringType())).add("since", "timestamp")
    applications = local_table(spark, [("g", each, [each], NOON) for each in figures], columns)
    found = keeps_up(applications, timeline).collect()
    assert {row.application: (row.keeps_up, row.best_third) for row in found} == {
        "behind": (0.6, 0.8),
        "late": (1.0, 1.5),
        "quiet": (0.6, None),
        "stopped": (0.0, 0.0),
        "silent": (None, None),
    }


def test_a_partition_has_no_owner_until_another_member_has_it(found):
    """In a KIP-848 group, a partition is without an owner from its revocation until another member owns it.

    A restart of all members is one period without an owner, whatever the number of partitions. A partition that a
    member must revoke still has an owner.
    """
    rows = sorted(found["new"]["stood_still"], key=lambda row: row.ended_at)
    assert [(row.seconds, row.replaced, row.by_others, row.assignor) for row in rows] == [
        (3.0, False, False, "consumer"),
        (4.0, True, False, "consumer"),
    ]


def test_each_version_of_a_generation_is_decoded(spark):
    """Versions 0 to 3 of a classic group's record are decoded to the same members. An Empty group has no members.

    Records of an unknown version or of a wrong length are not decoded.
    """
    values = [generation(1, member("a", "x", partitions=(0, 7), version=v), version=v) for v in range(4)]
    wrong = [generation(1, version=4), values[3][:-1], values[3] + b"x"]
    raw = log(spark, *((number, GROUP_KEY, value) for number, value in enumerate([*values, generation(2), *wrong])))
    rows = [row.members for row in generations(records(raw)).orderBy("log_offset").collect()]
    assert [[(m.client_id, m.topics, [p.partition for p in m.partitions]) for m in each] for each in rows[:4]] == [
        [("a", ["x"], [0, 7])]
    ] * 4
    assert {row[0].rebalance_timeout_ms for row in rows[:4]} == {300_000}
    assert rows[4:] == [[], None, None]


def test_cut_records_of_kip_848_members_are_not_decoded(spark):
    """If a KIP-848 member's record is cut within its list of partitions or topics, nothing of the list is decoded.

    Nothing is decoded of a record of an unknown version.
    """
    assigned, member = member_key("g", "m", kind=8), member_key("g", "m")
    partitions, topics = owned(0, 7, revoking=(1,)), bytes(4) + b"\4a-1" + b"\3/h\3\2x\2y" + b"\1\0"
    cuts = [(0, assigned, partitions[:size]) for size in range(2, len(partitions) - 1)]
    cuts += [(0, member, topics[:size]) for size in range(2, len(topics) - 2)]
    unknown = [(0, assigned, b"\0\1" + partitions[2:]), (0, member, b"\0\2" + topics[2:])]
    raw = log(spark, *cuts, *unknown, (0, assigned, partitions), (0, member, topics))
    *cut, whole = of_owners = owners(decode(raw)).orderBy("log_offset").collect()
    assert [row.owned for row in cut if row.owned is not None] == []
    assert [each.split("-")[1] for each in whole.owned] == ["0", "7", "1"]
    subscribed = records(raw).orderBy("log_offset").localCheckpoint()
    *cut, whole = consumers(subscribed).orderBy("log_offset").collect()
    assert [row.topics for row in cut if row.topics is not None] == []
    assert whole.topics == ["x", "y"]
    rows = subscribed.collect()
    assert len(of_owners) + len(rows) == len(cuts) + 4
    assert (of_owners[-2].owned, rows[-2].members) == (None, None)


def test_the_job_finds_the_applications_of_its_definition(spark):
    """The job of ``advise --log`` finds the applications that `topics_by_application` finds, in each group."""
    chance, members = random.Random(11), []
    for group in ("one", "two", "three"):
        for _ in range(12):
            pod = f"-{chance.choice(['7d9f8b6c5', '5c4d3b2a1'])}-x2k4{chance.choice('abc')}"
            client = chance.choice("abcdefgh") + chance.choice(["", pod, "-1", "-2"])
            members.append((group, client, chance.sample([f"t{number}" for number in range(60)], chance.randrange(3))))
    columns = StructType().add("group", "string").add("client_id", "string").add("topics", ArrayType(StringType()))
    found = {
        (row.group, row.topic): row.application for row in applications(local_table(spark, members, columns)).collect()
    }
    assert found == {
        (group, topic): name
        for group in ("one", "two", "three")
        for name, topics in topics_by_application(
            (client, frozenset(topics)) for of, client, topics in members if of == group
        ).items()
        for topic in topics
    }
    assert len(set(found.values())) > 3


@pytest.mark.parametrize("number", [126, 127, 16_382, 16_383, 20_000])
def test_members_with_any_number_of_partitions_are_decoded(spark, number):
    """A KIP-848 member's partitions are decoded, however many they are, and so are those that it must revoke."""
    key, partitions = member_key("g", "m", kind=8), tuple(range(number))
    (row,) = owners(decode(log(spark, (0, key, owned(*partitions, revoking=(number,), epochs=True))))).collect()
    assert row.owned == [f"{TOPIC_ID.hex().upper()}-{each}" for each in range(number + 1)]


def test_a_group_of_1000_members_is_decoded_and_other_groups_are_left_out(spark):
    """In a group of 1,000 members, each member is decoded with its own topic.

    Groups of Kafka Connect have no row, because their members are not consumers.
    """
    many = generation(1, *(member(f"c-{number}", f"t-{number % 2}") for number in range(1000)))
    connect = generation(1, member("w-1", "x")).replace(texts("consumer"), texts("connect"), 1)
    raw = log(spark, (0, GROUP_KEY, many), (1, group_key("workers"), connect))
    (row,) = generations(records(raw)).collect()
    assert (row.group, len(row.members)) == ("g", 1000)
    assert {(each.client_id, *each.topics) for each in row.members} == {(f"c-{n}", f"t-{n % 2}") for n in range(1000)}


def test_broken_records_fail_no_job(spark):
    """Records about groups with changed or missing bytes give other rows or no row, and never an error."""
    chance = random.Random(1)
    whole = generation(1, member("a-1", "x"), member("b-1", "y"))
    broken = []
    for _ in range(150):
        value = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            value[chance.randrange(len(value))] = chance.randrange(256)
        key = member_key("g", "m") if chance.random() < 0.4 else GROUP_KEY
        broken.append((0.0, key[: chance.randint(3, len(key) + 9)], bytes(value[: chance.randint(0, len(value))])))
    raw = log(spark, *broken)
    for decoded in (records(raw), owners(decode(raw)), commits(raw)):
        decoded.collect()


def test_the_member_of_a_hold_is_no_consumer(spark):
    """The member with which ``migrate --hold`` keeps consumers out of a group is not in the group's generations."""
    holding = member("migrate-groups", "t").replace((300_000).to_bytes(4), (86_400_000).to_bytes(4))
    raw = log(spark, (0, GROUP_KEY, generation(1, holding)), (1, GROUP_KEY, generation(2, member("a", "t"))))
    found = generations(records(raw)).orderBy("log_offset").collect()
    assert [[each.client_id for each in row.members] for row in found] == [[], ["a"]]
