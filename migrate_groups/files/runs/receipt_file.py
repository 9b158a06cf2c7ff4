"""Load and save the receipt, the record of all writes of a run. Its file is locked while a command writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from migrate_groups.errors import InvalidInput
from migrate_groups.files.lock import locked
from migrate_groups.files.read import status
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.safe_write import check_writable, write_whole
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt


class ReceiptFile:
    """The receipt of a run, and the file that holds it.

    A receipt is a list of executions; each execution is one write to the cluster. The current command adds an execution
    or resumes the last one. path: the file; None: the receipt is not saved. receipt: the executions so far.
    """

    def __init__(self, path: Path | None, receipt: Receipt = NOTHING_WRITTEN) -> None:
        self.path = path
        self.receipt = receipt
        self._unsaved = ""
        self._other_unsaved = ""
        self._recorded: Execution | None = None

    @property
    def failure(self) -> str:
        """Why a file of the run could not be saved after the write had begun, as a message; empty if all were saved."""
        return self._unsaved or self._other_unsaved

    @property
    def told_by(self) -> str:
        """A sentence to show to the user if the command is interrupted: it names the file that lists what was written.

        If a file could not be saved, the result is the message of `failure` instead.
        """
        return self.failure or f"{self.path} lists what was written: run the same command again to resume"

    def record(self, execution: Execution) -> None:
        """Save the receipt with the current state of an execution. The file is replaced atomically and fsynced.

        Does nothing if the execution has not changed since the last call, or if ``path`` is None. The first call comes
        before any offset is sent: if it can't save the file, it raises `InvalidInput`. A later error is not raised but
        put into `failure`, because a write that has begun must be finished.
        """
        if execution == self._recorded or self.path is None:
            return
        receipt = self.receipt.with_execution(execution)
        content = receipt_json.to_bytes(receipt)
        try:
            write_whole(self.path, lambda stream: stream.write(content), replace=True)
        except InvalidInput as error:
            if self._recorded is None:
                raise
            self._unsaved = f"the receipt could not be saved: {error}"
        else:
            self._unsaved = ""  # each call writes the whole receipt, so an earlier failure no longer matters
        self.receipt, self._recorded = receipt, execution

    def note_unsaved_file(self, error: InvalidInput) -> None:
        """Put the reason into `failure` if a file other than the receipt could not be saved after the write.

        The error is not raised here, because the offsets are written. The command fails at its end, with `failure`.
        """
        self._other_unsaved = f"not all files of the run could be saved: {error}"


@contextmanager
def open_receipt(path: Path, *, read_only: bool = False, must_exist: bool = False) -> Iterator[ReceiptFile]:
    """Yield the receipt in a file. If the file does not exist, the receipt has no executions.

    Unless ``read_only`` is set, the file is locked against other commands before it is read and until the block ends.

    Raises `InvalidInput` if the file is damaged, if it can't be written and ``read_only`` is not set, or if it does not
    exist and ``must_exist`` is set. Raises `Refused` if another run holds the lock.
    """
    if not read_only:
        check_writable(path, replace=True)
    with nullcontext() if read_only else locked(path):
        is_there = must_exist or status(path) is not None
        yield ReceiptFile(path, receipt_json.load(path) if is_there else NOTHING_WRITTEN)
