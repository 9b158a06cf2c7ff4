"""Simulate a log and a mirror's copy of it.

The simulation knows which record of the log each record of the copy was made from.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from migrate_groups.mirrors.place import CopyPart, LogPart

CONTENTS = ("unique", "few", "runs", "periodic", "mixed")


class Mirrored(NamedTuple):
    """A log and its copy.

    log: the fingerprint of each record. timestamps: the timestamp of each record. copied: for each record of the copy
    its index in the log.
    """

    log: Sequence[bytes]
    timestamps: Sequence[int]
    copied: Sequence[int]


def mirrored(rng: random.Random) -> Mirrored:
    """Return a random log and its copy. The mirror keeps the order; at each restart it copies some records again."""
    number = rng.randint(1, 40)
    contents = _contents(rng, number)
    start = 0 if rng.random() < 0.6 else rng.randint(0, number - 1)
    copied: list[int] = []
    stop, index = rng.randint(1, 3 * number), start
    while len(copied) < stop and index < number:
        copied.append(index)
        index += 1
        if rng.random() < 0.05:
            index = rng.randint(start if rng.random() < 0.7 else max(start, index - 5), index)
    timestamps = _timestamps(rng, number)
    log = [f"{content}@{timestamp}".encode() for content, timestamp in zip(contents, timestamps, strict=True)]
    return Mirrored(log, timestamps, copied)


def _contents(rng: random.Random, number: int) -> list[int]:
    kind = rng.choice(CONTENTS)
    if kind == "unique":
        return [*range(number)]
    if kind == "few":
        return [rng.randint(0, 3) for _ in range(number)]
    if kind == "periodic":
        period = rng.randint(1, 5)
        return [index % period for index in range(number)]
    if kind == "mixed":
        return [index if rng.random() < 0.6 else rng.randint(-3, -1) for index in range(number)]
    made: list[int] = []
    while len(made) < number:
        made += [rng.randint(0, 20)] * rng.randint(1, 6)
    return made[:number]


def _timestamps(rng: random.Random, number: int) -> list[int]:
    """Return timestamps with many records in the same millisecond; in some logs they are out of order."""
    burst = rng.choice([0.0, 0.3, 0.9, 1.0])
    made, now = [], 10
    for _ in range(number):
        now += 0 if rng.random() < burst else rng.randint(1, 3)
        made.append(now)
    return [each + rng.randint(-4, 4) for each in made] if rng.random() < 0.2 else made


def windows(rng: random.Random, case: Mirrored) -> tuple[LogPart, int, CopyPart, Sequence[int]]:
    """Return the input of a comparison: the source log from a random record on, a committed offset, and the copy.

    The fourth value is the truth: for each record of the copy its index in that part of the source log; negative: the
    record is from before that part.
    """
    cut = rng.randint(0, len(case.log))
    start = rng.choice([0, rng.randint(0, cut)])
    while start > 0 and (start == cut or case.timestamps[start - 1] == case.timestamps[start]):
        start -= 1
    least = min(case.timestamps[start:cut], default=0)
    first = next((at for at, index in enumerate(case.copied) if case.timestamps[index] >= least), len(case.copied))
    first = first if start else 0
    source = LogPart(
        offsets=range(start, len(case.log)),
        timestamps=case.timestamps[start:],
        prints=case.log[start:],
        from_start=start == 0,
    )
    seen = case.copied[first:]
    copy = CopyPart(
        offsets=range(first, len(case.copied)),
        timestamps=[case.timestamps[index] for index in seen],
        prints=[case.log[index] for index in seen],
        start=first,
        is_cut_off=False,
    )
    return source, cut, copy, [index - start for index in seen]


def is_wrong(place: int, source: LogPart, committed: int, copy: CopyPart, truth: Sequence[int]) -> bool:
    """Return whether a group that starts at offset ``place`` of the copy skips a record, or reads one again.

    Records with the same content are treated as one record. truth: the last value that `windows` returns.
    """
    cut = committed - source.offsets[0] if source.offsets else 0
    read = Counter(each for offset, each in zip(copy.offsets, copy.prints, strict=True) if offset >= place)
    delivered = Counter(source.prints[index] for index in {index for index in truth if index >= cut})
    from_before = read.keys() - set(source.prints[cut:])
    return bool(from_before) or any(read[each] < number for each, number in delivered.items())
