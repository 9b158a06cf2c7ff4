"""What each command (hand-over, rollback, hand-back, delete-offsets) may do with a partition in a given state.

The state follows from the writes in the receipt (the record of a run). The table is in docs/run-states.md. A write
that the state allows is also checked against the brokers.
"""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    """The kind of a write.

    - hand-over: write the source group's offsets to the target groups.
    - rollback: undo a hand-over before the target groups run, or undo a deletion.
    - hand-back: move the source group forward to the target groups' offsets.
    - delete-offsets: delete the source group's offsets of topics that were handed over. Without a hand-over, delete the
      offsets of any topics from a group.
    """

    HAND_OVER = "hand-over"
    ROLLBACK = "rollback"
    HAND_BACK = "hand-back"
    DELETE_OFFSETS = "delete-offsets"


class State(StrEnum):
    """The state of a group's partition after the writes of a migration.

    - new: nothing was written.
    - handed over: the target group got the source group's offset.
    - undone: the hand-over was rolled back.
    - handed back: the source group got the target group's offset.
    - cleaned: after a hand-over, the source group's offset was deleted.
    - deleted: the offset was deleted without a hand-over.
    - restored: a rollback has set a deleted offset again.
    - states in -ing, such as undoing: a write has begun, and is not known to have finished.
    """

    NEW = "new"
    WRITING = "writing"
    HANDED_OVER = "handed over"
    UNDOING = "undoing"
    UNDONE = "undone"
    HANDING_BACK = "handing back"
    HANDED_BACK = "handed back"
    CLEANING = "cleaning"
    CLEANED = "cleaned"
    DELETING = "deleting"
    DELETED = "deleted"
    RESTORED = "restored"


class Step(StrEnum):
    """What a command (hand-over, …) does with a partition in a given state. The table is in docs/run-states.md.

    - start: begin a new write.
    - resume: continue an earlier write of the same command.
    - undo: roll back an unfinished write.
    - allow: write on top of another command's write, such as the rollback of a hand-over.
    - no-op: write nothing, because the command was completed before.
    - skip: write nothing, because nothing was written to the partition before.
    - refuse: forbid the command.
    """

    START = "start"
    RESUME = "resume"
    UNDO = "undo"
    ALLOW = "allow"
    NO_OP = "no-op"
    SKIP = "skip"
    REFUSE = "refuse"


_VERBS = (Verb.HAND_OVER, Verb.ROLLBACK, Verb.HAND_BACK, Verb.DELETE_OFFSETS)
_TABLE: dict[State, tuple[Step, Step, Step, Step]] = {
    # in the order of _VERBS: hand-over, rollback, hand-back, delete-offsets
    State.NEW: (Step.START, Step.SKIP, Step.SKIP, Step.SKIP),
    State.WRITING: (Step.RESUME, Step.UNDO, Step.REFUSE, Step.REFUSE),
    State.HANDED_OVER: (Step.RESUME, Step.ALLOW, Step.ALLOW, Step.ALLOW),
    State.UNDOING: (Step.REFUSE, Step.RESUME, Step.REFUSE, Step.REFUSE),
    State.UNDONE: (Step.START, Step.NO_OP, Step.REFUSE, Step.REFUSE),
    State.HANDING_BACK: (Step.REFUSE, Step.REFUSE, Step.RESUME, Step.REFUSE),
    State.HANDED_BACK: (Step.START, Step.REFUSE, Step.NO_OP, Step.REFUSE),
    State.CLEANING: (Step.REFUSE, Step.REFUSE, Step.ALLOW, Step.RESUME),
    State.CLEANED: (Step.REFUSE, Step.REFUSE, Step.ALLOW, Step.NO_OP),
    State.DELETING: (Step.REFUSE, Step.UNDO, Step.REFUSE, Step.RESUME),
    State.DELETED: (Step.REFUSE, Step.ALLOW, Step.REFUSE, Step.START),
    State.RESTORED: (Step.REFUSE, Step.NO_OP, Step.REFUSE, Step.START),
}
_OPEN = {
    Verb.HAND_OVER: State.WRITING,
    Verb.ROLLBACK: State.UNDOING,
    Verb.HAND_BACK: State.HANDING_BACK,
    Verb.DELETE_OFFSETS: State.CLEANING,
}
_DONE = {
    Verb.HAND_OVER: State.HANDED_OVER,
    Verb.ROLLBACK: State.UNDONE,
    Verb.HAND_BACK: State.HANDED_BACK,
    Verb.DELETE_OFFSETS: State.CLEANED,
}
UNFINISHED = {state: verb for verb, state in _OPEN.items()} | {State.DELETING: Verb.DELETE_OFFSETS}
"""The states of a write that has begun and is not known to have finished, each with the kind of the write."""

_COMMANDS = {
    Verb.HAND_OVER: "migrate or apply",
    Verb.ROLLBACK: "rollback",
    Verb.HAND_BACK: "hand-back",
    Verb.DELETE_OFFSETS: "delete-offsets",
}

WORKS = frozenset({Step.START, Step.RESUME, Step.UNDO, Step.ALLOW})
"""The steps in which something is written."""


def step(state: State, verb: Verb) -> Step:
    """Return what a command does with a partition in this state: write, skip or refuse (docs/run-states.md)."""
    return _TABLE[state][_VERBS.index(verb)]


def state_after(verb: Verb, *, settled: bool) -> State:
    """Return a partition's state after a write of this kind, such as ``handed over`` after a hand-over.

    settled: whether the offset is known to be in place. Otherwise the state is unfinished, such as ``writing``.
    """
    return (_DONE if settled else _OPEN)[verb]


def advice(state: State, *, is_elsewhere: bool = False) -> str:
    """Return a text for users: why a command refuses a partition in this state, and what to do next.

    is_elsewhere: whether the source group is on another cluster than the target groups.
    """
    if is_elsewhere and state is State.CLEANED:
        return (
            "the old group's offsets were deleted: to set them again, run apply --restore before.parquet on its cluster"
        )
    if state in UNFINISHED:
        command = _COMMANDS[UNFINISHED[state]]
        return f"{command} has not finished: run {command} again first"
    return {
        State.NEW: "this run wrote nothing",
        State.HANDED_OVER: "handed over already",
        State.UNDONE: "rolled back already: to hand over again, run migrate or apply again",
        State.HANDED_BACK: "handed back already: to hand over again, run migrate or apply again",
        State.CLEANED: "the source group's offsets were deleted: run hand-back to set them again",
        State.DELETED: "deleted by delete-offsets --group: name another receipt",
        State.RESTORED: "deleted by delete-offsets --group and restored by rollback: name another receipt",
    }[state]
