"""The receipt's file: the record of a run, locked while somebody writes to it."""

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
    """The record of a run so far, and the execution that is being added to it.

    failure: what could not be kept of a write that was begun; empty where all was. path: None where nothing is kept.
    """

    def __init__(self, path: Path | None, receipt: Receipt = NOTHING_WRITTEN) -> None:
        self.path = path
        self.receipt = receipt
        self.failure = ""
        self._recorded: Execution | None = None

    @property
    def told_by(self) -> str:
        """What tells how far a write came."""
        return self.failure or f"{self.path} says what was written; the same command goes on"

    def record(self, execution: Execution) -> None:
        """Write the receipt with this execution, whole and fsynced.

        Raises `InvalidInput` where it can't be written before the first request. Later it is too late to stop: what was
        begun is brought to its end, and ``failure`` tells.
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
            self.failure = f"the receipt could not be kept: {error}"
        self.receipt, self._recorded = receipt, execution

    def not_kept(self, error: InvalidInput) -> None:
        """Note that something else could not be kept of a write that is done."""
        self.failure = self.failure or f"not all could be kept of it: {error}"


@contextmanager
def open_receipt(path: Path, *, read_only: bool = False, must_exist: bool = False) -> Iterator[ReceiptFile]:
    """Yield the record of a run, locked from before it is read unless it is ``read_only``.

    Raises `InvalidInput` where the file is damaged, can't be written, or ``must_exist`` and does not; `Refused` where
    another run has it.
    """
    if not read_only:
        check_writable(path, replace=True)
    with nullcontext() if read_only else locked(path):
        is_there = must_exist or status(path) is not None
        yield ReceiptFile(path, receipt_json.load(path) if is_there else NOTHING_WRITTEN)
