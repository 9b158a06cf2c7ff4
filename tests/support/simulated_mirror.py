"""Simulate a source partition and what a mirror, honest or not, has made of it on another cluster.

The simulation knows from which source record each record of the copy was made. `Case` judges a translation by these
numbers alone, and shares no code with what has translated the offset.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from migrate_groups.migration.across.translate import find_positions
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.ports import Side
from migrate_groups.mirrors.position import Position, Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.translation import TranslatedOffset
from tests.support.in_memory import InMemoryCluster, InMemoryRecords
from tests.support.simulated_log import FOREIGN, Log, Record, cleaned, written

POLICIES = ("delete", "compact", "target compact", "source compact", "unknown")
"""The cleanup.policy of the topics: on both clusters, or compact on one. ``unknown``: compact, but not readable."""

HONEST = ("honest", "transactions", "expired")
LOSING = ("drops a third", "drops one", "loses some", "filters a key")
FOREIGNERS = ("foreign at the end", "foreign between", "foreign first", "foreign only")
DISHONEST = (*LOSING, "stamps headers", "stamps some", "swaps two", *FOREIGNERS, "recreated copy")
KINDS = [(policy, mirror) for policy in POLICIES for mirror in (*HONEST, *DISHONEST)]
"""All pairs of a cleanup.policy and a kind of mirror. ``expired``: the source's records have all been deleted."""

