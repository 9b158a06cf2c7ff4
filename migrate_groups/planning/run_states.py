"""The state machine of a run: what a hand-over, rollback, hand-back or delete-offsets may do with a partition.

The receipt, which is the record of a run, lists the executions. `migrate_groups.planning.receipt` turns them into one
state for each partition of a target group, or of the group from which `delete-offsets --group` deletes offsets. The
state can only forbid a write. If it allows one, the brokers' current state must fit too. The table is in docs/runs.md.
If the source group is on another cluster, a hand-back is refused in every state.
"""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    """The kind of a write.

    hand-over: write the source group's offsets to the target groups. rollback: undo a hand-over before the target
    groups run, or undo a deletion. hand-back: move the source group forward to the target groups' offsets.
    delete-offsets: delete the offsets of the moved topics from the source group, or, without a hand-over, of any topics
    from a group.
    """

    HAND_OVER = "hand-over"
    ROLLBACK = "rollback"
    HAND_BACK = "hand-back"
    DELETE_OFFSETS = "delete-offsets"


class State(StrEnum):
    """The state of a group's partition in the record of a run.

    A state in -ing means that a write has begun, and its outcome for the partition is not known yet. new: nothing was
    written. undone: the hand-over was rolled back. cleaned: the offset was deleted from the source group of a
    hand-over. deleted: the offset was deleted without a hand-over. restored: it was ``deleted``, and a rollback has set
    it again.
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
    """What a command (hand-over, rollback, …) does with a partition in a given state. The table is in docs/runs.md.

    start: begin a new write, for which the committed offset of now is the one that a rollback restores. resume:
    continue an earlier write of the same command. undo: roll back an unfinished write. allow: write on top of an
    earlier write of another command, such as the rollback of a hand-over. no-op: write nothing, because the command was
    completed before. skip: write nothing, because the run wrote nothing to the partition. refuse: forbid the command.
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
_UNFINISHED = {state: verb for verb, state in _OPEN.items()} | {State.DELETING: Verb.DELETE_OFFSETS}
_COMMANDS = {
    Verb.HAND_OVER: "migrate or apply",
    Verb.ROLLBACK: "rollback",
    Verb.HAND_BACK: "hand-back",
    Verb.DELETE_OFFSETS: "delete-offsets",
}

WORKS = frozenset({Step.START, Step.RESUME, Step.UNDO, Step.ALLOW})
"""The steps in which something is written."""


def step(state: State, verb: Verb) -> Step:
    """Return what a command does with a partition in this state: write, skip it, or refuse (table in docs/runs.md)."""
    return _TABLE[state][_VERBS.index(verb)]


def state_after(verb: Verb, *, settled: bool) -> State:
    """Return a partition's state after a write of this kind, for instance ``handed over`` after a hand-over.

    settled: whether the offset is in place: read back as written, or there before. If it is not, the state is that of
    an unfinished write, for instance ``writing``.
    """
    return (_DONE if settled else _OPEN)[verb]


def advice(state: State, *, is_elsewhere: bool = False) -> str:
    """Return a text for users: why a command refuses a partition in this state, and what to do next.

    is_elsewhere: whether the source group is on another cluster. Its offsets can then not be set to those of the target
    groups (a hand-back), because the records have other offsets there.
    """
    if is_elsewhere and state is State.CLEANED:
        return (
            "the old group's offsets were deleted: to set them again, run apply --restore before.parquet on its cluster"
        )
    if state in _UNFINISHED:
        command = _COMMANDS[_UNFINISHED[state]]
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
