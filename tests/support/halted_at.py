"""Run the command line, and halt it at one of its steps until the parent lets it continue or kills it.

``python -m tests.support.halted_at STEP TELL HEAR ARGUMENT...``. There is a step before and after each request to the
cluster, each question to the second client, and each save of the receipt. STEP is the number of a step, or ``w`` and a
number, which counts from the first save of the receipt. At this step the process writes the line ``at N`` to the file
descriptor TELL, where N counts from the start. It then waits for input from HEAR: the number of seconds by which its
clock jumps, or an end of file. At the end it writes ``of`` and the number of steps to TELL.

Under root, the process gives up the right to ignore file permissions, so that it can't write to a read-only directory.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from contextlib import suppress
from datetime import timedelta

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli.app import main
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.second_client import SecondClient

_CAPABILITY_VERSION_3 = 0x20080522
_DAC_OVERRIDE = 1 << 1


class Steps:
    """Counts the steps of this command, and halts the process at the chosen step."""

    def __init__(self, wanted: str, tell: int, hear: int) -> None:
        self._counts_from_receipt = wanted.startswith("w")
        self._wanted, self._tell, self._hear = int(wanted.removeprefix("w")), tell, hear
        self.count = 0
        self._before_receipt: int | None = None

    def step(self) -> None:
        self.count += 1
        before = self._before_receipt if self._counts_from_receipt else 0
        if before is not None and self.count - before == self._wanted:
            self.tell(f"at {self.count}")
            if jump := os.read(self._hear, 100):
                jump_clock(float(jump))

    def tell(self, line: str) -> None:
        with suppress(BrokenPipeError):
            os.write(self._tell, f"{line}\n".encode())

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


if __name__ == "__main__":
    steps = Steps(sys.argv[1], *map(int, sys.argv[2:4]))
    sys.argv = ["migrate-groups", *sys.argv[4:]]
    obey_permissions()
    setattr(ReceiptFile, "record", steps.around(ReceiptFile.record, is_receipt=True))  # noqa: B010  for mypy
    for place, method in ((KafkaConnection, "_attempt"), (SecondClient, "_ask")):
        setattr(place, method, steps.around(getattr(place, method)))
    try:
        main()
    finally:
        steps.tell(f"of {steps.count}")
