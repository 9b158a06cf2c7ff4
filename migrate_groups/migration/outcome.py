"""What became of a write, for whoever asked for it."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import PartlyApplied
from migrate_groups.planning.plan import Action
from migrate_groups.planning.receipt import Deed, Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The deed of a write, and the record of the run with it.

    path: of the receipt. failure: what could not be kept, empty where all was. again: what to run where it is not
    whole.
    """

    deed: Deed
    receipt: Receipt
    path: Path
    failure: str = ""
    again: str = "the same command"

    def check(self) -> None:
        """Raise `PartlyApplied` where it is not what was asked for: what happened, and what to do."""
        deed = self.deed
        if self.failure:
            raise PartlyApplied(f"offsets were written, and {self.failure}")
        if deed.failed:
            raise PartlyApplied(
                f"{counted(len(deed.failed), 'partition')} not confirmed; the receipt says which: run {self.again} "
                "again"
            )
        if deed.moved and deed.verb is Verb.HAND_OVER:
            raise PartlyApplied(
                f"{deed.moved[0]}; stop it. If the new groups have not started, run {self.again} again, or "
                f"migrate-groups rollback {shlex.quote(str(self.path))}, which {_what_rollback_does(deed)}; if they "
                "have started, these records are processed twice, and the same command tells which"
            )
        if deed.moved:
            raise PartlyApplied(f"{deed.moved[0]}; stop it: what it processes from there on is processed twice")


def _what_rollback_does(deed: Deed) -> str:
    actions = Counter(entry.change.inverse.action for entry in deed.entries)
    deeds = {"deletes": actions[Action.DELETE], "restores": actions[Action.MOVE] + actions[Action.CREATE]}
    return (
        " and ".join(f"{each} {counted(number, 'offset')}" for each, number in deeds.items() if number) or "undoes it"
    )
