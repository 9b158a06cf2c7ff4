"""The result of a command that writes offsets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import PartlyApplied
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.planning.change import Action
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import counted, shell_command, some


def result_of(execution: Execution, file: ReceiptFile, again: str = "the same command") -> WriteResult:
    """Return the result of a write.

    execution: the record of the write. again: the command that an error tells the user to run again.
    """
    assert file.path is not None  # noqa: S101  only a dry run has no receipt file
    return WriteResult(execution=execution, receipt=file.receipt, path=file.path, failure=file.failure, again=again)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The result of a write.

    - execution: the record of the write.
    - receipt: the record of all writes of the run.
    - path: the file of the receipt.
    - failure: why a file of the run could not be written; empty if all were written.
    - again: the command that an error message tells the user to run again.
    - delivered_again: a message if a mirror between two clusters has delivered records again, or if this is not known;
      otherwise empty.
    """

    execution: Execution
    receipt: Receipt
    path: Path
    failure: str = ""
    again: str = "the same command"
    delivered_again: str = ""

    def check(self) -> None:
        """Raise `PartlyApplied`, with what to do next, if something went wrong after the first write request.

        - A file could not be written.
        - A partition is not confirmed.
        - A group that must no longer consume still consumed, or could not be watched.
        - A partition was added to a topic, and a target group has no offset there.
        - A mirror has copied records a second time, after the offset at which a target group starts.
        """
        execution = self.execution
        if self.failure:
            raise PartlyApplied(f"offsets were written, but {self.failure}; fix this, and run {self.again} again")
        if execution.failed:
            failed = counted(len(execution.failed), "partition")
            reasons = {change.error for change in execution.failed} - {""}
            why = f" ({some(reasons, 2)})" if reasons else ""
            raise PartlyApplied(f"{failed} not confirmed{why}; the receipt says which: run {self.again} again")
        if execution.moved and self.receipt.is_of_deletion:
            raise PartlyApplied(f"{execution.moved[0]}: the group runs again; look at its offsets with describe")
        if execution.moved and execution.verb is Verb.HAND_OVER:
            rollback = f"migrate-groups {shell_command('rollback', [str(self.path)])}"
            raise PartlyApplied(
                f"{execution.moved[0]}; stop its consumers. If the new groups have not started, run {self.again} "
                f"again, or {rollback}, which {_what_rollback_does(execution)}; if they have started, these records "
                "are processed twice, and the same command names them"
            )
        if self.delivered_again:
            raise PartlyApplied(
                f"{self.delivered_again}. If the new groups have not started, run {self.again} again: it "
                "translates the offsets to ones after these records; if they have started, they process them twice"
            )
        if execution.moved:
            raise PartlyApplied(
                f"{execution.moved[0]}; stop its consumers: records that they read from there on are processed twice"
            )
        if execution.added:
            raise PartlyApplied(
                f"{execution.added[0]}: with auto.offset.reset=latest, records there are skipped. If the new groups "
                f"have not started, run {self.again} again, which sets the log start offset; if they have started, "
                "stop them, and set it with rewind and apply"
            )
        if execution.not_watched and self.receipt.is_of_deletion:
            raise PartlyApplied(f"{execution.not_watched[0]}: look at its offsets with describe")
        if execution.not_watched:
            raise PartlyApplied(f"{execution.not_watched[0]}: run {self.again} again, which looks at the group")


def _what_rollback_does(execution: Execution) -> str:
    actions = Counter(change.inverse.action for change in execution.changes)
    done = {"deletes": actions[Action.DELETE], "restores": actions[Action.MOVE] + actions[Action.CREATE]}
    return (
        " and ".join(f"{verb} {counted(number, 'offset')}" for verb, number in done.items() if number)
        or "undoes the write"
    )
