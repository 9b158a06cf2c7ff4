"""The outcome for each of several groups that move to another cluster, as a table and as a JSON document."""

from __future__ import annotations

from pathlib import Path

from migrate_groups.show.documents import Document, Part
from migrate_groups.show.result import NAME, OFFSET, TEXT, WORD, Column, Result, Table
from migrate_groups.text import counted, some

_OF_EXIT_CODE = {2: "invalid", 3: "refused", 4: "incomplete", 5: "no answer"}
# The exit codes, the most serious first: with 4, some offsets may be written; 1 is a bug.
_SERIOUS = (4, 1, 5, 2, 3, 0)
STARTED = "started"
"""The verdict of a group that an earlier run has moved, and that has started on the target cluster since."""


class GroupMove(Part, frozen=True, kw_only=True):
    """A consumer group that ``migrate`` moves to another cluster.

    - verdict: ``moved``, or ``started`` if an earlier run moved the group and the group has started on the target
      since. In a dry run, the verdict of the plan. After an error: ``invalid``, ``refused``, ``incomplete``, ``no
      answer`` or ``failed``.
    - exit_code: the exit code of ``migrate`` for this group alone.
    - offsets: the number of offsets that were written, or that a dry run would write; null after an error.
    - reason: the error; null if there is none.
    - run_dir: the directory with the group's plan and receipt.
    """

    group: str
    verdict: str
    exit_code: int
    offsets: int | None
    reason: str | None
    run_dir: Path

    @staticmethod
    def failed(group: str, exit_code: int, reason: str, run_dir: Path) -> GroupMove:
        """Return the outcome for a group whose move ended with an error."""
        verdict = _OF_EXIT_CODE.get(exit_code, "failed")
        return GroupMove(
            group=group, verdict=verdict, exit_code=exit_code, offsets=None, reason=reason, run_dir=run_dir
        )


_COLUMNS: list[Column[GroupMove]] = [
    Column("group", NAME, lambda each: each.group),
    Column("verdict", WORD, lambda each: each.verdict),
    Column("offsets", OFFSET, lambda each: each.offsets),
    Column("reason", TEXT, lambda each: each.reason),
]


class MovesDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/moves"):
    """The document that ``migrate`` prints if it moves several whole groups to another cluster.

    dry_run: whether nothing was written. groups: the outcome for each group.
    """

    dry_run: bool
    groups: tuple[GroupMove, ...]

    @property
    def exit_code(self) -> int:
        """The most serious exit code of a group: the first of 4, 1, 5, 2, 3 and 0 that any group has."""
        return min((each.exit_code for each in self.groups), key=_SERIOUS.index, default=0)

    def result(self) -> Result:
        """Return a table with the outcome for each group: verdict, number of offsets, and error."""
        return Result(document=self, parts=[Table(columns=_COLUMNS, rows=self.groups, thing="group")])

    def conclusion(self) -> str:
        """Return a sentence that says how many groups failed, and which."""
        left = [f"{each.group} ({each.verdict})" for each in self.groups if each.exit_code]
        undone = "would not move" if self.dry_run else "not done"
        return f"{len(left)} of {counted(len(self.groups), 'group')} {undone}: {some(left)}"
