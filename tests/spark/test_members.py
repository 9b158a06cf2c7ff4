"""The members of a group, decoded from the offsets topic's records about groups."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from migrate_groups.spark.offsets_topic.commits_over_time import clients
from migrate_groups.spark.offsets_topic.group_records import group_records
from migrate_groups.spark.offsets_topic.offsets_log import decode
from migrate_groups.spark.offsets_topic.overload import consumers
from tests.spark.test_offsets_log import GROUP, RECORDED, Record
from tests.support.offsets_records import compact, generation, sized, texts
from tests.support.raw_log import raw_log

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def classic(*members: tuple[Any, ...], version: int = 3) -> bytes:
    """Return the value of a Stable classic group's record, as a broker writes it.

    members: client id and host of each.
    """
    made = []
    for number, (client, host) in enumerate(members):
        ids = texts(f"member-{number}", "static" if number % 2 else None, client, host)
        made.append(ids + bytes(8) + sized(b"s" * number * 10) + bytes(4))
    return generation(0, *made, version=version)


def kip_848(instance: str | None, rack: str | None, client: str, host: str, regex: str = "") -> bytes:
    """Return the value of the record of a KIP-848 member that subscribes to the topic ``orders``."""
    names = b"".join(map(compact, (instance, rack, client, host)))
    return bytes(2) + names + b"\2" + compact("orders") + compact(regex) + bytes(4) + b"\1\0"


SIZES = [1, 126, 127, 128, 16_382, 16_383, 20_000, 32_767]
# Each size occurs in each field: the group instance id, the rack, the client id, the host and the regular expression.
LONG: list[tuple[str | None, str | None, str, str, str]] = [
    each
    for size in SIZES
    for each in (
        ("i" * size, None, "c", "/h", ""),
        (None, "r" * size, "c", "/h", ""),
        (None, None, "c" * size, "/h", ""),
        (None, None, "c", "h" * size, ""),
        (None, None, "c", "/h", "x" * size),
    )
]
NAMES = [
    *(f"group-value-{version}" for version in range(5)),
    *("key-5", "key-5-126", "key-5-127", "key-5-regex", "key-5-names"),
    "group-tombstone",
]
CLIENTS = [(f"app-{number}", f"/10.0.0.{number}") for number in range(40)]
KEY = RECORDED["group-value-3"][0]


def broken(name: str) -> list[Record]:
    """Return 250 copies of record ``name`` of `RECORDED`, with bytes of the value changed or cut off."""
    chance = random.Random(9)
    key, value = RECORDED[name]
    assert value
    made: list[Record] = []
    for _ in range(250):
        text = bytearray(value[: chance.randrange(len(value) + 1)])
        for _ in range(min(len(text), chance.randrange(4))):
            text[chance.randrange(len(text))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        made.append((key, bytes(text)))
    return made


def records(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    """Return the decoded records of members, from rows with the columns of `RAW`."""
    return group_records(decode(raw_log(spark, rows)))


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[Row]]:
    """The decoded members of four sets of records, by the name of the set. One job decodes all."""
    of_sets: dict[str, list[Record]] = {
        "recorded": [RECORDED[name] for name in NAMES],
        "many": [(KEY, classic(*CLIENTS)), (KEY, classic()), (KEY, classic(("ünï", "/h")))],
        "long": [(RECORDED["key-5"][0], kip_848(*names)) for names in LONG],
        "broken": [*broken("group-value-3"), *broken("key-5"), *broken("key-5-127")],
    }
    rows = [
        (number, place, NOON + timedelta(seconds=place), "record", *record)
        for number, of in enumerate(of_sets.values())
        for place, record in enumerate(of)
    ]
    collected = clients(records(spark, rows)).orderBy("log_partition", "log_offset").collect()
    return {name: [row for row in collected if row.log_partition == number] for number, name in enumerate(of_sets)}


def test_every_version_of_a_member_record_is_decoded(found: dict[str, list[Row]]) -> None:
    """The members in a classic group's record are decoded in every known version, and so is a KIP-848 member's record.

    For a record of an unknown version, the list of members is null.
    """
    rows = found["recorded"]
    assert {row.group for row in rows} == {GROUP}
    assert dict(zip(NAMES, (row.clients for row in rows), strict=True)) == {
        **{f"group-value-{version}": ["c/h"] for version in range(4)},
        "group-value-4": None,
        "key-5": ["c/h"],
        "key-5-126": ["c" * 126 + "h" * 126],
        "key-5-127": ["c" * 127 + "h" * 127],
        "key-5-regex": ["c/h"],
        "key-5-names": ["ü" * 65 + "/h"],
        "group-tombstone": [],
    }


def test_names_of_any_length_are_decoded(spark: SparkSession, found: dict[str, list[Row]]) -> None:
    """A member's client id, host and regular expression are decoded, however long they and the names before them are.

    Both decodings of KIP-848 members are right: that of ``history`` and that of ``advise``.
    """
    assert [row.clients for row in found["long"]] == [[f"{client}{host}"] for _, _, client, host, _ in LONG]
    key, _ = RECORDED["key-5"]
    rows = [(0, number, NOON, "record", key, kip_848(*names)) for number, names in enumerate(LONG)]
    subscribed = consumers(records(spark, rows)).orderBy("log_offset").collect()
    assert [(row.client_id, row.regex or "") for row in subscribed] == [
        (client, regex) for _, _, client, _, regex in LONG
    ]


def test_consumers_are_decoded_as_kafka_wrote_them(spark: SparkSession) -> None:
    """The topics and the regular expression of KIP-848 members equal those that Kafka's own classes wrote."""
    names = [name for name in NAMES if name.startswith("key-5")]
    rows = [(0, number, NOON, "record", *RECORDED[name]) for number, name in enumerate(names)]
    found = consumers(records(spark, rows)).orderBy("log_offset").collect()
    assert dict(zip(names, ((row.client_id, row.topics, row.regex) for row in found), strict=True)) == {
        "key-5": ("c", [], None),
        "key-5-126": ("c" * 126, ["orders"], None),
        "key-5-127": ("c" * 127, ["orders", "t" * 249], "x" * 127),
        "key-5-regex": ("c", [], "pay.*"),
        "key-5-names": ("ü" * 65, [], "y" * 200),
    }


def test_records_with_many_members_and_with_none(found: dict[str, list[Row]]) -> None:
    """Static and dynamic members, and an empty list of members, are decoded.

    The decoded members are valid until the group's next record.
    """
    rows = found["many"]
    assert [row.clients for row in rows] == [[f"{client}{host}" for client, host in CLIENTS], [], ["ünï/h"]]
    times = [row.log_time.astimezone(UTC) for row in rows]
    assert [row.until and row.until.astimezone(UTC) for row in rows] == [*times[1:], None]


def test_broken_records_never_abort_a_job(found: dict[str, list[Row]]) -> None:
    """Every broken record about a group's members is decoded to a row, and none aborts the job."""
    assert len(found["broken"]) == 750
