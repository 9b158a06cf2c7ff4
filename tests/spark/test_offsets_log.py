"""Decoding the records of the offsets topic, ``__consumer_offsets``."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from migrate_groups.spark.offsets_topic.offsets_log import KINDS, decode
from tests.support.offsets_records import varint
from tests.support.raw_log import raw_log

DATA = Path(__file__).parents[1] / "data" / "offsets_topic_records.csv"
RECORDED = {
    row["record"]: (bytes.fromhex(row["key"]), bytes.fromhex(row["value"]) or None)
    for row in csv.DictReader(DATA.read_text().splitlines())
}
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TOPIC_ID = UUID("134e236a-b82f-489a-98c5-58cbc813b0ee")
GROUP, COMMITTED = "grüppe-😀", datetime(2025, 11, 20, 3, 40, 0, 123000, tzinfo=UTC)

Record = tuple[bytes | None, bytes | None]
Copied = Callable[..., DataFrame]


@pytest.fixture
def copied(spark: SparkSession) -> Copied:
    """Return a function that makes a table of raw records of the offsets topic, from pairs of key and value."""

    def make(records: Iterable[Record], kind: str = "record") -> DataFrame:
        return raw_log(spark, as_copied(records, kind))

    return make


def as_copied(records: Iterable[Record], kind: str = "record") -> list[tuple[Any, ...]]:
    """Return rows with the columns of `RAW`, one for each pair of key and value, in partition 3."""
    return [(3, number, NOON, kind, key, value) for number, (key, value) in enumerate(records)]


@pytest.fixture(scope="module")
def decoded(spark: SparkSession) -> dict[str, Row]:
    """The decoded records of `RECORDED`, which Kafka's own classes wrote, by name."""
    found = decode(raw_log(spark, as_copied(RECORDED.values()))).orderBy("log_offset").collect()
    return dict(zip(RECORDED, found, strict=True))


def utc(moment: datetime | None) -> datetime | None:
    return moment and moment.astimezone(UTC)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_committed_offset_is_decoded(decoded: dict[str, Row], version: int) -> None:
    """In each version of a commit's record, the decoded offset, leader epoch, metadata and times are right.

    They equal what Kafka's own classes wrote.
    """
    found = decoded[f"commit-value-{version}"]
    assert (found.kind, found.group, found.topic, found.partition) == ("offset-commit", GROUP, "orders.v1", 11)
    assert (found.version, found.offset, found.metadata) == (version, 2**40, "métadonnées")
    assert found.leader_epoch == (7 if version >= 3 else None)
    assert utc(found.commit_time) == COMMITTED
    assert utc(found.expire_time) == (datetime(2025, 11, 20, 4, 40, 0, 456000, tzinfo=UTC) if version == 1 else None)
    assert (found.topic_id, found.tombstone, found.problem) == (None, False, None)


def test_topic_id_of_a_commit_is_decoded(decoded: dict[str, Row]) -> None:
    """The topic id that Kafka 4.3 adds to value version 4 is decoded, and unknown fields are skipped."""
    names = ("commit-topic-id", "commit-topic-id-metadata-127", "commit-topic-id-and-unknown-tag")
    assert [decoded[name].topic_id for name in names] == [TOPIC_ID.hex.upper()] * 3
    assert decoded["commit-unknown-tag"].topic_id is None
    assert {decoded[name].offset for name in (*names, "commit-unknown-tag")} == {2**40}
    assert [name for name, found in decoded.items() if found.topic_id] == [*names]


def test_rare_forms_of_a_committed_offset_are_decoded(decoded: dict[str, Row]) -> None:
    """Rare forms of a commit's record are decoded, such as tombstones and keys from before Kafka 0.8.2.

    Others have no leader epoch, a negative offset, or metadata of over 126 bytes.
    """
    assert decoded["commit-legacy-key"].key[:2] == b"\0\0"
    assert decoded["commit-legacy-key"].offset == 5
    assert decoded["commit-no-epoch"].leader_epoch is None
    assert decoded["commit-negative-offset"].offset == -1
    assert decoded["commit-negative-offset"].commit_time is None
    assert decoded["commit-metadata-127"].metadata == "m" * 127
    gone = decoded["commit-tombstone"]
    assert (gone.tombstone, gone.group, gone.topic, gone.partition, gone.offset) == (True, GROUP, "orders.v1", 11, None)
    assert {row.problem for row in decoded.values()} == {None}


