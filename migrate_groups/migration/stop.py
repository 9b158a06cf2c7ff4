"""Prove that groups have stopped consuming topics: no member consumes the topics, and no committed offset changes.

The state Empty is no proof, because a consumer that uses ``assign()`` commits without being a member
(docs/kafka-behaviour.md#members-and-states).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from migrate_groups.clock import Clock
from migrate_groups.errors import GroupNotFound, PendingCommits, Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.hints import hidden_topics_named
from migrate_groups.migration.reading.requests import (
    describe_group,
    existing,
    not_empty,
    own_topics,
    read_all_committed,
)
from migrate_groups.migration.reading.take import check_visible, observe, read_early
from migrate_groups.model.groups import GroupDescription, GroupWithOffsets, ObservedGroup
from migrate_groups.planning.checks.source import running
from migrate_groups.snapshots.selection import TopicPattern, matching_topics
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, some

_POLL_SECONDS = 0.02


# Called after each check, with why each group still runs (empty: it has stopped), the observation of each group, and
# the seconds of waiting.
StopProgress = Callable[[Mapping[str, list[str]], Mapping[str, ObservedGroup], float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How to wait for groups to stop.

    - wait: seconds after which to give up; 0: check once, without waiting.
    - settle: after the stop, seconds in which no committed offset and no member may change; 0: skip this.
    - offsets: read the committed offsets, and wait for pending transactional commits, even if ``settle`` is 0.
    - may_be_gone: a group that does not exist counts as stopped.
    - expected: topics that the groups probably have committed offsets for. They are described at the same time as the
      committed offsets are read, which saves a round trip.
    - progress: called after each check.
    - doing: called with a line for the user when ``settle`` begins.
    - get_ready: called at the beginning of ``settle``, and part of it. Gets what was observed of each group.
    """

    wait: float = 0.0
    settle: float = 10.0
    offsets: bool = False
    may_be_gone: bool = False
    expected: Collection[str] = ()
    progress: StopProgress = lambda reasons, looks, seconds: None
    doing: Callable[[str], None] = lambda line: None
    get_ready: Callable[[Mapping[str, ObservedGroup]], object] = lambda looks: None


# Returns the topics that a group must stop consuming; None: all of them, and then the group must have no member.
InQuestion = Callable[[GroupReader, GroupDescription], set[str] | None]


def prove_stopped(
    reader: GroupReader,
    groups: Sequence[str],
    clock: Clock,
    how: Wait,
    *,
    patterns: Sequence[TopicPattern] = (),
    topics: Collection[str] = (),
) -> Mapping[str, ObservedGroup]:
    """Wait until these groups have stopped, and return what was observed of each group.

    patterns, topics: the topics that the groups must stop consuming. Without them, the groups must have no members.

    Raises `GroupNotFound`; `Refused` if the wait runs out, or a group is not a consumer group; `PendingCommits` if a
    transactional commit is still pending; `InvalidInput` if a pattern matches no topic.
    """
    check_visible(reader, patterns)
    started = clock.monotonic()
    deadline = started + how.wait  # compared only with the clock: a difference of times may be rounded

    def in_question(reader: GroupReader, description: GroupDescription) -> set[str] | None:
        if patterns:
            own = own_topics(reader, description)
            # A topic that the group does not consume counts as stopped. A name that is no topic is an error.
            named_others = {each.name for each in patterns if each.name is not None and each.name not in own}
            with hidden_topics_named(reader):
                return set(matching_topics({*own, *reader.describe_topics(named_others)}, patterns))
        # ``topics`` need not be topics of the group, because the last commit on a topic may expire during the wait.
        return set(topics) or None

    def settling() -> None:
        which = [*map(str, patterns)] or topics
        what = f"{some(which)} of {some(groups)}" if which else some(groups)
        settle = span_in_words(timedelta(seconds=how.settle))
        how.doing(
            f"{clock.monotonic() - started:4.0f} s  stopped: {what}; waiting {settle} to see that nothing is committed"
        )

    was_there = False
    while True:
        looked = clock.monotonic()
        try:
            reasons, looks = _look_twice(reader, groups, clock, how, in_question, settling)
        except (GroupNotFound, PendingCommits) as error:
            # Try again if the group existed before, because a coordinator that has just taken over may not know its
            # groups yet (docs/kafka-behaviour.md#members-and-states).
            is_there = was_there or isinstance(error, PendingCommits)
            if not is_there or clock.monotonic() >= deadline:
                raise
        else:
            was_there = True
            read_at = clock.monotonic()
            passed = read_at - started
            how.progress(reasons, looks, passed)
            if not any(reasons.values()):
                return looks
            if read_at >= deadline:
                found = "; ".join(f"{group} {some(why, most=3)}" for group, why in reasons.items() if why)
                waited = f" after {passed:.0f} s" if how.wait else ""
                raise Refused(f"not stopped{waited}: {found}; stop these consumers, or wait longer with --wait")
        now = clock.monotonic()
        clock.sleep(min(max(_POLL_SECONDS, now - looked), max(0.0, deadline - now)))


