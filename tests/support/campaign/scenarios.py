"""The scenarios of the fault campaign. Each says how it differs from `Scenario`, the hand-over of a whole group."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.support.campaign.scenario import Offsets, Scenario, values_of
from tests.support.transactional import TransactionalApplication


class Kip848(Scenario):
    """The hand-over of a whole group by ``migrate``, with KIP-848 groups."""

    title = "a KIP-848 group"
    protocol = "consumer"

    def commit_as_source(self) -> None:
        """Commit as a member, because a group that has never had members is a classic group."""
        self.join()
        self.end()


class Held(Scenario):
    """The hand-over of a whole group by ``migrate --hold``, which joins the source group to keep consumers out."""

    title = "`--hold`"
    steps = 85
    options = ("--hold",)


class LivingGroup(Scenario):
    """``migrate`` hands over one topic of a group, whose application processes the other topic all the time."""

    title = "a topic out of a group that lives on"
    waits, lives_on = False, True

    def split(self) -> dict[str, str]:
        return {self.brokers.name("new"): self.pay}

    def begin(self) -> None:
        super().begin()
        self.start_application([self.find])

    def carriers(self) -> Mapping[str, list[str]]:
        return {**super().carriers(), self.source: [self.find]}


class Transactional(Scenario):
    """The source application commits its offsets and its output in transactions.

    In half of the runs a transaction is open when the command starts, and ends within 2 s. The output of the source
    application is taken as processed only if its transaction was committed.
    """

    title = "a transactional application"

    def begin(self) -> None:
        super().begin()
        self._before = super().processed()
        self._one_at_a_time = threading.Lock()
        self._transactional = TransactionalApplication(self.brokers, self.source)
        self.topics.append(self._transactional.output)
        self._process()
        self.end()
        if self.chance.random() < 0.5:
            self._process()
            threading.Timer(self.chance.uniform(0, 2), self.end).start()

    def join(self) -> None:
        """Begin a transaction, and leave it open."""
        self.end()
        self._process()

    def end(self) -> None:
        """End the open transaction, if there is one."""
        with self._one_at_a_time:
            if self._transactional.is_open:
                self._transactional.end(commit=self._commits)
                self.positions |= self.brokers.committed(self.source, self.partitions)

    def processed(self) -> Counter[str]:
        return self._before + self.brokers.committed_records(self._transactional.output)

    def _process(self) -> None:
        """Begin a transaction; most transactions are committed when they end, the others aborted."""
        self._commits = self.chance.random() < 0.7
        ends = {each: self.chance.randint(self.positions[each], self.produced[each]) for each in self.partitions}
        values = [value for each in self.partitions for value in values_of(each, ends[each])[self.positions[each] :]]
        self._transactional.process(values, ends)


class ReviewedPlan(Scenario):
    """``apply`` writes the plan that a dry run of ``migrate`` has saved."""

    title = "`apply` of a reviewed plan"
    waits = False

    def begin(self) -> None:
        super().begin()
        self.tool.prepare("migrate", "split.toml", "--dry-run", "--plan-out", "plan.json")

    @property
    def command(self) -> list[str]:
        return ["apply", "plan.json", "--yes"]

    @property
    def receipt(self) -> Path:
        return self.tool.folder / "plan.json.receipt.json"


class Replay(Scenario):
    """``apply`` writes the offsets of a replay group, which reads records again beside a live group."""

    title = "a replay group"
    waits, lives_on = False, True

    def begin(self) -> None:
        super().begin()
        self._group, self._from = self.brokers.name("replay"), self.chance.randint(0, 1)
        self.written = [self._group]
        self.tool.prepare("rewind", "--group", self.source, "--to-offset", self._from, "-o", "replay.csv")
        self.start_application(self.topics)

    @property
    def command(self) -> list[str]:
        return ["apply", "replay.csv", "--to-group", self._group, "--yes", "--settle", "0s", "--guard", "0s"]

    @property
    def receipt(self) -> Path:
        return self.tool.folder / f"replay.csv.{self._group}.receipt.json"

    def expected(self) -> Offsets:
        return {(self._group, each): self._from for each in self.partitions}

    def carriers(self) -> Mapping[str, list[str]]:
        return {self.source: self.topics}

    def finish(self) -> tuple[set[str], Counter[str]]:
        wanted, processed = super().finish()
        for value, count in self.brokers.drain(self._group, self.topics, reset="latest").items():
            processed[f"again {value}"] = count
        again = {
            f"again {value}" for each in self.partitions for value in values_of(each, self.produced[each])[self._from :]
        }
        return wanted | again, processed


class Rollback(Scenario):
    """``rollback`` of a hand-over whose target groups have had no consumers."""

    title = "`rollback`"
    waits = False
    steps = 50

    def begin(self) -> None:
        super().begin()
        self.tool.prepare("migrate", "split.toml", "--yes")

    @property
    def command(self) -> list[str]:
        return ["rollback", "split.toml.run", "--yes"]

    def expected(self) -> Offsets:
        handed_over = super().expected()
        return {(group, each): at if group == self.source else None for (group, each), at in handed_over.items()}

    def carriers(self) -> Mapping[str, list[str]]:
        return {self.source: self.topics}


class HandBack(Rollback):
    """``hand-back`` of a hand-over after which the target groups have consumed and committed."""

    title = "`hand-back`"

    def begin(self) -> None:
        super().begin()
        self.written = [self.source]
        self.positions = {each: self.chance.randint(at, self.produced[each]) for each, at in self.positions.items()}
        for group, topic in self.targets.items():
            self.brokers.commit(group, {each: self.positions[each] for each in self.brokers.partitions([topic])})

    @property
    def command(self) -> list[str]:
        return ["hand-back", "split.toml.run", "--yes", "--wait", "60s"]

    def expected(self) -> Offsets:
        return Scenario.expected(self)


class DeleteOffsets(HandBack):
    """``delete-offsets`` deletes the source group's offsets, after the target groups have consumed and committed."""

    title = "`delete-offsets`"

    @property
    def command(self) -> list[str]:
        return ["delete-offsets", "split.toml.run", "--yes"]

    def expected(self) -> Offsets:
        return {
            (group, each): None if group == self.source else at for (group, each), at in Scenario.expected(self).items()
        }

    def carriers(self) -> Mapping[str, list[str]]:
        return Scenario.carriers(self)


