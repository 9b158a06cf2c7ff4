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
    """The record of a run so far, to which one execution is added.

    path: None if nothing is saved.
    """

    def __init__(self, path: Path | None, receipt: Receipt = NOTHING_WRITTEN) -> None:
        self.path = path
        self.receipt = receipt
        self._unsaved = ""
        self._other_unsaved = ""
        self._recorded: Execution | None = None

    @property
    def failure(self) -> str:
        """What could not be saved once the write had begun; empty if all was."""
        return self._unsaved or self._other_unsaved

    @property
    def told_by(self) -> str:
        """A sentence for people: where they find how far the write came, or why it could not be saved."""
        return self.failure or f"{self.path} says what was written; the same command goes on"

    def record(self, execution: Execution) -> None:
        """Write the receipt with this execution, whole and fsynced.

        Raises `InvalidInput` if the first record of the execution, before the first request, can't be written. Later
        errors do not raise, because a write that has begun must be finished; they are noted in ``failure``.
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
            self._unsaved = ""  # the file is replaced whole, so it has what an earlier failure left out
        self.receipt, self._recorded = receipt, execution

    def not_kept(self, error: InvalidInput) -> None:
        """Note in ``failure`` that another file of a finished write could not be saved."""
        self._other_unsaved = f"not all could be kept of it: {error}"


@contextmanager
def open_receipt(path: Path, *, read_only: bool = False, must_exist: bool = False) -> Iterator[ReceiptFile]:
    """Yield the record of a run. Unless ``read_only``, lock it before it is read, until the block ends.

    Raises `InvalidInput` if the file is damaged or can't be written, or if ``must_exist`` is set and it does not exist;
    `Refused` if another run holds the lock.
    """
    if not read_only:
        check_writable(path, replace=True)
    with nullcontext() if read_only else locked(path):
        is_there = must_exist or status(path) is not None
        yield ReceiptFile(path, receipt_json.load(path) if is_there else NOTHING_WRITTEN)
