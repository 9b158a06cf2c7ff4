"""The life of a run: what each verb may do with a partition, given what the verbs before it did.

The receipt records the executions; `migrate_groups.planning.receipt` folds them into one state for each partition of a
target. The record only forbids: whatever it allows, the brokers must show as well. The table is in docs/runs.md.
"""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    """What a write was for."""

    HAND_OVER = "hand-over"
    ROLLBACK = "rollback"
    HAND_BACK = "hand-back"
    DELETE_OFFSETS = "delete-offsets"


class State(StrEnum):
    """What the record of a run says of one partition of a target group. Those in -ing belong to an open execution."""

    NEW = "new"
    WRITING = "writing"
    HANDED_OVER = "handed over"
    UNDOING = "undoing"
    UNDONE = "undone"
    HANDING_BACK = "handing back"
    HANDED_BACK = "handed back"
    CLEANING = "cleaning"
    CLEANED = "cleaned"


class Step(StrEnum):
    """What a verb does with a partition in a state."""

    START = "start"
    RESUME = "resume"
    UNDO = "undo"
    ALLOW = "allow"
    NO_OP = "no-op"
    SKIP = "skip"
    REFUSE = "refuse"


_VERBS = (Verb.HAND_OVER, Verb.ROLLBACK, Verb.HAND_BACK, Verb.DELETE_OFFSETS)
_TABLE: dict[State, tuple[Step, Step, Step, Step]] = {
    # in the order of the verbs: hand-over, rollback, hand-back, delete-offsets
    State.NEW: (Step.START, Step.SKIP, Step.SKIP, Step.SKIP),
    State.WRITING: (Step.RESUME, Step.UNDO, Step.REFUSE, Step.REFUSE),
    State.HANDED_OVER: (Step.RESUME, Step.ALLOW, Step.ALLOW, Step.ALLOW),
    State.UNDOING: (Step.REFUSE, Step.RESUME, Step.REFUSE, Step.REFUSE),
    State.UNDONE: (Step.START, Step.NO_OP, Step.REFUSE, Step.REFUSE),
    State.HANDING_BACK: (Step.REFUSE, Step.REFUSE, Step.RESUME, Step.REFUSE),
    State.HANDED_BACK: (Step.START, Step.REFUSE, Step.NO_OP, Step.REFUSE),
    State.CLEANING: (Step.REFUSE, Step.REFUSE, Step.ALLOW, Step.RESUME),
    State.CLEANED: (Step.REFUSE, Step.REFUSE, Step.ALLOW, Step.NO_OP),
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
_UNFINISHED = {state: verb for verb, state in _OPEN.items()}
_COMMANDS = {
    Verb.HAND_OVER: "migrate or apply",
    Verb.ROLLBACK: "rollback",
    Verb.HAND_BACK: "hand-back",
    Verb.DELETE_OFFSETS: "delete-offsets",
}

WORKS = frozenset({Step.START, Step.RESUME, Step.UNDO, Step.ALLOW})
"""The steps with which a verb goes on."""


def step(state: State, verb: Verb) -> Step:
    """Return what a verb does with a partition in this state."""
    return _TABLE[state][_VERBS.index(verb)]


def after(verb: Verb, *, settled: bool) -> State:
    """Return the state that an execution leaves a partition in: ``settled`` once it was read back as asked for."""
    return (_DONE if settled else _OPEN)[verb]


def advice(state: State) -> str:
    """Return why a verb refuses a partition in this state, and what to do."""
    if state in _UNFINISHED:
        command = _COMMANDS[_UNFINISHED[state]]
        return f"{command} has not finished: run {command} again first"
    return {
        State.NEW: "this run wrote nothing",
        State.HANDED_OVER: "it was handed over",
        State.UNDONE: "it was rolled back: to move it again, migrate again",
        State.HANDED_BACK: "it was handed back: to move it again, migrate again",
        State.CLEANED: "its offsets were deleted from the source group: hand-back sets them again",
    }[state]
