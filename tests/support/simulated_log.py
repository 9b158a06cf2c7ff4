"""Simulate the log of a source partition: its records, transactions, and how compaction removes records.

Nothing here shares code with `migrate_groups.mirrors`, which is judged by these simulations.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple

FOREIGN = -1
"""Used in place of the number of a source record: the record was written by another producer."""

_CONTENTS = ("unique", "few", "runs", "periodic", "mixed", "one")


class Record(NamedTuple):
    """A record of a log.

    - number: the offset on the source of the record of which this is a copy, or `FOREIGN`. In the source its offset.
    - content: stands for timestamp, key, value and headers: equal records have equal contents.
    - kind: ``record``, ``aborted``, or ``marker`` (a transaction marker).
    """

    offset: int
    number: int
    timestamp: int
    key: bytes
    content: str
    is_tombstone: bool = False
    kind: str = "record"

    @property
    def fingerprint(self) -> bytes:
        """A hash of the content."""
        return hashlib.blake2b(self.content.encode(), digest_size=16).digest()

    @property
    def key_hash(self) -> bytes:
        """A hash of the key."""
        return hashlib.blake2b(self.key, digest_size=8).digest()


Log = list[Record]


def written(rng: random.Random, *, is_plain: bool, tombstones: bool, transactions: bool) -> Log:
    """Return the records that producers have written to a partition.

    is_plain: whether all records differ, and timestamps ascend. tombstones, transactions: whether there are some.
    """
    count = rng.randint(1, 40)
    contents = _contents(rng, count, "unique" if is_plain else rng.choice(_CONTENTS))
    timestamps = _timestamps(rng, count, is_plain=is_plain)
    spread = rng.choice([1, 4, 12])
    without_value = {content for content in contents if tombstones and rng.random() < 0.1}
    kinds = [*_kinds(rng, count)] if transactions else ["record"] * count
    return [
        Record(
            offset=number,
            number=number,
            timestamp=timestamp,
            key=b"%d" % (content % spread),  # equal records have the same key
            content=f"{content}@{timestamp}",
            is_tombstone=content in without_value,
            kind=kind,
        )
        for number, (content, timestamp, kind) in enumerate(zip(contents, timestamps, kinds, strict=True))
    ]


def _contents(rng: random.Random, number: int, kind: str) -> list[int]:
    if kind == "unique":
        # The numbers are mixed, so that keys, which are made of them, do not come in turns.
        return rng.sample(range(10 * number), number)
    if kind == "few":
        return [rng.randint(0, 3) for _ in range(number)]
    if kind == "periodic":
        period = rng.randint(1, 5)
        return [index % period for index in range(number)]
    if kind == "mixed":
        return [index + 10 if rng.random() < 0.6 else rng.randint(1, 3) for index in range(number)]
    if kind == "one":
        return [7] * number
    made: list[int] = []
    while len(made) < number:
        made += [rng.randint(0, 20)] * rng.randint(1, 6)
    return made[:number]


def _timestamps(rng: random.Random, number: int, *, is_plain: bool) -> list[int]:
    """Return timestamps with many records in the same millisecond; in some logs they are out of order."""
    burst = rng.choice([0.0, 0.3, 0.9, 1.0])
    made, now = [], 10
    for _ in range(number):
        now += 0 if rng.random() < burst else rng.randint(1, 3)
        made.append(now)
    return made if is_plain or rng.random() < 0.8 else [each + rng.randint(-4, 4) for each in made]


def _kinds(rng: random.Random, number: int) -> Iterator[str]:
    left = number
    while left:
        size = min(left, rng.randint(1, 6))
        left -= size
        if size > 1 and rng.random() < 0.7:
            yield from [rng.choice(["record", "aborted"])] * (size - 1)
            yield "marker"
        else:
            yield from ["record"] * size


def cleaned(rng: random.Random, log: Log) -> Log:
    """Return a log whose records below a random offset have been compacted, as Kafka does.

    Of each key only the last of these records stays; of tombstones that stay, some have expired and go, too.
    """
    if not log:
        return log
    end = rng.choice(log).offset
    last: Mapping[bytes, int] = {each.key: each.offset for each in log if each.offset < end}
    return [
        each
        for each in log
        if each.offset >= end or (last[each.key] == each.offset and not (each.is_tombstone and rng.random() < 0.5))
    ]
