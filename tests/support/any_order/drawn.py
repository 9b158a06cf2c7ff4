"""Strategies that draw a random story: a sequence of commands and events.

In each strategy the simplest choice comes first, because hypothesis shrinks towards it.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order import events
from tests.support.any_order.events import At
from tests.support.any_order.story import Do, Resplit, Run, Setting, Start, Step

# The write that a way back reverts: that of the story's first verb, or the other write of the story.
FIRST, OTHER = "first", "other"

_PARTITIONS = st.sampled_from([TopicPartition("t", 0), TopicPartition("u", 0), TopicPartition("t", 1)])
_GROUPS = st.sampled_from(["old", "a", "b", "c"])
# The groups that lose offsets. Mostly the source group, because a way back has to restore its offsets.
_LOSERS = st.sampled_from(["old", "old", "old", "a", "b", "c"])
_SPLITS = st.sampled_from([(("t", "a"), ("u", "a")), (("t", "a"), ("u", "b")), (("t", "a"), ("u", "old"))])
_SIDES = st.sampled_from(["before", "after"])
_WRITES = ("alter_offsets", "delete_offsets", "receipt")
_MOMENTS = ("committed", "all_committed", "describe_groups", "sleep", *_WRITES)

_others = st.one_of(
    st.builds(events.Expire, _LOSERS, _PARTITIONS),
    st.builds(events.Expire, _LOSERS, _PARTITIONS, st.just("deleted by others")),
    st.builds(events.ExpireGroup, _LOSERS),
    st.builds(events.Straggle, _GROUPS, st.booleans(), st.booleans()),
    st.builds(events.Stop, _GROUPS, st.booleans()),
    st.builds(events.Restart, _GROUPS),
    st.builds(events.Produce, _PARTITIONS, st.integers(1, 20)),
    st.builds(events.Reset, _GROUPS, _PARTITIONS, st.integers(10, 40)),
    st.builds(events.Grow, st.sampled_from(["t", "u"])),
)


def _moments(labels):
    named = st.tuples(st.builds("{} {}".format, _SIDES, st.sampled_from(labels)), st.integers(1, 4))
    return named | st.tuples(st.just("any"), st.integers(1, 80))


_events = st.lists(
    st.builds(lambda moment, event: At(moment[0], moment[1], event), _moments(_MOMENTS), _others), max_size=2
)
_ends = st.lists(
    st.builds(
        lambda moment, event: At(moment[0], moment[1], event),
        _moments(_WRITES),
        st.just(events.Kill()) | st.just(events.Interrupt()) | st.builds(events.Refuse, _PARTITIONS),
    ),
    max_size=1,
)
_quiet = st.just(())
_during = st.one_of(_quiet, st.builds(lambda others, end: (*others, *end), _events, st.one_of(_quiet, _quiet, _ends)))

_run = st.builds(
    Run,
    st.sampled_from(
        ["rollback", "hand-back", "delete-offsets", "migrate", "rollback", "hand-back", "rollback", "apply"]
    ),
    of=st.sampled_from([FIRST, FIRST, FIRST, OTHER]),
    events=_during,
    stops=st.booleans(),
    starts=st.booleans(),
    member=st.booleans(),
    again=st.booleans(),
)
_of_a_group = st.builds(Run, st.sampled_from(["delete", "keep", "restore"]), of=_GROUPS, events=_during)
_hand_over = st.builds(
    Run,
    st.sampled_from(["migrate", "migrate", "migrate", "apply"]),
    events=_during,
    starts=st.booleans(),
    member=st.booleans(),
    hold=st.sampled_from([False, False, True]),
)
_between = st.one_of(
    st.builds(Do, st.builds(events.Pass, st.integers(1, 12))),
    st.builds(Start, _GROUPS, st.booleans()),
    st.builds(Do, _others),
    st.builds(Do, _others),
)


@st.composite
def _step(draw) -> Step:
    """Draw a step of a story. Seven of nine steps run one of the tool's commands."""
    kind = draw(st.sampled_from(["between", "run", "run", "run", "run", "run", "between", "run", "of a group"]))
    return draw({"between": _between, "run": _run, "of a group": _of_a_group}[kind])


def _with_write(step: Step, first: str) -> Step:
    """Return the step with ``of`` set to the write that its command makes or reverts: ``split`` or ``apply``.

    Events, and the commands on a single group, are returned as they are. first: the story's first command, which
    decides which write `FIRST` and `OTHER` mean.
    """
    if not isinstance(step, Run):
        return step
    own = {"migrate": "split", "apply": "apply"}
    other = "split" if own[first] == "apply" else "apply"
    return replace(step, of=own.get(step.verb) or {FIRST: own[first], OTHER: other}.get(step.of, step.of))


def _in_the_split(split: dict[str, str], existing: dict[TopicPartition, int]) -> dict[tuple[str, TopicPartition], int]:
    return {
        (split[partition.topic], partition): at for partition, at in existing.items() if split[partition.topic] != "old"
    }


@st.composite
def settings(draw) -> Setting:
    """Draw the state in which a story begins: its topics, split, committed offsets and options."""
    split = dict(draw(_SPLITS))
    offsets = st.integers(10, 40)
    some_have = st.dictionaries(_PARTITIONS, offsets, max_size=3)
    all_have = st.fixed_dictionaries({TopicPartition(*each): offsets for each in (("t", 0), ("t", 1), ("u", 0))})
    existing = _in_the_split(split, draw(st.just({}) | some_have | all_have))
    partitions = {"t": draw(st.integers(1, 2)), "u": 1}
    existing = {at: offset for at, offset in existing.items() if at[1].partition < partitions[at[1].topic]}
    return Setting(
        partitions=partitions,
        split=split,
        existing=existing,
        on_existing=draw(st.sampled_from(["overwrite" if existing else "refuse", "overwrite", "forward"])),
        uncommitted=draw(st.sampled_from(["refuse", "refuse", "refuse", "leave", "earliest", "latest"])),
        vanished=draw(st.sampled_from(["refuse", "restore"])),
        settle=draw(st.sampled_from([6, 6, 0])),
        guard=draw(st.sampled_from([6, 6, 0])),
        latest=draw(st.sampled_from([True, True, False])),
    )


@st.composite
def stories(draw) -> tuple[Setting, list[Step]]:
    """Draw a story: its first state, and at least eight steps. The first command is ``migrate`` or ``apply``."""
    before = draw(st.lists(_between, max_size=2))
    after = draw(st.lists(_step(), min_size=7, max_size=9))
    first = draw(_hand_over)
    if draw(st.booleans()):
        other = st.sampled_from([(("t", "b"), ("u", "a")), (("t", "b"), ("u", "b"))])
        taken_back = [
            draw(st.builds(Run, st.sampled_from(["rollback", "hand-back"]), starts=st.booleans())),
            Resplit(draw(_SPLITS | other)),
            draw(st.builds(Run, st.just("migrate"), events=_during, starts=st.booleans())),
        ]
        at = draw(st.integers(0, 4))
        after[at:at] = taken_back
    return draw(settings()), [_with_write(step, first.verb) for step in (*before, first, *after)]