def test_every_other_key_type_is_decoded(decoded: dict[str, Row]) -> None:
    """For every key type of the offsets topic, the kind of the record and the group are decoded.

    So is the member or the regular expression, if the key has one.
    """
    for name, found in decoded.items():
        if name.startswith("key-") and name != "key-99":
            assert found.kind == KINDS[int(name.split("-")[1])]
            assert found.group == GROUP
    assert [decoded[f"group-value-{version}"].kind for version in range(5)] == ["group-metadata"] * 5
    assert decoded["group-tombstone"].tombstone
    with_member = {name.split("-")[1] for name, found in decoded.items() if found.member == "member-1"}
    assert with_member == {"5", "7", "8", "10", "13", "14", "19", "21", "22"}
    assert decoded["key-16"].member == "pay.*"
    assert (decoded["key-99"].kind, decoded["key-99"].group) == ("type-99", "g")


KEY, VALUE = RECORDED["commit-value-4"]
_, WITH_ID = RECORDED["commit-topic-id"]
assert VALUE
assert WITH_ID
BROKEN: dict[str, tuple[Any, str]] = {
    "no key": ((None, VALUE), "no key"),
    "one byte of key": ((KEY[:1], VALUE), "a key of less than 2 bytes"),
    "an empty key": ((b"", VALUE), "a key of less than 2 bytes"),
    "only a type": ((KEY[:2], VALUE), "a key that is cut short"),
    "a negative length": ((KEY[:2] + b"\xff\xff" + KEY[4:], VALUE), "a key that is cut short"),
    "a key cut short": ((KEY[:-1], VALUE), "a key of the wrong length"),
    "a key too long": ((KEY + b"\0", VALUE), "a key of the wrong length"),
    "a group's length beyond": ((KEY[:2] + b"\x7f\xff" + KEY[4:], VALUE), "a key that is cut short"),
    "no UTF-8": ((KEY.replace("ü".encode(), b"\xff\xfe"), VALUE), "a key that is not UTF-8"),
    "a negative partition": ((KEY[:-4] + b"\xff" * 4, VALUE), "a negative partition"),
    "an empty value": ((KEY, b""), "a value of less than 2 bytes"),
    "version 5": ((KEY, b"\0\5" + VALUE[2:]), "a value of an unknown version"),
    "a negative version": ((KEY, b"\xff\xff" + VALUE[2:]), "a value of an unknown version"),
    "a value cut short": ((KEY, VALUE[:-1]), "a value of the wrong length"),
    "a few bytes": ((KEY, VALUE[:12]), "a value that is cut short"),
    "null metadata": ((KEY, VALUE[:14] + b"\0" + VALUE[15:]), "null metadata"),
    "metadata beyond": ((KEY, VALUE[:14] + b"\xff\x7f" + VALUE[16:]), "a value of the wrong length"),
    "metadata of 16,383 bytes": ((KEY, VALUE[:14] + b"\x80\x80\1" + bytes(16_383)), "metadata that is too long"),
    "an endless length": ((KEY, VALUE[:14] + b"\xff\xff" + VALUE[16:]), "metadata that is too long"),
    "a tag without a length": ((KEY, WITH_ID[:-17]), "a topic id that is cut short"),
    "no tag": ((KEY, WITH_ID[:-18]), "a topic id that is cut short"),
    "a topic id of no bytes": ((KEY, WITH_ID[:-16]), "a topic id that is cut short"),
    "a topic id cut short": ((KEY, WITH_ID[:-1]), "a topic id that is cut short"),
    "a topic id of 15 bytes": ((KEY, WITH_ID[:-17] + b"\x0f" + WITH_ID[-16:]), "a topic id that is cut short"),
    "a topic id of 144 bytes": ((KEY, WITH_ID[:-17] + b"\x90\1" + WITH_ID[-16:]), "a topic id that is cut short"),
    "metadata that is no text": ((KEY, VALUE.replace("é".encode(), b"\xff\xfe")), "metadata that is not UTF-8"),
}


