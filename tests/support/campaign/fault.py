"""What a fault is, and what it needs of a run."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.support.campaign.scenario import Scenario
from tests.support.halted import Halted
from tests.support.three_brokers import ThreeBrokers


class Run(Protocol):
    """What a fault needs of a run: `tests.support.campaign.run`.

    repair: add a function that undoes the fault; it is called once the command has ended.
    """

    chance: random.Random
    brokers: ThreeBrokers
    scenario: Scenario
    folder: Path

    def halted(self) -> AbstractContextManager[Halted]: ...
    def wait_for_application(self) -> None: ...
    def repair(self, function: Callable[[], object]) -> None: ...
    def pause(self, most: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault. happens: runs the command of a run with it.

    proxied: the command reaches the brokers through proxies. on_small_disk: the command's files are on a small disk,
    which only root can make. files_fail: exit code 2 is right. needs_only_on: a topic is on one broker only.
    """

    happens: Callable[[Run], None]
    proxied: bool = False
    on_small_disk: bool = False
    files_fail: bool = False
    needs_only_on: bool = False


def before_or_during(run: Run, halted: Halted) -> None:
    """Let the command continue shortly before the fault, in half of the runs."""
    if run.chance.random() < 0.5:
        halted.release()
        run.pause(0.02)
