"""Run the command line, and halt it at its Nth step until the parent lets it continue or kills it.

``python -m tests.support.halted_at N TELL HEAR ARGUMENT...``. There is a step before and after each request to the
cluster, each question to the second client, and each time that the receipt is recorded. At the Nth step the process
writes the line ``at N`` to the file descriptor TELL and waits for input from HEAR. At the end it writes ``of`` and the
number of steps.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from migrate_groups.cli.app import main
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.second_client import SecondClient


class Steps:
    """Counts the steps, and halts the process at the chosen step."""

    def __init__(self, wanted: int, tell: int, hear: int) -> None:
        self._wanted, self._tell, self._hear = wanted, tell, hear
        self.count = 0

    def step(self) -> None:
        self.count += 1
        if self.count == self._wanted:
            self.tell(f"at {self.count}")
            os.read(self._hear, 1)

    def tell(self, line: str) -> None:
        with suppress(BrokenPipeError):
            os.write(self._tell, f"{line}\n".encode())

    def around(self, function):
        def counted(*arguments, **named):
            self.step()
            try:
                return function(*arguments, **named)
            finally:
                self.step()

        return counted


if __name__ == "__main__":
    steps = Steps(*map(int, sys.argv[1:4]))
    sys.argv = ["migrate-groups", *sys.argv[4:]]
    for place, method in ((ReceiptFile, "record"), (KafkaConnection, "_attempt"), (SecondClient, "_ask")):
        setattr(place, method, steps.around(getattr(place, method)))
    try:
        main()
    finally:
        steps.tell(f"of {steps.count}")