class Fleet(Scenario):
    """``migrate`` of a fleet: each topic has its own source group, which is handed over as a whole beside the other."""

    title = "a fleet"
    steps = 120

    def split(self) -> dict[str, str]:
        self._base = self.source
        self.sources = {self.brokers.name(f"{self._base}-of"): topic for topic in self.topics}
        self.source = next(iter(self.sources))
        return {f"new.{source}": topic for source, topic in self.sources.items()}

    def commit_as_source(self) -> None:
        for source, topic in self.sources.items():
            self.brokers.commit(source, {each: self.positions[each] for each in self.brokers.partitions([topic])})

    def _write_spec(self) -> None:
        spec = f'groups = ["{self._base}-of*"]\nrename = ["*=new.*"]\n[options]\n'
        settle, guard = self.chance.choice((0, 0, 300)), self.chance.choice((0, 0, 1))
        (self.tool.folder / "fleet.toml").write_text(f'{spec}settle = "{settle}ms"\nguard = "{guard}s"\n')

    @property
    def command(self) -> list[str]:
        return ["migrate", "fleet.toml", "--yes", "--wait", "60s"]

    @property
    def receipts(self) -> Mapping[Path, Collection[str]]:
        run = self.tool.folder / "fleet.toml.run"
        return {run / source / "receipt.json": [f"new.{source}"] for source in self.sources}

    def expected(self) -> Offsets:
        return {
            (group, partition): self.positions[partition]
            for source, topic in self.sources.items()
            for partition in self.brokers.partitions([topic])
            for group in (source, f"new.{source}")
        }

    def join(self) -> None:
        for source, topic in self.sources.items():
            self.start_application([topic], source)


SCENARIOS: tuple[type[Scenario], ...] = (
    Scenario,
    LivingGroup,
    Held,
    Kip848,
    Transactional,
    ReviewedPlan,
    Replay,
    Rollback,
    HandBack,
    DeleteOffsets,
    Fleet,
)
