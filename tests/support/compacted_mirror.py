"""Simulate a compacted log and a mirror's copy of it, which is compacted at other times.

The simulation knows which record of the log each record of the copy was made from.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import NamedTuple

from migrate_groups.mirrors.place import CopyPart, LogPart

_Log = list[tuple[int, int]]
"""A log: the offset and the number of each record. In the source log a record's number is its offset."""


class Compacted(NamedTuple):
    """The parts of the source log and of the copy that a comparison reads, and the true content of both logs.

    kept: the numbers of the records that the source log still contains. copied: the offset and the number of each
    record of the copy.
    """

    source: LogPart
    committed: int
    copy: CopyPart
    kept: Collection[int]
    copied: Sequence[tuple[int, int]]

    def read_again(self, place: int) -> int:
        """Return how many records from before the committed offset a group at offset ``place`` of the copy reads."""
        return sum(number < self.committed for offset, number in self.copied if offset >= place)

    def skipped(self, place: int) -> set[int]:
        """Return the numbers of the records that a group skips if it starts at offset ``place`` of the copy.

        Records below the committed offset, records that the mirror has not copied, and records that the source log no
        longer contains are left out.
        """
        delivered = {number for _, number in self.copied if number >= self.committed} & {*self.kept}
        return delivered - {number for offset, number in self.copied if offset >= place}


def compacted(rng: random.Random) -> Compacted:
    """Return a random compacted log and its copy by a mirror that sometimes copies some records again."""
    number = rng.randint(1, 25)
    spread = rng.choice([1, 4, 12])
    keys = [rng.randint(0, spread) for _ in range(number)]
    tombstones = {each for each in range(number) if rng.random() < 0.1}
    log: _Log = [(each, each) for each in range(number)]
    copied: _Log = []
    often, position = rng.choice([0.05, 0.2]), 0
    for end in range(rng.randint(1, 3 * number)):
        if rng.random() < often:
            log = _cleaned(rng, log, keys, tombstones)
        if rng.random() < often:
            copied = _cleaned(rng, copied, keys, tombstones)
        if rng.random() < 0.05:
            position = rng.randint(0, position)
        if (record := next((each for offset, each in log if offset >= position), None)) is not None:
            copied.append((end, record))
            position = record + 1
    return _read(rng, log, copied, number)


def _cleaned(rng: random.Random, log: _Log, keys: Sequence[int], tombstones: Collection[int]) -> _Log:
    """Return a log whose records below a random offset have been compacted."""
    if not log:
        return log
    end, _ = rng.choice(log)
    last = {keys[number]: offset for offset, number in log if offset < end}
    return [
        (offset, number)
        for offset, number in log
        if offset >= end or (last[keys[number]] == offset and not (number in tombstones and rng.random() < 0.5))
    ]


def _read(rng: random.Random, log: _Log, copied: _Log, number: int) -> Compacted:
    committed = rng.randint(0, number)
    start = rng.choice([0, rng.randint(0, committed)])
    kept = [each for _, each in log]
    read = [each for each in kept if each >= start]
    seen = [(offset, each) for offset, each in copied if read and each >= read[0]][:1]
    first = seen[0][0] if seen else 3 * number
    seen = [(offset, each) for offset, each in copied if offset >= first]
    source = LogPart(offsets=read, timestamps=read, prints=[b"%d" % each for each in read], from_start=start == 0)
    copy = CopyPart(
        offsets=[offset for offset, _ in seen],
        timestamps=[each for _, each in seen],
        prints=[b"%d" % each for _, each in seen],
        start=first,
        is_cut_off=False,
    )
    return Compacted(source, committed, copy, kept, copied)
