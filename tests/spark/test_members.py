"""The members of a group, decoded from the offsets topic's records about groups."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from migrate_groups.spark.local_table import local_table
from migrate_groups.spark.offsets_topic.members import members
from migrate_groups.spark.offsets_topic.offsets_log import RAW, decode
from tests.spark.test_offsets_log import GROUP, RECORDED, Record

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def texts(*each: str | None) -> bytes:
    return b"".join(b"\xff\xff" if text is None else len(text.encode()).to_bytes(2) + text.encode() for text in each)


def classic(*members: tuple[Any, ...], version: int = 3) -> bytes:
    """Return the value of a Stable classic group's record, as a broker writes it.

    members: client id and host of each.
    """
    made = version.to_bytes(2) + texts("consumer") + bytes(4) + texts("range", "leader") + bytes(8)
    made += len(members).to_bytes(4)
    for number, (client, host) in enumerate(members):
        ids = texts(f"member-{number}", "static" if number % 2 else None, client, host)
        made += ids + bytes(8) + (number * 10).to_bytes(4) + b"s" * number * 10 + bytes(4)
    return made


NAMES = [*(f"group-value-{version}" for version in range(5)), "key-5", "group-tombstone"]
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


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[Row]]:
    """The decoded members of three sets of records, by the name of the set. One job decodes all."""
    records: dict[str, list[Record]] = {
        "recorded": [RECORDED[name] for name in NAMES],
        "many": [(KEY, classic(*CLIENTS)), (KEY, classic()), (KEY, classic(("ünï", "/h")))],
        "broken": [*broken("group-value-3"), *broken("key-5")],
    }
    rows = [
        (number, place, NOON + timedelta(seconds=place), "record", *record)
        for number, of in enumerate(records.values())
        for place, record in enumerate(of)
    ]
    collected = members(decode(local_table(spark, rows, RAW))).orderBy("log_partition", "log_offset").collect()
    return {name: [row for row in collected if row.log_partition == number] for number, name in enumerate(records)}


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
        "group-tombstone": [],
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
    assert len(found["broken"]) == 500
