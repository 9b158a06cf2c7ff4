"""One run: a scenario and a fault, both chosen by the run's seed, and the checks after the command."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.campaign import must_hold, tool_faults
from tests.support.campaign.faults import FAULTS
from tests.support.campaign.scenario import Scenario
from tests.support.campaign.scenarios import SCENARIOS
from tests.support.campaign.tool import Tool
from tests.support.halted import Halted
from tests.support.three_brokers import ThreeBrokers

# Half of the runs halt at one of these steps after the first record of the receipt: they are steps of the write.
_STEPS_OF_THE_WRITE = 20


@dataclass(slots=True, kw_only=True)
class Result:
    """The choices that the seed made, and the results of the run.

    step: the step at which the fault happens, as `tests.support.halted_at` takes it. halted: whether the command
    reached this step. exits: the exit codes of the command and of its re-run. problems: the checks that failed.
    no_verdict: why some checks were not made, for instance because the brokers did not come back in time. left_out: why
    there was no run.
    """

    seed: int
    scenario: str
    fault: str
    step: str
    steps: int = 0
    halted: bool = False
    exits: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    records: int = 0
    skipped: int = 0
    twice: int = 0
    receipts: int = 0
    open_entries: int = 0
    one_client_only: bool = False
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    no_verdict: str = ""
    left_out: str = ""


def drawn(seed: int) -> tuple[type[Scenario], str]:
    """Return the scenario and the fault of a seed. Consecutive seeds go through all pairs."""
    names = [*FAULTS]
    return SCENARIOS[seed % len(SCENARIOS)], names[seed // len(SCENARIOS) % len(names)]


def run(seed: int, brokers: ThreeBrokers, folder: Path) -> Result:
    """Run the scenario of a seed with its fault, in an empty folder, and return what the checks found."""
    chance = random.Random(seed)
    scenario, fault = drawn(seed)
    number = chance.randint(1, scenario.steps)
    step = chance.choice((f"{number}", f"w{chance.randint(1, _STEPS_OF_THE_WRITE)}"))
    found = Result(seed=seed, scenario=scenario.title, fault=fault, step=step)
    begun = time.monotonic()
    if FAULTS[fault].on_small_disk and not tool_faults.can_mount(folder):
        found.left_out = "only root can mount a small disk"
    else:
        with ExitStack() as opened:
            _Running(chance, brokers, folder, found, opened).run(scenario)
    found.seconds = round(time.monotonic() - begun, 1)
    return found


class _Running:
    """A run in progress. It implements `tests.support.campaign.fault.Run`."""

    scenario: Scenario
    tool: Tool

    def __init__(
        self, chance: random.Random, brokers: ThreeBrokers, folder: Path, found: Result, opened: ExitStack
    ) -> None:
        self.chance, self.brokers, self.found = chance, brokers, found
        self.folder, self._logs = folder / "files", folder / "logs"
        self._fault = FAULTS[found.fault]
        for each in (self.folder, self._logs):
            each.mkdir()
        if self._fault.on_small_disk:
            opened.enter_context(tool_faults.small_disk(self.folder))
        self._repairs: list[Callable[[], object]] = [brokers.heal]
        self._before: dict[Path, must_hold.Before] = {}

    def run(self, scenario: type[Scenario]) -> None:
        """Run the scenario, and store the results in ``found``."""
        try:
            self._open(scenario)
            try:
                self._begin()
                self._fault.happens(self)
                self._complete()
                self._count_records()
            finally:
                self._end()
        except Exception as error:  # noqa: BLE001  a harness that fails has checked nothing
            self.found.no_verdict = f"{type(error).__name__}: {error}"

    def _open(self, scenario: type[Scenario]) -> None:
        proxied = self.brokers.proxies().bootstrap_servers if self._fault.proxied else None
        only_on = self.chance.randint(1, 3) if self._fault.needs_only_on else None
        self.tool = Tool(
            folder=self.folder,
            logs=self._logs,
            bootstrap_servers=proxied or self.brokers.bootstrap_servers,
            timeout=self.chance.choice((3, 20, 20)),
            also_exits=self._fault.also_exits,
            exits=self.found.exits,
            errors=self.found.errors,
            problems=self.found.problems,
        )
        self.scenario = scenario(self.chance, self.brokers, self.tool, only_on)

    def _begin(self) -> None:
        self.scenario.begin()
        # The coordinators answer now, so that the run's fault is the first that the command meets.
        offsets = self.scenario.committed(self.scenario.written)
        for receipt, groups in self.scenario.receipts.items():
            self._before[receipt] = must_hold.Before(
                offsets={place: offset for place, offset in offsets.items() if place[0] in groups},
                executions=len(must_hold.executions_in(receipt)),
            )

    # What a fault uses.

    @contextmanager
    def halted(self) -> Iterator[Halted]:
        """Start the command, and yield once it has halted at the run's step or has ended before that step."""
        with self.tool.halted(self.found.step, self.scenario.command) as started:
            if self.found.step != "0":
                self.found.halted, self.found.steps = started.await_step()
            self.scenario.produce()
            yield started
            started.release()
            self.scenario.leave()
            code = self.tool.ended(started)
            self._repair_all()
            self._check_receipt(code)

    def wait_for_application(self) -> None:
        """Start the source group's application, for whose stop the command then waits. The command halts at no step."""
        self.found.step = "0"
        self.scenario.join()

    def repair(self, function: Callable[[], object]) -> None:
        """Call this function once the command has ended."""
        self._repairs.append(function)

    def pause(self, most: float) -> None:
        time.sleep(self.chance.uniform(0, most))

    # The checks.

    def _check_receipt(self, code: int) -> None:
        now, expected = self.scenario.committed(), self.scenario.expected()
        for receipt, before in self._before.items():
            # The exit code of a fleet is about all its runs.
            of_run = code if len(self._before) == 1 else 0
            self.found.problems += must_hold.receipt_problems(receipt, before, now, expected, of_run)
            self.found.receipts += 1
            for execution in must_hold.executions_in(receipt)[before.executions :]:
                self.found.open_entries += sum(not must_hold.is_settled(entry.outcome) for entry in execution.changes)
                self.found.one_client_only |= any("one client only" in remark for remark in execution.remarks)

    def _complete(self) -> None:
        """Run the command again if it failed. On a repaired cluster this run must succeed."""
        if self.found.exits[-1] != 0 and self.tool.again(self.scenario.command) != 0:
            self.found.problems.append(f"the same command again: exit {self.found.exits[-1]}")
        now, expected = self.scenario.committed(), self.scenario.expected()
        for receipt, before in self._before.items():
            self.found.problems += must_hold.completion_problems(receipt, before, now, expected)
        self._check_receipt(0)

    def _count_records(self) -> None:
        wanted, processed = self.scenario.finish()
        self.found.records = len(wanted)
        self.found.skipped, self.found.twice = must_hold.ledger(wanted, processed)
        if self.found.skipped or self.found.twice:
            self.found.problems.append("records were skipped or processed twice")

    def _repair_all(self) -> None:
        # The cluster is whole before its topics are changed, and again at the end.
        for function in (*self._repairs, *self._repairs[:1]):
            function()
        del self._repairs[1:]

    def _end(self) -> None:
        """Repair the cluster, stop the applications, and delete the topics."""
        self._repair_all()
        self.scenario.end()
        self.brokers.delete_topics(self.scenario.topics)
