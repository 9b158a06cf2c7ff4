"""Count every record over a fail-over and the return, with kills of the mirror, the tool and brokers, in memory.

The clusters, the mirror and the applications are simulated; the tool is the real one.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import pytest

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, PartlyApplied, Refused
from migrate_groups.files import kept_offsets_json
from migrate_groups.migration.across.compare import compare
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.fail_over import fail_over, plan_fail_over
from migrate_groups.migration.hand_over.migrate import migrate, plan_migration
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.write_result import WriteResult
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order.seams import start_at_once
from tests.support.in_memory import Asked, InMemoryCluster
from tests.support.move import OPTIONS, Move

SEEDS, MANY = 8, 200


class Killed(BaseException):
    """The tool is killed."""


class Mortal(Asked):
    """A cluster that kills its client at a request, or whose broker is killed and does not answer some requests.

    until: the number of requests before it kills its client; None: it does not. loss: at which request its broker is
    lost, by name or number, and how many requests it then does not answer. A write without an answer was carried out,
    or not.
    """

    until: int | None = None
    loss: tuple[str | int, int] | None = None
    lost = range(0)
    """The numbers of the requests that are not answered."""
    rng: random.Random
    asked = unanswered = 0

    def before_request(self, name: str) -> None:
        if self.until is not None:
            self.until -= 1
            if self.until < 0:
                raise Killed(name)
        self.asked += 1
        if self.loss and self.loss[0] in (name, self.asked):
            self.lost, self.loss = range(self.asked, self.asked + self.loss[1]), None
        if self.is_lost and name not in _ANSWERED_EACH:
            self._refuse()

    @property
    def is_lost(self) -> bool:
        """Whether the broker answers no request now."""
        return self.asked in self.lost

    def _refuse(self) -> NoReturn:
        self.unanswered += 1
        raise _silent()

    def _answered(self, answered: Callable[[], Mapping[str, Any]], groups: Collection[str]) -> Mapping[str, Any]:
        """Return an error for each group if the broker is lost, as the real client does."""
        if not self.is_lost:
            return answered()
        self.unanswered += 1
        return {group: _silent() for group in groups}

    def describe_groups(self, groups):
        return self._answered(lambda: super(Mortal, self).describe_groups(groups), groups)

    def describe_with_offsets(self, wanted):
        return self._answered(lambda: super(Mortal, self).describe_with_offsets(wanted), wanted)

    def committed(self, wanted, *, wait: bool = True):
        return self._answered(lambda: super(Mortal, self).committed(wanted, wait=wait), wanted)

    def alter_offsets(self, offsets):
        silence = {group: dict.fromkeys(of_group, _SILENCE) for group, of_group in offsets.items()}
        return self._written(lambda: super(Mortal, self).alter_offsets(offsets), silence)

    def delete_offsets(self, partitions):
        silence = {group: dict.fromkeys(of_group, _SILENCE) for group, of_group in partitions.items()}
        return self._written(lambda: super(Mortal, self).delete_offsets(partitions), silence)

    def delete_groups(self, groups):
        return self._written(lambda: super(Mortal, self).delete_groups(groups), dict.fromkeys(groups, _SILENCE))

    def commit_probes(self, probes, partition):
        silence = dict.fromkeys(probes, _SILENCE)
        return self._written(lambda: super(Mortal, self).commit_probes(probes, partition), silence)

    def _written(self, write: Callable[[], Mapping[str, Any]], silence: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answers to a write; ``silence`` if the broker is lost, before or after it has carried it out."""
        if not self.is_lost:
            return write()
        self.unanswered += 1
        if self.rng.random() < 0.5:
            write()
        return silence

    def records(self, partition, span, *, committed_only: bool):
        if self.is_lost:
            self._refuse()
        return super().records(partition, span, committed_only=committed_only)


_SILENCE = WriteAnswer(answer=Answer.UNKNOWN, error="KafkaConnectionError: connection lost")
_WRITES = ("alter_offsets", "delete_offsets", "delete_groups", "commit_probes")
_ANSWERED_EACH = {"describe_groups", "describe_with_offsets", "committed", "at_once", "round_trip", *_WRITES}
"""Requests without a broker's answer that raise no error as a whole."""


def _silent() -> ClusterUnavailable:
    return ClusterUnavailable("the broker does not answer")


