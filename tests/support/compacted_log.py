"""A simulated ``__consumer_offsets`` that compacts its log as Kafka does, and what was committed at each time."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from migrate_groups.model.offsets_topic import ABORTED, CONTROL, OFFSETS_TOPIC, RECORD, LogPiece, LogRecord
from migrate_groups.model.partitions import LogRange, TopicPartition
from tests.support.offsets_records import commit_key, commit_value

Key = tuple[str, int]
"""A group and a partition of its topic ``t``."""

FIRST_TIME = 1_763_640_000_000
TOMBSTONES_KEPT = 40_000
"""For how many milliseconds after their first compaction tombstones are kept (``delete.retention.ms``)."""


@dataclass
class SimulatedPartition:
    """A partition of the offsets topic. committed: the state after each offset that was ever written."""

    number: int
    chance: random.Random
    records: list[LogRecord] = field(default_factory=list)
    end: int = 0
    time: int = FIRST_TIME
    times: list[int] = field(default_factory=list)
    committed: list[dict[Key, int]] = field(default_factory=list)
    open: dict[int, dict[Key, tuple[int, int]]] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)
    aborted: set[tuple[int, int]] = field(default_factory=set)
    _from: dict[Key, int] = field(default_factory=dict)
    _cleaned: int = 0
    _first_cleaned_at: dict[int, int] = field(default_factory=dict)

    @property
    def last_stable(self) -> int:
        return min(self.began.values(), default=self.end)

    def commit(self, key: Key, offset: int | None, producer: int | None = None) -> None:
        """Append a commit, or a deletion (``offset`` is None), of a group. producer: of its transaction."""
        value = None if offset is None else commit_value(offset, "0A" * 16)
        place, state = self.end, self._state()
        self._append(RECORD, commit_key(key[0], "t", key[1]), value, producer)
        if producer is not None:
            assert offset is not None
            self.began.setdefault(producer, place)
            self.open.setdefault(producer, {})[key] = (place, offset)
        elif offset is None:
            state.pop(key, None)
            for pending in self.open.values():
                pending.pop(key, None)
        else:
            state[key], self._from[key] = offset, place
        self.committed.append(state)

    def end_transaction(self, producer: int, *, commit: bool) -> None:
        """Append the transaction's marker, after which its commits are visible, unless a later commit is."""
        state, first = self._state(), self.began.pop(producer)
        pending = self.open.pop(producer)
        if commit:
            for key, (place, offset) in pending.items():
                if place > self._from.get(key, -1) or key not in state:
                    state[key], self._from[key] = offset, place
        else:
            of_producer = (each for each in self.records if each.producer_id == producer)
            self.aborted |= {(producer, each.offset) for each in of_producer if each.offset >= first}
        self._append(CONTROL, b"\0\0\0" + bytes([commit]), b"\0\0\0\0\0\0", producer)
        self.committed.append(state)

    def at(self, moment: int) -> dict[Key, int]:
        """Return what was committed before the first record from after this time."""
        place = next((number for number, time in enumerate(self.times) if time > moment), self.end)
        return self.committed[place - 1] if place else {}

    def compact(self) -> None:
        """Keep the last record of each key in the section that is not active, and drop old tombstones there."""
        until = self.chance.randint(self._cleaned, max(self._cleaned, self.last_stable - 1))
        last = {each.key: each.offset for each in self.records if each.offset < until and self._is_data(each)}
        kept: list[LogRecord] = []
        for each in self.records:
            if each.offset < until:
                first_cleaned = self._first_cleaned_at.setdefault(each.offset, self.time)
                is_old = self.time - first_cleaned > TOMBSTONES_KEPT
                if (each.producer_id, each.offset) in self.aborted:
                    continue
                if self._is_data(each) and (last[each.key] > each.offset or (each.value is None and is_old)):
                    continue
                if each.kind == CONTROL and is_old and not self._has_data(each, kept):
                    continue
            kept.append(each)
        self.records, self._cleaned = kept, until

    def _is_data(self, record: LogRecord) -> bool:
        return record.kind == RECORD and (record.producer_id, record.offset) not in self.aborted

    @staticmethod
    def _has_data(marker: LogRecord, before: list[LogRecord]) -> bool:
        for each in reversed(before):
            if each.producer_id == marker.producer_id:
                return each.kind == RECORD
        return False

    def _state(self) -> dict[Key, int]:
        return dict(self.committed[-1]) if self.committed else {}

    def _append(self, kind: str, key: bytes, value: bytes | None, producer: int | None) -> None:
        self.time += self.chance.randrange(3_000)
        self.records.append(LogRecord(self.number, self.end, self.time, kind, key, value, producer))
        self.times.append(self.time)
        self.end += 1

    def live(self, steps: int) -> None:
        """Let a few groups commit, in transactions or not, and delete their offsets."""
        for _ in range(steps):
            producer, action = self.chance.randrange(3), self.chance.random()
            key = f"g-{self.number}-{self.chance.randrange(2)}", self.chance.randrange(4)
            if action < 0.15 and producer in self.began:
                self.end_transaction(producer, commit=self.chance.random() < 0.6)
            elif action < 0.3:
                self.commit(key, self.chance.randrange(1_000), producer)
            elif action < 0.45:
                self.commit(key, None)
            else:
                self.commit(key, self.chance.randrange(1_000))


class SimulatedOffsetsTopic:
    """All partitions, with the two requests that copy them. compacts_meanwhile: also between two responses."""

    def __init__(self, partitions: Collection[SimulatedPartition], chance: random.Random, *, compacts_meanwhile: bool):
        self.partitions = {each.number: each for each in partitions}
        self._chance, self._compacts = chance, compacts_meanwhile

    def log_ranges(self, partitions: Collection[TopicPartition], **_: Any) -> Mapping[TopicPartition, LogRange]:
        assert {each.topic for each in partitions} <= {OFFSETS_TOPIC}
        return {each: LogRange(start=0, end=self.partitions[each.partition].end) for each in partitions}

    def read(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LogPiece]:
        positions = dict(positions)
        while moving := [n for n, at in positions.items() if at < min(ends[n], self.partitions[n].last_stable)]:
            found = []
            for number in moving:
                log, most = self.partitions[number], self._chance.randrange(1, 30)
                there = [each for each in log.records if positions[number] <= each.offset < log.last_stable][:most]
                found += [self._kind(log, each) for each in there]
                positions[number] = there[-1].offset + 1 if there else log.last_stable
                if self._compacts and self._chance.random() < 0.3:
                    log.compact()
            yield LogPiece(found, dict(positions))

    @staticmethod
    def _kind(log: SimulatedPartition, record: LogRecord) -> LogRecord:
        return record._replace(kind=ABORTED) if (record.producer_id, record.offset) in log.aborted else record
