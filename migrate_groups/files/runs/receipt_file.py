"""The file of the receipt, which is the record of a run. It is locked while a run adds to it."""

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
    """The receipt of a run, and the file that holds it. The current run adds one execution.

    path: the file; None: the receipt is not saved. receipt: the executions so far.
    """

    def __init__(self, path: Path | None, receipt: Receipt = NOTHING_WRITTEN) -> None:
        self.path = path
        self.receipt = receipt
        self._unsaved = ""
        self._other_unsaved = ""
        self._recorded: Execution | None = None

    @property
    def failure(self) -> str:
        """Which file could not be saved after the write had begun, and why; empty if all files were saved."""
        return self._unsaved or self._other_unsaved

    @property
    def told_by(self) -> str:
        """A sentence for the user: which file says what was written or, after a failure to save it, `failure`."""
        return self.failure or f"{self.path} says what was written; the same command goes on"

    def record(self, execution: Execution) -> None:
        """Write the receipt with this execution, whole and fsynced.

        Raises `InvalidInput` only if the first call fails, which comes before any offset is sent. A later error is
        noted in ``failure`` and not raised, because a write that has begun must be finished.
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
            self._unsaved = f"the receipt could not be kept: {error}"
        else:
            self._unsaved = ""  # each call writes the whole receipt, so an earlier failure is made good
        self.receipt, self._recorded = receipt, execution

    def not_kept(self, error: InvalidInput) -> None:
        """Note in ``failure`` that a file other than the receipt could not be saved after the write."""
        self._other_unsaved = f"not all could be kept of it: {error}"


@contextmanager
def open_receipt(path: Path, *, read_only: bool = False, must_exist: bool = False) -> Iterator[ReceiptFile]:
    """Yield the receipt in a file; it is empty if the file does not exist.

    Unless ``read_only``, the file is locked before it is read and until the block ends.

    Raises `InvalidInput` if the file is damaged or can't be written, or if ``must_exist`` is set and there is no
    file; `Refused` if another run holds the lock.
    """
    if not read_only:
        check_writable(path, replace=True)
    with nullcontext() if read_only else locked(path):
        is_there = must_exist or status(path) is not None
        yield ReceiptFile(path, receipt_json.load(path) if is_there else NOTHING_WRITTEN)
