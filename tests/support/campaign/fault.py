"""The class of a fault of the brokers or of the tool, and the part of a test run that faults use."""

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
    """The attributes of a test run that faults use. `tests.support.campaign.run` implements this protocol.

    `repair` gives the run a function that undoes the fault; the run calls it after the command has ended.
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
    """A fault of the brokers or of the tool. happens: runs the command, and makes the fault happen.

    proxied: whether the command reaches the brokers through proxies. on_small_disk: whether the command's files are on
    a small disk, which only root can mount. also_exits: exit codes with which the command may end beside those of all
    faults, for instance 2, because it can't write a file. needs_only_on: whether the topic ``pay`` must have a replica
    on one broker only.
    """

    happens: Callable[[Run], None]
    proxied: bool = False
    on_small_disk: bool = False
    also_exits: tuple[int, ...] = ()
    needs_only_on: bool = False


def before_or_during(run: Run, halted: Halted) -> None:
    """In half of the runs, resume the halted command, so that the fault happens while the command runs."""
    if run.chance.random() < 0.5:
        halted.release()
        run.pause(0.02)