def test_malformed_record_is_kept_with_its_problem(copied: Copied) -> None:
    """A malformed record gives a row that names the problem, and is never decoded as a committed offset."""
    found = decode(copied(record for record, _ in BROKEN.values())).orderBy("log_offset").collect()
    assert {name: row.problem for name, row in zip(BROKEN, found, strict=True)} == {
        name: problem for name, (_, problem) in BROKEN.items()
    }
    assert {(row.topic, row.offset) for row in found} == {(None, None)}


@pytest.mark.parametrize("size", [126, 127, 16_382])
def test_metadata_of_up_to_16382_bytes_is_decoded(copied: Copied, size: int) -> None:
    """Metadata whose length takes one byte or two is decoded, and so is the topic id after it."""
    assert WITH_ID is not None
    metadata = WITH_ID[15:28]
    value = WITH_ID[:14] + varint(size + 1) + b"m" * size + WITH_ID[14 + 1 + len(metadata) :]
    (found,) = decode(copied([(KEY, value)])).collect()
    assert (found.problem, found.metadata, found.topic_id) == (None, "m" * size, TOPIC_ID.hex.upper())
    assert utc(found.commit_time) == COMMITTED


def test_tagged_fields_that_hold_no_topic_id_are_skipped(copied: Copied) -> None:
    """If a commit's tagged field has another tag, is not counted, or is all zeros, the decoded topic id is null.

    Kafka never writes a topic id of zeros.
    """
    assert VALUE is not None
    tails = {b"\1\0\x10" + bytes(16): None, b"\0\0\x10" + TOPIC_ID.bytes: None, b"\1\1\x10" + TOPIC_ID.bytes: None}
    found = decode(copied((KEY, VALUE[:-1] + tail) for tail in tails)).orderBy("log_offset").collect()
    assert [(row.topic_id, row.problem, row.offset) for row in found] == [(None, None, 2**40)] * 3


def test_fuzzed_records_never_abort_a_job(spark: SparkSession, compiled: SparkSession) -> None:
    """Each of 5,000 fuzzed records of the offsets topic gives a row: the decoded record, or the name of its problem.

    Interpreted expressions, as in a small job, give the same rows as compiled ones.
    """
    chance = random.Random(20261120)
    sound = list(RECORDED.values())
    fuzzed = [(_fuzzed(key, chance), value and _fuzzed(value, chance)) for key, value in chance.choices(sound, k=5_000)]
    found = []
    for session in (spark, compiled):
        rows = decode(raw_log(session, as_copied(fuzzed)))
        everything = rows.select(F.xxhash64(*rows.columns).alias("hash"), "problem").groupBy(
            F.isnull("problem").alias("sound")
        )
        figures = everything.agg(F.count("hash").alias("count"), F.bit_xor("hash").alias("hashes"))
        found.append({row.sound: (row["count"], row.hashes) for row in figures.collect()})
    counts = [count for count, _ in found[0].values()]
    assert sum(counts) == 5_000
    assert min(counts) > 500
    assert found[0] == found[1]


def test_control_and_aborted_records_are_not_decoded(copied: Copied) -> None:
    """Control records and aborted records of the offsets topic give no row."""
    for kind in ("control", "aborted"):
        assert decode(copied([RECORDED["commit-value-4"]], kind)).count() == 0


def _fuzzed(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(3)):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(5):
            case 0:
                changed[at:] = b""
            case 1:
                changed[at:at] = chance.randbytes(chance.randrange(9))
            case 2 if changed:
                changed[at % len(changed)] = chance.randrange(256)
            case 3:
                changed[at : at + 8] = chance.choice([b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7])
            case 4:
                changed = bytearray(chance.randbytes(chance.randrange(60)))
    return bytes(changed)
