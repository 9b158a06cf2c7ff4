"""Load and save a receipt, the record of all writes of a migration. Its file is locked while a command writes to it."""

from __future__ import annotations

import hashlib
import platform
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from migrate_groups.errors import InvalidInput
from migrate_groups.files.lock import locked
from migrate_groups.files.read import status
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.safe_write import check_writable, write_whole
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.planning.run_states import State
from migrate_groups.planning.written_by import NOT_KNOWN, WrittenBy


class ReceiptFile:
    """The receipt of a migration, which records every write to the cluster, and the file that holds the receipt.

    path: None if the receipt is not saved. receipt: the writes so far. by: who makes further writes.
    """

    def __init__(self, path: Path | None, receipt: Receipt = NOTHING_WRITTEN, by: WrittenBy = NOT_KNOWN) -> None:
        self.path = path
        self.by = by
        self.receipt = receipt
        self._unsaved = ""
        self._other_unsaved = ""
        self._recorded: Execution | None = None

    @property
    def holder(self) -> str:
        """The client id with which a command joins journals on the cluster: of this file on this machine.

        No two commands use it at once, because a command that writes locks the file.
        """
        place = f"{platform.node()} {uuid.getnode()} {self.path.resolve()}" if self.path else secrets.token_hex()
        return f"migrate-groups-{hashlib.sha256(place.encode(errors='surrogateescape')).hexdigest()[:16]}"

    @property
    def failure(self) -> str:
        """Why a file could not be saved after the write had begun, as a message; empty if all files were saved."""
        return self._unsaved or self._other_unsaved

    @property
    def told_by(self) -> str:
        """A message for an interrupted command: which file lists the written offsets.

        If a file could not be saved, `failure` is returned instead.
        """
        return self.failure or f"{self.path} lists what was written: run the same command again to resume"

    def record(self, execution: Execution) -> None:
        """Save the receipt with the current state of ``execution``, one write to the cluster.

        The first call comes before any offset is sent, and raises `InvalidInput` if the file can't be saved. Errors of
        later calls go to `failure`.
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
            # Not raised, because a write that has begun must be finished.
            self._unsaved = f"the receipt could not be saved: {error}"
        else:
            self._unsaved = ""  # each call writes the whole receipt, so an earlier failure no longer matters
        self.receipt, self._recorded = receipt, execution

    def note_unsaved_file(self, error: InvalidInput) -> None:
        """Put into `failure` that a file other than the receipt could not be saved after the write."""
        # Not raised here, because the offsets are written. The command fails at its end, with `failure`.
        self._other_unsaved = f"not all files of the run could be saved: {error}"


@contextmanager
def open_receipt(
    path: Path, *, read_only: bool = False, must_exist: bool = False, by: WrittenBy = NOT_KNOWN
) -> Iterator[ReceiptFile]:
    """Yield the receipt in a file. By default, a file that does not exist is a receipt without writes.

    by: who makes further writes. If ``read_only`` is false, the file is locked until the block ends. Raises
    `InvalidInput` if the file is damaged, can't be written, or must exist and is missing; `Refused` if another process
    holds the lock.
    """
    if not read_only:
        check_writable(path, replace=True)
    with nullcontext() if read_only else locked(path):
        is_there = must_exist or status(path) is not None
        yield ReceiptFile(path, receipt_json.load(path) if is_there else Receipt(run=new_run_id()), by)


def run_of_return(path: Path | None, receipt: Receipt) -> Path | None:
    """Return the run directory in which the group of a move has returned to its cluster; None if it has not.

    path: of the receipt of the move; None if it is not saved. Raises `InvalidInput` if a file is damaged.
    """
    back = RunDir(path.parent).of_return if path and receipt.elsewhere else None
    if back is None or not status(back.receipt):
        return None
    states = receipt_json.load(back.receipt).partition_states.values()
    return back.folder if any(each.state is State.HANDED_OVER for each in states) else None


def new_run_id() -> str:
    """Return a random id for a run, by which the journals on the cluster name it."""
    return secrets.token_hex(4)
