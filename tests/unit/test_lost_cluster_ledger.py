"""Count every record over a fail-over and the return, with kills of the mirror and of the tool, on clusters in memory.

The clusters, the mirror and the applications are simulated; the tool is the real one.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.files import kept_offsets_json
from migrate_groups.migration.across.compare import compare
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.fail_over import fail_over, plan_fail_over
from migrate_groups.migration.hand_over.migrate import migrate
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.write_result import WriteResult
from migrate_groups.model.partitions import TopicPartition
from tests.support.in_memory import Asked, InMemoryCluster
from tests.support.move import OPTIONS, Move

SEEDS, MANY = 8, 200


class Killed(BaseException):
    """The tool is killed."""


class Mortal(Asked):
    """A cluster that kills its client at a request, except one of the second client, which waits in another thread.

    until: the number of requests before; None: it does not kill.
    """

    until: int | None = None

    def before_request(self, name: str) -> None:
        if self.until is not None and threading.current_thread() is threading.main_thread():
            self.until -= 1
            if self.until < 0:
                raise Killed(name)


class Ledger(Move):
    """Two clusters with a mirror, a group, and how often each record of the source was processed.

    processed: by partition and offset on the source. copied: by partition, the source offsets of the copy's records.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, Mortal)
        self.rng, self.kept = rng, folder / "kept.json"
        self.processed: Counter[tuple[int, int]] = Counter()
        self.copied: list[list[int]] = [[], []]
        self.position = [0, 0]
        self.commit(0, 0)
        self.kills = 0

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
            for offset in range(committed.offset, until):
                self.processed[number, self.copied[number][offset] if on_target else offset] += 1
            if everything or self.rng.random() < 0.9:
                cluster.commit("g", partition, until)

    def compares(self) -> None:
        kept = compare(self.mirror, ["g"], self.clock).kept
        if len(kept.starts(0)) == 2:
            kept_offsets_json.save(kept, self.kept)

    def survives(self, run: Callable[[], None], *clusters: InMemoryCluster) -> None:
        """Run the tool, kill it at some request at times, and run it again until it is done."""
        mortal = [each for each in clusters if isinstance(each, Mortal)]
        for _ in range(self.rng.randint(0, 2)):
            self.rng.choice(mortal).until = self.rng.randint(0, 120)
            try:
                run()
            except Killed:
                self.kills += 1
            except MigrateGroupsError as error:
                assert "at work" in str(error), error
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
        clients = Clients(self.source, self.source)
        self.survives(lambda: self._done(migrate(clients, self.back(), self.clock, Events())), self.source, self.target)

    def _done(self, result: WriteResult | None) -> None:
        if result is not None:
            result.check()


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
    # The source returns: the mirror delivers what is missing, and some records again, which the group reads.
    total, copies = ledger.processed.total(), sum(map(len, ledger.copied))
    new = len(ledger.processed)
    for _ in range(20):
        ledger.produce()
        ledger.mirrors()
    while any(ledger.position[number] < ledger._end(number) for number in range(2)):
        ledger.mirrors()
    ledger.consumes(on_target=True, everything=True)
    assert ledger.processed.total() - total == sum(map(len, ledger.copied)) - copies
    ledger.produce()
    ledger.returns()
    total, new = ledger.processed.total(), len(ledger.processed)
    ledger.consumes(everything=True)
    for number in range(2):
        skipped = [offset for offset in range(ledger._end(number)) if not ledger.processed[number, offset]]
        assert not skipped, (seed, number, skipped)
    assert ledger.processed.total() - total == len(ledger.processed) - new, (seed, "read again after the return")
    return ledger


def test_no_record_is_skipped_over_a_fail_over_and_the_return(tmp_path):
    """Nothing that the mirror has delivered is skipped, and no more is read again than the plan says.

    When the cluster returns, the group reads what the mirror delivers, and goes back: nothing is skipped, and from
    there on nothing is read again. The mirror begins again at random, and the tool is killed at random requests.
    """
    assert sum(_played(tmp_path / str(seed), seed).kills for seed in range(SEEDS)) > 2


@pytest.mark.long
def test_no_record_is_skipped_over_many_fail_overs(tmp_path):
    """The same holds for 200 seeds. The test prints the numbers of seeds, records and kills."""
    played = [_played(tmp_path / str(seed), seed) for seed in range(SEEDS, SEEDS + MANY)]
    print(len(played), sum(len(each.processed) for each in played), sum(each.kills for each in played))  # noqa: T201
