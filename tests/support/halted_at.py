"""Run the command line, and halt or kill it at one of its steps.

``python -m tests.support.halted_at kill N ARGUMENT...`` kills it at its Nth step, as ``kill -9`` does. There is a step
before and after each request that writes, and each save of the receipt.

``python -m tests.support.halted_at STEP TELL HEAR ARGUMENT...`` halts it until the parent lets it continue or kills it.
There is a step before and after each request to the cluster, each question to the second client, and each save of the
receipt. STEP is the number of a step, or ``w`` and a number, which counts from the first save of the receipt. At this
step the process writes the line ``at N`` to the file descriptor TELL, where N counts from the start. It then waits for
input from HEAR: the number of seconds by which its clock jumps, or an end of file. At the end it writes ``of`` and the
number of steps to TELL. Under root, the process gives up the right to ignore file permissions, so that it can't write
to a read-only directory.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli.app import main
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter

_CAPABILITY_VERSION_3 = 0x20080522
_DAC_OVERRIDE = 1 << 1


class Steps:
    """Counts the steps of this command. reached: called at the chosen step."""

    def __init__(self, wanted: str, reached: Callable[[Steps], None]) -> None:
        self._counts_from_receipt = wanted.startswith("w")
        self._wanted, self._reached = int(wanted.removeprefix("w")), reached
        self.count = 0
        self._before_receipt: int | None = None

    def step(self) -> None:
        self.count += 1
        before = self._before_receipt if self._counts_from_receipt else 0
        if before is not None and self.count - before == self._wanted:
            self._reached(self)

    def around(self, function, *, is_receipt: bool = False):
        def counted(*arguments, **named):
            if is_receipt and self._before_receipt is None:
                self._before_receipt = self.count
            self.step()
            try:
                return function(*arguments, **named)
            finally:
                self.step()

        return counted


def jump_clock(seconds: float) -> None:
    """Add these seconds to the clock of this process and of its forks; monotonic clocks don't change."""
    system_time, system_now = time.time, SystemClock.now
    time.time = lambda: system_time() + seconds
    setattr(SystemClock, "now", lambda self: system_now(self) + timedelta(seconds=seconds))  # noqa: B010  for mypy


def obey_permissions() -> None:
    """Give up CAP_DAC_OVERRIDE, if this process has it, so that file permissions apply to root too."""
    if sys.platform != "linux" or os.geteuid():
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # effective, permitted and inheritable capabilities: 32 bits of each, then the other 32 of each
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) == 0:
        for index in (0, 1, 2):
            sets[index] &= ~_DAC_OVERRIDE
        libc.capset(header, sets)


def kill(steps: Steps) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_until_killed(wanted: str, arguments: list[str]) -> None:
    steps = Steps(wanted, kill)
    writes = ((KafkaPythonWriter, "alter_offsets"), (KafkaPythonWriter, "delete_offsets"))
    for place, method in ((ReceiptFile, "record"), *writes):
        setattr(place, method, steps.around(getattr(place, method)))
    sys.argv = ["migrate-groups", *arguments]
    main()


def run_with_a_halt(wanted: str, told: int, heard: int, arguments: list[str]) -> None:
    def tell(line: str) -> None:
        with suppress(BrokenPipeError):
            os.write(told, f"{line}\n".encode())

    def halt(steps: Steps) -> None:
        tell(f"at {steps.count}")
        if jump := os.read(heard, 100):
            jump_clock(float(jump))

    steps = Steps(wanted, halt)
    setattr(ReceiptFile, "record", steps.around(ReceiptFile.record, is_receipt=True))  # noqa: B010  for mypy
    for place, method in ((KafkaConnection, "_attempt"), (SecondClient, "_ask")):
        setattr(place, method, steps.around(getattr(place, method)))
    sys.argv = ["migrate-groups", *arguments]
    obey_permissions()
    try:
        main()
    finally:
        tell(f"of {steps.count}")


if __name__ == "__main__":
    if sys.argv[1] == "kill":
        run_until_killed(sys.argv[2], sys.argv[3:])
    else:
        run_with_a_halt(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