_HERE, _THERE = TopicPartition("orders", 0), TopicPartition("eu.orders", 0)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source partition, its copy, and a group's committed offset.

    - policy, mirror: an item of `KINDS`.
    - written: all records that the source has ever had, markers included. The index of each is its offset.
    - source, copy: the records that both logs have now. source_start, copy_start: their log start offsets.
    - copy_end: the log end offset of the copy.
    - delivered: the numbers of all source records that the mirror has delivered. position: the offset of the source at
      which it continues.
    """

    policy: str
    mirror: str
    written: Log
    source: Log
    source_start: int
    copy: Log
    copy_start: int
    copy_end: int
    delivered: Collection[int]
    position: int
    committed: int

    @property
    def is_compacted(self) -> bool:
        """Whether compaction has removed a record from one of the logs."""
        records = sum(each.kind != "marker" for each in self.written[self.source_start :])
        return records > len(self.source) or self.copy_end - self.copy_start > len(self.copy)

    def translated(self) -> Position:
        """Return the position that the code under test finds, on two clusters in memory with these logs."""
        mirror = self._mirror()
        asked = TranslatedOffset(source=_HERE, offset=self.committed, committed=self.committed, copy=_THERE)
        return find_positions(mirror, [asked])[asked].position

    def returned(self, committed: int) -> Position:
        """Return the position on the source that the code under test finds for a committed offset in the copy."""
        mirror = self._mirror()
        back = mirror._replace(source=mirror.target, target=mirror.source, is_return=True)
        asked = TranslatedOffset(source=_THERE, offset=committed, committed=committed, copy=_HERE)
        return find_positions(back, [asked])[asked].position

    def _mirror(self) -> Mirror:
        compacted = {"compact": (True, True), "source compact": (True, False), "target compact": (False, True)}
        on_source, on_target = compacted.get(self.policy, (False, False))
        source, target = InMemoryCluster("source"), InMemoryCluster("target")
        source.create_topic(_HERE.topic, 1, compacted=on_source)
        target.create_topic(_THERE.topic, 1, compacted=on_target)
        for cluster in (source, target):
            cluster.hide_policies = self.policy == "unknown"
        _fill(source, _HERE, self.source, self.source_start, len(self.written))
        _fill(target, _THERE, self.copy, self.copy_start, self.copy_end)
        return Mirror(Side(source, InMemoryRecords(source)), Side(target, InMemoryRecords(target)))

    def wrong_return(self, committed: int, found: Position) -> str:
        """Return what goes wrong if a group that has read the copy up to an offset goes on at a position on the source.

        The result is empty if nothing does. Records with the same content count as equals. Records that the mirror has
        left out, and those before the first that it has delivered, are not due. A record that the mirror has altered
        counts as one of another producer.
        """
        if found.offset is None:
            return ""
        copies = [
            each for each in self.copy if each.content in self._contents([each.number]) and each.number != FOREIGN
        ]
        read = {each.number for each in copies if each.offset < committed}
        if self.is_compacted or self.copy_start:  # the group has read copies that have been removed since
            read |= {each for each in self.delivered if each < max(read, default=0)}
        if found.status is Status.EXACT and self.foreign(committed):
            return "leaves a record of another producer behind"
        still = {each.number for each in self.source if each.kind == "record"}
        skipped = {
            each.number for each in copies if each.offset >= committed and each.number < found.offset
        } & still - read
        if Counter(self._contents(skipped)) - Counter(
            self._contents(each for each in read if each >= found.offset or each not in still)
        ):
            return "skips a record"
        again = {each for each in read & still if each >= found.offset}
        new = Counter(self._contents(each for each in still - read if each < found.offset))
        return "reads a record again" if (Counter(self._contents(again)) - new).total() > found.reread else ""

    def wrong(self, found: Position) -> str:
        """Return what goes wrong if a group starts at an offset that was found; empty if nothing does.

        Records with the same content count as equals. A record that the source no longer has may be skipped, because a
        group on the source skips it, too. At an offset that is not exact, a group may read ``reread`` records again.
        """
        if found.offset is None:
            return ""
        read = [each.number for each in self.copy if each.offset >= found.offset and each.number != FOREIGN]
        still = {each.number for each in self.source if each.kind == "record"}
        due = {each.number for each in self.copy if each.number >= self.committed} & still
        if Counter(self._contents(due)) - Counter(self._contents(read)):
            return "skips a record"
        if found.status is Status.NOT_MIRRORED:  # nothing is promised but that no record is skipped
            return ""
        later = {each.content for each in self.written[self.committed :]}
        again = [each for each in self._contents(each for each in read if each < self.committed) if each not in later]
        if len(again) > found.reread:
            return "reads a record again"
        if found.status is not Status.EXACT:
            return ""
        if any(content not in later for content in self._contents(self._coming())):
            return "will read a record again"
        return "a record is lost" if self.lost() else ""

    def _coming(self) -> Iterable[int]:
        """Return the numbers of the records from before the committed offset that an honest mirror delivers later.

        Nothing is returned if timestamps are out of order, if the source has lost its first records, or if compaction
        has removed one of two equal records: then the mirror may seem to be further (docs/two-clusters.md).
        """
        timestamps = [each.timestamp for each in self.written]
        are_equal = len({each.content for each in self.written}) < len(self.written)
        if self.source_start or timestamps != sorted(timestamps) or (are_equal and self.is_compacted):
            return ()
        last = self.copy[-1].number if self.copy else FOREIGN
        coming = [each for each in self.source if last < each.number < self.committed and each.kind == "record"]
        return [each.number for each in coming if self.mirror in HONEST]

    def _contents(self, numbers: Iterable[int]) -> Iterator[str]:
        return (self.written[number].content for number in numbers)

    def lost(self) -> Sequence[int]:
        """Return the numbers of the source records at or after the committed offset that the mirror has left out.

        A record with a later record of its key does not count if compaction has removed any record. Nothing is counted
        if the source has equal records, because then a mirror that left out one of them may look like one that is late.
        """
        if len({each.content for each in self.written}) < len(self.written):
            return ()
        last = min(self.position, max((each.number for each in self.copy), default=FOREIGN))
        left = [
            each
            for each in self.source
            if self.committed <= each.number < last and each.number not in self.delivered and each.kind == "record"
        ]
        return [each.number for each in left if not (self.is_compacted and self._is_superseded(each))]

    def _is_superseded(self, record: Record) -> bool:
        return any(number > record.number and self.written[number].key == record.key for number in self.delivered)

    def foreign(self, offset: int) -> int:
        """Return how many records of other producers a group reads that starts at this offset of the copy."""
        return sum(each.number == FOREIGN for each in self.copy if each.offset >= offset)


def _fill(cluster: InMemoryCluster, partition: TopicPartition, records: Log, start: int, end: int) -> None:
    log = cluster.log(partition)
    log.start, log.end = start, end
    for each in records:
        log.put(each.offset, each.timestamp, each.fingerprint, each.key_hash, is_tombstone=each.is_tombstone)
        if each.kind == "aborted":
            log.unseen.add(each.offset)


def simulated(rng: random.Random, policy: str, mirror: str) -> Case:
    """Return a random partition and its copy. policy, mirror: an item of `KINDS`."""
    # A dishonest mirror that leaves out one of several equal records can't be told from an honest one that is late.
    is_plain, transactions = mirror in DISHONEST, mirror == "transactions"
    log = written(rng, is_plain=is_plain, tombstones=policy != "delete", transactions=transactions)
    made = _Mirroring(rng, policy, mirror, log)
    made.run()
    start = rng.randint(0, len(log)) if rng.random() < 0.25 else 0
    committed = rng.choice([rng.randint(start, len(log)), rng.randint(0, len(log)), len(log)])
    if mirror == "expired":
        start = committed = len(log)
    copy_start = rng.randint(0, made.end) if rng.random() < 0.2 else 0
    return Case(
        policy=policy,
        mirror=mirror,
        written=log,
        source=[each for each in made.source if each.offset >= start],
        source_start=start,
        copy=[each for each in made.copy if each.offset >= copy_start],
        copy_start=copy_start,
        copy_end=made.end,
        delivered=made.delivered,
        position=made.position,
        committed=committed,
    )


class _Mirroring:
    """A mirror that copies a log record by record, while both logs are compacted now and then."""

    def __init__(self, rng: random.Random, policy: str, mirror: str, log: Log) -> None:
        self._rng, self._policy, self._mirror = rng, policy, mirror
        self.source: Log = [each for each in log if each.kind != "marker"]
        self.copy: Log = []
        self.end = 0
        self.delivered: set[int] = set()
        self._begin = self.position = 0 if rng.random() < 0.7 else rng.randint(0, len(log) - 1)
        self._steps = rng.randint(1, 3 * len(log))
        self._faulty_step = rng.randint(0, len(log))
        self._left_out = self._chosen(log)
        self._reads_aborted = rng.random() < 0.5
        self._now = log[0].timestamp

    def _chosen(self, log: Log) -> Collection[int]:
        """Return the numbers of the source records that the mirror never delivers."""
        one = self._rng.choice(log)
        chosen = {
            "drops a third": {each.number for each in log if each.number % 3 == 2},
            "drops one": {one.number},
            "filters a key": {each.number for each in log if each.key == one.key},
        }
        return chosen.get(self._mirror, set())

    def run(self) -> None:
        """Copy records, and compact both logs at random moments."""
        rng = self._rng
        often, restarts = rng.choice([0.0, 0.05, 0.2]), rng.choice([0.0, 0.05])
        if self._mirror == "foreign first":
            self._others(rng.randint(1, 5))
        for step in range(self._steps):
            if self._policy in ("compact", "source compact", "unknown") and rng.random() < often:
                self.source = cleaned(rng, self.source)
            if self._policy in ("compact", "target compact", "unknown") and rng.random() < often:
                self.copy = cleaned(rng, self.copy)
            if rng.random() < restarts:
                self.position = rng.randint(self._begin, max(self._begin, self.position))
            self._step(is_faulty=step == self._faulty_step)
        if self._mirror == "foreign at the end":
            self._others(rng.randint(1, 8))

    def _step(self, *, is_faulty: bool) -> None:
        if self._mirror == "foreign between" and self._rng.random() < 0.1:
            self._others(1)
        if self._mirror == "loses some" and is_faulty:
            self.position += self._rng.randint(1, 5)
        if self._mirror == "recreated copy" and is_faulty:
            self.copy, self.end = [], 0
            self.delivered.clear()
        coming = [each for each in self.source if each.offset >= self.position]
        coming = coming[: 2 if self._mirror == "swaps two" and is_faulty else 1]
        for each in reversed(coming):
            self._deliver(each)
        if coming:
            self.position = coming[-1].offset + 1

    def _deliver(self, record: Record) -> None:
        self._now = max(self._now, record.timestamp)
        if self._mirror == "foreign only":
            self._others(1)
        elif record.number not in self._left_out and (record.kind == "record" or self._reads_aborted):
            is_stamped = self._mirror == "stamps headers" or (self._mirror == "stamps some" and record.number % 4 == 1)
            self._append(record._replace(content=record.content + " stamped" * is_stamped, kind="record"))
            self.delivered.add(record.number)

    def _others(self, number: int) -> None:
        for _ in range(number):
            timestamp, key = self._now + self._rng.randint(0, 3), b"%d" % self._rng.randint(0, 12)
            content = f"foreign {self.end}@{timestamp}"
            self._append(Record(offset=0, number=FOREIGN, timestamp=timestamp, key=key, content=content))

    def _append(self, record: Record) -> None:
        self.copy.append(record._replace(offset=self.end))
        self.end += 1