class Ledger(Move):
    """Two clusters with a mirror, a group, and how often each record of the source was processed.

    processed: by partition and offset on the source. read_there: those that were processed on the target.
    not_committed: those that were processed right before a crash, some of them once more since. copied: by partition,
    the source offsets of the copy's records.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, Mortal)
        self.rng, self.kept = rng, folder / "kept.json"
        self.processed: Counter[tuple[int, int]] = Counter()
        self.read_there: set[tuple[int, int]] = set()
        self.not_committed: set[tuple[int, int]] = set()
        self.copied: list[list[int]] = [[], []]
        self.position = [0, 0]
        self.commit(0, 0)
        self.kills = self.losses = 0
        for each in (self.source, self.target):
            assert isinstance(each, Mortal)
            each.rng = rng

    def produce(self) -> None:
        for number in range(2):
            for _ in range(self.rng.randint(0, 15)):
                self.source.produce("orders", number, 1, timestamp=self._end(number))

    def _end(self, number: int) -> int:
        return self.source.log(TopicPartition("orders", number)).end

    def mirrors(self, most: int = 20, restarts: float = 0.2) -> None:
        """Let the mirror copy some records. It is killed before at times, and begins again at an earlier record."""
        for number in range(2):
            if self.rng.random() < restarts:
                self.position[number] = max(0, self.position[number] - self.rng.randint(1, 40))
            first = self.position[number]
            last = min(self._end(number), first + self.rng.randint(0, most))
            self.copy(first, last, number)
            self.copied[number] += range(first, last)
            self.position[number] = last

    def consumes(self, *, on_target: bool = False, everything: bool = False) -> None:
        """Let the application process records from its committed offsets, and commit unless it crashes before."""
        cluster, topic = (self.target, "eu.orders") if on_target else (self.source, "orders")
        for number in range(2):
            partition = TopicPartition(topic, number)
            end = cluster.log(partition).end
            committed = cluster.offsets("g").get(partition)
            assert committed is not None
            until = end if everything else min(end, committed.offset + self.rng.randint(0, 12))
            read = [self.copied[number][at] if on_target else at for at in range(committed.offset, until)]
            self.processed.update((number, offset) for offset in read)
            self.read_there |= {(number, offset) for offset in read if on_target}
            if everything or self.rng.random() < 0.9:
                cluster.commit("g", partition, until)
            else:
                self.not_committed |= {(number, offset) for offset in read}

    def compares(self) -> None:
        """Keep the translated offsets. At times a broker is lost meanwhile; then the last ones stay kept."""
        with self._a_broker_lost(0.3, self.source, self.target), suppress(ClusterUnavailable):
            kept = compare(self.mirror, ["g"], self.clock).kept
            if len(kept.starts(0)) == 2:
                kept_offsets_json.save(kept, self.kept)

    @contextmanager
    def _a_broker_lost(self, how_often: float, *clusters: InMemoryCluster) -> Iterator[None]:
        """Lose a broker at times, during some requests of a ``with`` block, or the leader of a partition in all of it.

        The applications and the mirror have stopped, or retry until it is there again.
        """
        lost = self.rng.choice([each for each in clusters if isinstance(each, Mortal)])
        leaderless = None
        if self.rng.random() < how_often:
            if self.rng.random() < 0.3:
                topic = "orders" if lost is self.source else "eu.orders"
                leaderless = lost.log(TopicPartition(topic, self.rng.randint(0, 1)))
                leaderless.has_leader = False
            else:
                when: list[str | int] = [*_WRITES, lost.asked + self.rng.randint(1, 60)]
                lost.loss = self.rng.choice(when), self.rng.choice([1, 2, 3, 8])
        before = lost.unanswered
        try:
            yield
        finally:
            self.losses += lost.unanswered > before or leaderless is not None
            lost.lost, lost.loss = range(0), None
            if leaderless:
                leaderless.has_leader = True

    def survives(self, run: Callable[[], None], *clusters: InMemoryCluster) -> None:
        """Run the tool, kill it or a broker at some request at times, and run it again until it is done."""
        mortal = [each for each in clusters if isinstance(each, Mortal)]
        for _ in range(self.rng.randint(0, 3)):
            if self.rng.random() < 0.5:
                self.rng.choice(mortal).until = self.rng.randint(0, 120)
            try:
                with self._a_broker_lost(0.6, *clusters):
                    run()
            except Killed:
                self.kills += 1
            except MigrateGroupsError as error:
                assert isinstance(error, (ClusterUnavailable, PartlyApplied, Refused)), error
            for each in mortal:
                each.until = None
        run()

    def fails_over(self) -> int:
        """Start the group on the target cluster, and return how many records the plan says are read again at most."""
        wanted, kept = self.wanted(OPTIONS, mirror=None), kept_offsets_json.load(self.kept)
        found = plan_fail_over(self.target, wanted, kept, self.clock, Events())
        assert found is not None
        reason = next(each.reason for each in found.plan.checks if each.name == "translated offsets")
        clients = Clients(self.target, self.target)
        self.survives(lambda: self._done(fail_over(clients, wanted, kept, self.clock, Events())), self.target)
        said = re.search(r"no record of the copies is skipped, at most ([\d,]+) are read again", reason)
        assert said is not None, reason
        return int(said[1].replace(",", ""))

    def returns(self) -> None:
        """Move the group back. At times its last commit waits for a follower that hangs."""
        self._check_count()
        if self.rng.random() < 0.3:
            self.target.hang_follower()
            self.consumes(on_target=True)
        clients = Clients(self.source, self.source)
        self.survives(lambda: self._done(migrate(clients, self.back(), self.clock, Events())), self.source, self.target)

    def _check_count(self) -> None:
        """Check that the plan of the return counts at least the records that were committed on the source since."""
        prepared = plan_migration(self.source, self.back(), self.clock, Events())
        assert prepared is not None
        [reason] = [each.reason for each in prepared.plan.checks if each.name == "read again"]
        said = re.search(r"at most ([\d,]+) records?, read again", reason)
        assert said is not None, reason
        kept = kept_offsets_json.load(self.kept).of("g").partitions
        now = self.source.offsets("g")
        again = {
            (each.source.partition, offset)
            for each in kept
            for offset in range(each.committed or 0, now[each.source].offset)
        }
        assert len(again & self.read_there - self.not_committed) <= int(said[1].replace(",", "")), reason

    def _done(self, result: WriteResult | None) -> None:
        if result is not None:
            result.check()


@mock.patch.object(threading.Thread, "start", start_at_once)
def _played(folder: Path, seed: int) -> Ledger:
    folder.mkdir()
    ledger = Ledger(folder, random.Random(seed))
    rng = ledger.rng
    acts = [ledger.produce, ledger.mirrors, ledger.mirrors, ledger.consumes, ledger.compares]
    while not ledger.kept.exists() or rng.random() < 0.95:
        rng.choice(acts)()
    if rng.random() < 0.5:  # the mirror has just begun again when the offsets are kept for the last time
        ledger.mirrors(most=3, restarts=1.0)
        ledger.compares()
    if rng.random() < 0.5:  # afterwards the group reads everything
        ledger.consumes(everything=True)
    before = Counter(ledger.processed)
    most = ledger.fails_over()
    ledger.consumes(on_target=True, everything=True)
    for number in range(2):
        skipped = [offset for offset in ledger.copied[number] if not ledger.processed[number, offset]]
        assert not skipped, (seed, number, skipped)
    again = (ledger.processed - before).total() - sum(not before[each] for each in ledger.processed)
    assert again <= most, (seed, again, most)
    # The source returns: the mirror delivers what is missing, and some records again. The group reads all, or goes back
    # before.
    total, copies = ledger.processed.total(), sum(map(len, ledger.copied))
    for _ in range(rng.choice([0, 1, 20])):
        ledger.produce()
        ledger.mirrors()
    if rng.random() < 0.5:
        while any(ledger.position[number] < ledger._end(number) for number in range(2)):
            ledger.mirrors()
        ledger.consumes(on_target=True, everything=True)
        assert ledger.processed.total() - total == sum(map(len, ledger.copied)) - copies
    else:
        ledger.consumes(on_target=True)
    ledger.produce()
    ledger.returns()
    before = Counter(ledger.processed)
    ledger.consumes(everything=True)
    for number in range(2):
        skipped = [offset for offset in range(ledger._end(number)) if not ledger.processed[number, offset]]
        assert not skipped, (seed, number, skipped)
    repeated = {each for each, times in ledger.processed.items() if times > before[each] > 0}
    assert repeated <= ledger.not_committed, (seed, repeated - ledger.not_committed, "read again after the return")
    return ledger


def test_no_record_is_skipped_over_a_fail_over_and_the_return(tmp_path):
    """Nothing that the mirror has delivered is skipped, and no more is read again than the plan says.

    When the cluster returns, the group goes back, at times before the mirror has delivered what it lacks: nothing is
    skipped, and from there on nothing is read again. The mirror begins again at random, and the tool and brokers are
    killed at random requests.
    """
    played = [_played(tmp_path / str(seed), seed) for seed in range(SEEDS)]
    assert sum(each.kills for each in played) > 2
    assert sum(each.losses for each in played) > 10


@pytest.mark.long
def test_no_record_is_skipped_over_many_fail_overs(tmp_path):
    """The same holds for 200 seeds. The test prints the numbers of seeds, records, kills and losses of a broker."""
    played = [_played(tmp_path / str(seed), seed) for seed in range(SEEDS, SEEDS + MANY)]
    numbers = [(len(each.processed), each.kills, each.losses) for each in played]
    print(len(played), *map(sum, zip(*numbers, strict=True)))  # noqa: T201