def _look_twice(
    reader: GroupReader,
    groups: Sequence[str],
    clock: Clock,
    how: Wait,
    in_question: InQuestion,
    settling: Callable[[], None],
) -> tuple[dict[str, list[str]], dict[str, ObservedGroup]]:
    first = {group: _look(reader, group, how, in_question, offsets=how.offsets or how.settle > 0) for group in groups}
    # If ``settle`` is 0, a consumer that returns is found only later: by the checks of the write, and by `guard`.
    if not how.settle or any(why for why, _ in first.values()):
        return _reasons_and_looks(first)
    settling()
    began = clock.monotonic()
    how.get_ready({group: look for group, (_, look) in first.items()})
    clock.sleep(max(0.0, how.settle - (clock.monotonic() - began)))
    second = {
        group: _look(reader, group, how, in_question, offsets=True, before=look) for group, (_, look) in first.items()
    }
    reasons, looks = _reasons_and_looks(second)
    moved = {group: moved_between(first[group][1], looks[group]) for group, why in reasons.items() if not why}
    # For a group that changed, return the first observation, because it has the commits that expired between the two.
    return {**reasons, **moved}, {**looks, **{group: first[group][1] for group, why in moved.items() if why}}


def _reasons_and_looks(
    found: Mapping[str, tuple[list[str], ObservedGroup]],
) -> tuple[dict[str, list[str]], dict[str, ObservedGroup]]:
    return {group: why for group, (why, _) in found.items()}, {group: look for group, (_, look) in found.items()}


def moved_between(first: ObservedGroup, second: ObservedGroup) -> list[str]:
    """Return how two observations of a group differ: committed offsets that moved, members that joined or left.

    Each text is the end of a sentence that begins with the group's name. The list is empty if nothing differs.
    """
    reasons = []
    partitions = first.committed.keys() | second.committed.keys()
    moved = sorted(tp for tp in partitions if first.committed.get(tp) != second.committed.get(tp))
    if moved:
        reasons.append(
            f"has {counted(len(moved), 'committed offset')} that moved without a member on the topic: {some(moved)} "
            "(by a consumer that assigns itself partitions, or by a transaction)"
        )
    if {member.member_id for member in first.description.members} != {
        member.member_id for member in second.description.members
    }:
        reasons.append("has other members than before")
    return reasons


def _look(
    reader: GroupReader,
    group: str,
    how: Wait,
    in_question: InQuestion,
    *,
    offsets: bool,
    before: ObservedGroup | None = None,
) -> tuple[list[str], ObservedGroup]:
    """Return why a group still runs (empty if it has stopped), and what was observed of the group.

    - in_question: returns the topics that the group must stop consuming; None means all topics.
    - offsets: read the committed offsets of a group that has stopped.
    - before: an earlier observation of the group as stopped. Its topics are then described at the same time as the
      group, and the offsets are read in the same round trip.

    Raises `GroupNotFound` unless ``how.may_be_gone``; `Refused` if the group is not a consumer group.
    """
    early = read_early(reader, group, before.topics) if before is not None and before.topics else None
    description = early.group.description if early else describe_group(reader, not_empty(group))
    if how.may_be_gone and not description.exists:
        return [], ObservedGroup(description=description, topics={}, committed={})
    if reason := existing(description).not_a_consumer_group:
        raise Refused(f"group {group!r} {reason}")
    topics = in_question(reader, description)
    reasons = running(description, topics)
    if reasons or not offsets:
        return reasons, ObservedGroup(description=description, topics={}, committed={})
    if early is None and how.expected:
        early = read_early(reader, group, how.expected, lambda: _with_all_offsets(reader, description))
    return [], observe(reader, description, lambda own: own if topics is None else topics, early=early)


def _with_all_offsets(reader: GroupReader, description: GroupDescription) -> GroupWithOffsets:
    """Return a described group with all its committed offsets, as they are now."""
    return GroupWithOffsets(description, read_all_committed(reader, [description.group])[description.group])
