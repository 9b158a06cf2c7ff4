"""Run the command line and kill it at its Nth step, as ``kill -9`` does.

``python -m tests.support.killed_at N ARGUMENT...``. There is a step before and after each request that writes, and each
save of the receipt.
"""

from __future__ import annotations

import os
import signal
import sys

from migrate_groups.cli.app import main
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.kafka.writer import KafkaPythonWriter


class Steps:
    """Counts the steps of this command, and kills this process at the chosen step."""

    def __init__(self, fatal: int) -> None:
        self._left = fatal

    def step(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function):
        def counted(*arguments, **named):
            self.step()
            result = function(*arguments, **named)
            self.step()
            return result

        return counted


if __name__ == "__main__":
    steps = Steps(int(sys.argv[1]))
    sys.argv = ["migrate-groups", *sys.argv[2:]]
    writes = ((KafkaPythonWriter, "alter_offsets"), (KafkaPythonWriter, "delete_offsets"))
    for place, method in ((ReceiptFile, "record"), *writes):
        setattr(place, method, steps.around(getattr(place, method)))
    main()
