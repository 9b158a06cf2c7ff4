"""What came of the throwaway topic and groups of ``doctor --write``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate_groups.errors import MigrateGroupsError, PartlyApplied
from migrate_groups.text import some

THROWAWAY = "migrate-groups-doctor."
"""The prefix of the names of the topic and the groups that ``doctor --write`` makes and deletes."""
DONE, REFUSED, FAILED = "done", "refused", "failed"


class Step(NamedTuple):
    """A step of a trial. seconds: how long it took. outcome: `DONE`, `REFUSED` or `FAILED`. remark: what was seen."""

    what: str
    seconds: float
    outcome: str
    remark: str = ""


@dataclass(slots=True, kw_only=True)
class Trial:
    """A hand-over, a rollback and a hand-back of throwaway groups.

    - topic, groups: the names of what was made.
    - left: what could not be deleted, such as ``topic migrate-groups-doctor.1f2e``.
    - error: the error that ended the trial; None if it came to its end. A way back that was refused is no error.
    """

    topic: str
    groups: Sequence[str]
    steps: list[Step] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    error: MigrateGroupsError | None = None

    def check(self) -> None:
        """Raise the error that ended the trial, or `PartlyApplied` if something is left on the cluster."""
        if self.error is not None:
            raise self.error
        if self.left:
            raise PartlyApplied(self.left_over)

    @property
    def left_over(self) -> str:
        """What could not be deleted, as a message; empty if nothing is left."""
        return f"could not be deleted: {some(self.left, 20)}: delete it by hand" if self.left else ""
