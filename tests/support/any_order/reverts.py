"""Undo the fix of one of eight defects, to prove that stories find them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from migrate_groups.migration import carry_out, guard, journal
from migrate_groups.migration.barrier import Barrier
from migrate_groups.migration.ways_back import go_back, rollback
from migrate_groups.planning import partition_states, run_states
from migrate_groups.planning.change import Change
from migrate_groups.planning.checks import deletion
from migrate_groups.planning.checks import hand_back as hand_back_checks
from migrate_groups.planning.checks import rollback as rollback_checks
from migrate_groups.planning.run_states import State, Step, Verb

FIXES = {
    1: "a rollback restores what the source group has lost",
    2: "delete-offsets is refused after a rollback",
    3: "hand-back is refused after a rollback",
    4: "a rollback reads again after settle, and watches the targets for guard",
    5: "runs claim on the cluster what they hand over, so that other runs are refused",
    6: "an offset that a group has lost after it consumed again is not set from the receipt",
    7: "delete-offsets is refused while a target group may lack records of a partition that brokers refused",
    8: "a hand-back is refused if another client has committed after a rollback's write",
}

OF_ONE_RUN = (1, 2, 3, 4, 6, 7, 8)
"""Those fixes that matter within one run. Without them the claims are not made either, because these refuse most of the
commands again; so stories of several runs find other defects first."""


@contextmanager
def reverted(fix: int) -> Iterator[None]:
    """Undo a fix for the length of a ``with`` block. fix: a key of `FIXES`."""
    with ExitStack() as patched:
        # Otherwise the claims of the runs would refuse the command, and their requests would delay a write.
        patched.enter_context(mock.patch.object(journal, "handed_by", lambda known, plan, receipt: known))
        if fix == 1:
            patched.enter_context(mock.patch.object(rollback, "_stopped", return_value={}))
            # Otherwise the rollback would set back what it has deleted.
            patched.enter_context(mock.patch.object(carry_out, "other_groups", return_value={}))
        elif fix in (2, 3):
            verb = Verb.DELETE_OFFSETS if fix == 2 else Verb.HAND_BACK
            patched.enter_context(mock.patch.dict(run_states._TABLE, {State.UNDONE: _allowed(verb)}))
        elif fix == 4:
            patched.enter_context(mock.patch.object(go_back, "settle"))
            # The requests of the barrier would delay the write until after the consumer's next commit.
            patched.enter_context(mock.patch.object(go_back, "barrier_of", return_value=Barrier()))
            hand_overs_only = _hand_overs_only(guard.watched)
            for module in (guard, carry_out):
                patched.enter_context(mock.patch.object(module, "watched", hand_overs_only))
        elif fix == 6:
            for module in (hand_back_checks, rollback_checks):
                patched.enter_context(mock.patch.object(module, "lost_after_consuming", return_value=""))
        elif fix == 7:
            patched.enter_context(mock.patch.object(deletion, "_may_lack_records", Change.is_lowered))
        elif fix == 8:
            patched.enter_context(mock.patch.object(partition_states, "_is_left", return_value=True))
        yield


def _allowed(verb: Verb) -> tuple[Step, ...]:
    steps = run_states._TABLE[State.UNDONE]
    at = run_states._VERBS.index(verb)
    return (*steps[:at], Step.ALLOW, *steps[at + 1 :])


def _hand_overs_only(watched):
    return lambda execution: {} if execution.verb is Verb.ROLLBACK else watched(execution)
