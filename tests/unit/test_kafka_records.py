"""The child process that reads records: its answers come in pieces, and after a failure it is replaced."""

from __future__ import annotations

from array import array
from base64 import b64encode

import msgspec
import pytest

from migrate_groups.errors import ClusterUnavailable, NotAuthorized
from migrate_groups.kafka import records
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.records_process import fingerprint, key_hash
from migrate_groups.model.partitions import TopicPartition

CONFIG = ClientConfig(bootstrap_servers="localhost:9092")
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class Child:
    """A fake child process. All instances take their answers from one script; None in the script means no answer."""

    script: list[object]
    asked: list[dict[str, object]]
    ended: int

    def __init__(self, program):
        assert program == "records_process"

    def answer(self, question, timeout):
        self.asked.append(msgspec.json.decode(question)["arguments"])
        return self.next_answer(timeout)

    def next_answer(self, timeout):
        return self.script.pop(0)

    def end(self):
        Child.ended += 1


@pytest.fixture
def children(monkeypatch):
    """Replace the process that reads records by `Child`, with an empty script."""
    Child.script, Child.asked, Child.ended = [], [], 0
    monkeypatch.setattr(records, "Child", Child)
    return Child


def piece(index: int, *offsets: int, is_last: bool) -> list[object]:
    numbers = b64encode(array("q", offsets).tobytes()).decode()
    prints = b64encode(b"".join(offset.to_bytes(16, "big") for offset in offsets)).decode()
    keys = b64encode(b"".join(offset.to_bytes(8, "big") for offset in offsets)).decode()
    tombstones = b64encode(bytes(offset % 2 for offset in offsets)).decode()
    return [index, numbers, numbers, prints, keys, tombstones, False, is_last]


def test_records_that_come_in_pieces_are_joined(children):
    """If records come in pieces, they are joined by partition, whatever the order of the pieces.

    An empty range of offsets is not requested.
    """
    children.script[:] = [
        {"answer": [piece(0, 5, 6, is_last=False), piece(1, 8, is_last=True)]},
        {"answer": []},
        {"answer": [piece(0, 7, is_last=True)]},
    ]
    third = TopicPartition("t", 2)
    spans = {FIRST: range(5, 8), SECOND: range(8, 9), third: range(3, 3)}
    found = records.KafkaRecords(CONFIG).read(spans, committed_only=True)
    assert {each: list(found[each].offsets) for each in spans} == {FIRST: [5, 6, 7], SECOND: [8], third: []}
    assert found[FIRST].prints[2] == (7).to_bytes(16, "big")
    assert (found[FIRST].keys[2], [*found[FIRST].tombstones]) == ((7).to_bytes(8, "big"), [1, 0, 1])
    assert children.asked[0]["spans"] == [["t", 0, 5, 8], ["t", 1, 8, 9]]


@pytest.mark.parametrize("answers", [[None], [{"answer": []}, None]])
def test_a_child_that_dies_is_said_and_replaced(children, answers):
    """If the child process that reads records dies, the request fails, and the next request goes to a new process."""
    children.script[:] = [*answers, {"answer": [piece(0, 5, is_last=True)]}]
    reader = records.KafkaRecords(CONFIG)
    with pytest.raises(ClusterUnavailable, match=r"died or hung: run the command again"):
        reader.read({FIRST: range(5, 6)}, committed_only=True)
    assert children.ended == 1
    assert list(reader.read({FIRST: range(5, 6)}, committed_only=True)[FIRST].offsets) == [5]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("TOPIC_AUTHORIZATION_FAILED: Fetch failed", NotAuthorized, "lacks Read on a topic"),
        ("no answer for t-0", ClusterUnavailable, "no answer for t-0: check its brokers"),
    ],
)
def test_an_error_of_the_child_is_raised(children, text, kind, said):
    """A missing permission and silent brokers raise different errors. After either, the child process is ended."""
    children.script[:] = [{"error": text}]
    with pytest.raises(kind, match=said):
        records.KafkaRecords(CONFIG).read({FIRST: range(5, 6)}, committed_only=True)
    assert children.ended == 1


def test_a_fingerprint_tells_records_apart():
    """If two records differ in timestamp, key, value or headers, their fingerprints differ.

    Null and empty differ, too.
    """
    some = [
        fingerprint(1, b"k", b"v", []),
        fingerprint(2, b"k", b"v", []),
        fingerprint(1, None, b"v", []),
        fingerprint(1, b"", b"v", []),
        fingerprint(1, b"kv", b"", []),
        fingerprint(1, b"k", None, []),
        fingerprint(1, b"k", b"v", [("h", None)]),
        fingerprint(1, b"k", b"v", [("h", b"")]),
        fingerprint(1, b"k", b"v", [("h", b""), ("i", b"")]),
        fingerprint(1, b"k", b"v", [("i", b""), ("h", b"")]),
    ]
    assert len(set(some)) == len(some)
    assert fingerprint(1, b"k", b"v", []) == some[0]


def test_the_hash_of_a_key():
    """Keys have different hashes; a null key has zeros, and an empty key has not."""
    hashes = [key_hash(None), key_hash(b""), key_hash(b"k"), key_hash(b"l")]
    assert len({*hashes}) == 4
    assert hashes[0] == bytes(8)
    assert key_hash(b"k") == hashes[2]
