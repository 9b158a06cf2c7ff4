"""Strategies that draw a random story: a sequence of commands and events.

In each strategy the simplest choice comes first, because hypothesis shrinks towards it.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from migrate_groups.model.partitions import TopicPartition
from tests.support.any_order import events
from tests.support.any_order.events import At
from tests.support.any_order.runs import AtOnce, Command, Edit, Run, Setting, Start, Step

_PARTITIONS = st.sampled_from([TopicPartition("t", 0), TopicPartition("u", 0), TopicPartition("t", 1)])
_GROUPS = st.sampled_from(["old", "a", "b", "c"])
# The groups that lose offsets. Mostly the source group, because a way back has to restore its offsets.
_LOSERS = st.sampled_from(["old", "old", "old", "a", "b", "c"])
_BOTH = {"t": "a", "u": "a"}
_SPLITS = st.sampled_from([_BOTH, {"t": "a", "u": "b"}, {"t": "a"}])
_SIDES = st.sampled_from(["before", "after"])
_WRITES = ("alter_offsets", "alter_offsets", "delete_offsets", "receipt")
_MOMENTS = ("committed", "all_committed", "describe_groups", "sleep", "held", *_WRITES)

_copies = st.builds(events.Copy, st.sampled_from(["one", "two"]), st.sampled_from([True, True, False]))
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
    _copies,
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
        _moments(("held", *_WRITES)),
        st.one_of(
            st.just(events.Kill()),
            st.just(events.Interrupt()),
            st.builds(events.Refuse, _PARTITIONS, st.booleans()),
            st.builds(events.Evict, _GROUPS),
        ),
    ),
    max_size=1,
)
_quiet = st.just(())
_during = st.one_of(_quiet, st.builds(lambda others, end: (*others, *end), _events, st.one_of(_quiet, _quiet, _ends)))

# The names of the runs. The first one hands over before the others.
_RUNS = st.sampled_from(["one", "one", "two", "two", "copy/one", "copy/two"])


def _commands(verbs, of=_RUNS):
    """Return a strategy for a command. verbs: from which its verb is drawn. of: its run or group."""
    return st.builds(
        Command,
        st.sampled_from(verbs),
        of=of,
        events=_during,
        stops=st.sampled_from([True, True, True, False]),
        starts=st.sampled_from([True, False]),
        member=st.sampled_from([True, False]),
        hold=st.sampled_from([False, False, True]),
        again=st.booleans(),
    )


def _hand_over(of: str):
    """Return a strategy for the hand-over of a run."""
    return st.builds(
        Command,
        st.just("hand-over"),
        of=st.just(of),
        events=_during,
        starts=st.sampled_from([True, False]),
        member=st.sampled_from([True, False]),
        hold=st.sampled_from([False, False, True]),
    )


_VERBS = ["rollback", "hand-back", "delete-offsets", "hand-over"]
_command = _commands(_VERBS)
_TURNS = st.lists(st.integers(1, 40), min_size=1, max_size=6).map(tuple)
_at_once = st.builds(AtOnce, _command, _command, _TURNS)
_of_a_group = _commands(["delete", "keep", "restore"], _GROUPS)
# In one strategy, because `one_of` would count each kind of event as much as a start.
_event = st.builds(lambda event: event, _others)
_between = st.one_of(
    st.builds(events.Pass, st.integers(1, 12)), st.builds(Start, _GROUPS, st.booleans()), _event, _event
)
_step = st.sampled_from([_between, *[_command] * 5, _between, _at_once, _of_a_group]).flatmap(lambda kind: kind)


@st.composite
def _runs(draw) -> dict[str, Run]:
    """Draw two runs. The second one goes on from a target group of the first one, or from the same source group."""
    migrated = st.builds(Run, to=_SPLITS)
    one = draw(st.one_of(migrated, migrated, st.builds(Run, verb=st.just("apply"))))
    verb = draw(st.sampled_from(["migrate", "migrate", "migrate", "apply"]))
    source = draw(st.sampled_from([*one.targets, one.targets[0], "old"]))
    others = [group for group in ("b", "c", "old", "a") if group != source]
    to = draw(st.fixed_dictionaries(dict.fromkeys("tu", st.sampled_from(others))))
    if verb == "apply":
        to = dict.fromkeys("tu", to["t"])
    elif source == "old" and "u" not in one.to:
        to = draw(st.sampled_from([{"u": to["u"]}, to]))
    return {"one": one, "two": Run(source=source, to=to, verb=verb)}


@st.composite
def settings(draw) -> Setting:
    """Draw the state in which a story begins: its topics, runs, committed offsets and options."""
    runs = draw(_runs())
    offsets = st.integers(10, 40)
    some_have = st.dictionaries(_PARTITIONS, offsets, max_size=3)
    all_have = st.fixed_dictionaries({TopicPartition(*each): offsets for each in (("t", 0), ("t", 1), ("u", 0))})
    partitions = {"t": draw(st.integers(1, 2)), "u": 1}
    one = runs["one"].to if runs["one"].verb == "migrate" else {}
    existing = {
        (one[partition.topic], partition): at
        for partition, at in draw(st.just({}) | some_have | all_have).items()
        if partition.topic in one and partition.partition < partitions[partition.topic]
    }
    return Setting(
        partitions=partitions,
        runs=runs,
        existing=existing,
        on_existing=draw(st.sampled_from(["overwrite" if existing else "refuse", "overwrite", "forward"])),
        on_uncommitted=draw(st.sampled_from(["refuse", "refuse", "refuse", "leave", "earliest", "latest"])),
        on_removed=draw(st.sampled_from(["refuse", "restore"])),
        settle=draw(st.sampled_from([6, 6, 0])),
        guard=draw(st.sampled_from([6, 6, 0])),
        latest=draw(st.sampled_from([True, True, False])),
    )


@st.composite
def stories(draw) -> tuple[Setting, list[Step]]:
    """Draw a story: its first state, and at least eight steps. Each run hands over, unless the story ends before."""
    setting = draw(settings())
    steps = draw(st.lists(_between, max_size=2))
    if draw(st.sampled_from([False, False, False, False, True])):
        steps += [draw(st.builds(AtOnce, _hand_over("one"), _hand_over("two"), _TURNS))]
    else:
        steps += [draw(_hand_over("one"))]
    if draw(st.booleans()):
        steps += [draw(_step)]
    elif draw(st.booleans()):
        steps += [draw(_commands(["rollback"], st.just("one"))), draw(_commands(_VERBS, st.just("one")))]
        steps += [draw(_hand_over("one"))]
    if setting.runs["two"].source == "old" and draw(st.sampled_from([True, True, True, False])):
        steps += [draw(_commands(["hand-back", "rollback", "hand-back"], st.just("one")))]
        if draw(st.booleans()):
            split = draw(st.sampled_from([_BOTH, {"t": "a"}, {"t": "b", "u": "a"}, {"t": "b", "u": "b"}]))
            steps += [Edit("one", tuple(split.items())), draw(_hand_over("one"))]
    steps += [draw(_hand_over("two")), *draw(st.lists(_step, min_size=6, max_size=8))]
    if draw(st.booleans()):
        copied, at = draw(_copies), draw(st.integers(1, len(steps)))
        steps.insert(at, copied)
        if draw(st.booleans()):
            steps.insert(draw(st.integers(at + 1, len(steps))), draw(_hand_over(f"copy/{copied.of}")))
    return setting, steps


def only_one(setting: Setting, steps: list[Step]) -> tuple[Setting, list[Step]]:
    """Return the story with all commands on its first run, one after the other, to look for a defect within a run."""
    others = ("two", "copy/one", "copy/two")
    one_by_one = [
        each for step in steps for each in ((step.first, step.second) if isinstance(step, AtOnce) else (step,))
    ]
    return setting, [
        replace(step, of="one") if isinstance(step, Command) and step.of in others else step for step in one_by_one
    ]
