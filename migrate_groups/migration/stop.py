"""The proof of a stop: nobody is there, and no offset moves.

Empty alone is no proof: a simple consumer commits without being a member, and a member over max.poll.interval.ms or a
restarted replica comes back (docs/kafka-behaviour.md#members-and-states). So a group is looked at twice, ``settle``
apart; where that is 0, whoever comes back is seen by what comes after: the checks of the write, and the look at the old
group after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from migrate_groups.clock import Clock
from migrate_groups.errors import GroupNotFound, PendingCommits, Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.take import ObservedGroup, check_visible, existing_group, observe, own_topics
from migrate_groups.model.groups import GroupDescription
from migrate_groups.planning.checks.source import running
from migrate_groups.snapshots.selection import TopicPattern, matching_topics
from migrate_groups.text import counted, some

_POLL_SECONDS = 0.02


# Why each group still runs (empty: it has stopped), the looks at them, and how many seconds have passed.
StopProgress = Callable[[Mapping[str, list[str]], Mapping[str, ObservedGroup], float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How a stop is waited for.

    wait: seconds until giving up; 0 looks once. settle: seconds that nothing may move. offsets: read them where nothing
    is to be settled either, which waits for pending transactional commits. may_be_gone: a group that does not exist,
    because all its offsets have expired, counts as stopped. progress: told at each look.
    """

    wait: float = 0.0
    settle: float = 10.0
    offsets: bool = False
    may_be_gone: bool = False
    progress: StopProgress = lambda reasons, looks, seconds: None


# Which topics of a group are in question; None: all of them, and then nobody may be in the group at all.
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
    """Wait until these groups have stopped, by topic where some are given, and return how they stood then.

    ``patterns`` must match topics that a group has a commit, an assignment or a subscription for; ``topics`` need not:
    a commit that expires while the stop is waited for takes its topic out of the group.

    Raises `GroupNotFound`, `Refused` when the wait runs out or a group is no consumer group, `InvalidInput` where a
    pattern matches no topic; and as `GroupReader`.
    """
    check_visible(reader, patterns)
    started = clock.monotonic()

    def in_question(reader: GroupReader, description: GroupDescription) -> set[str] | None:
        if patterns:
            return set(matching_topics(own_topics(reader, description), patterns))
        return set(topics) or None

    was_there = False
    while True:
        looked = clock.monotonic()
        try:
            reasons, looks = _look_twice(reader, groups, clock, how, in_question)
        except (GroupNotFound, PendingCommits) as error:
            # A coordinator that has just taken over may not know its groups yet
            # (docs/kafka-behaviour.md#members-and-states).
            is_there = was_there or isinstance(error, PendingCommits)
            if not is_there or clock.monotonic() - started >= how.wait:
                raise
        else:
            was_there = True
            passed = clock.monotonic() - started
            how.progress(reasons, looks, passed)
            if not any(reasons.values()):
                return looks
            if passed >= how.wait:
                found = "; ".join(f"{group} {some(why, most=3)}" for group, why in reasons.items() if why)
                waited = f" after {passed:.0f} s" if how.wait else ""
                raise Refused(f"not stopped{waited}: {found}")
        now = clock.monotonic()
        clock.sleep(min(max(_POLL_SECONDS, now - looked), max(0.0, started + how.wait - now)))


def _look_twice(
    reader: GroupReader, groups: Sequence[str], clock: Clock, how: Wait, in_question: InQuestion
) -> tuple[dict[str, list[str]], dict[str, ObservedGroup]]:
    first = {group: _look(reader, group, how, in_question, offsets=how.offsets or how.settle > 0) for group in groups}
    if not how.settle or any(why for why, _ in first.values()):
        return _apart(first)
    clock.sleep(how.settle)
    second = {group: _look(reader, group, how, in_question, offsets=True) for group in groups}
    reasons, looks = _apart(second)
    moved = {group: moved_between(first[group][1], looks[group]) for group, why in reasons.items() if not why}
    # What expired in between is in the first look alone; what has moved is looked at again.
    return {**reasons, **moved}, {**looks, **{group: first[group][1] for group, why in moved.items() if why}}


def _apart(
    found: Mapping[str, tuple[list[str], ObservedGroup]],
) -> tuple[dict[str, list[str]], dict[str, ObservedGroup]]:
    return {group: why for group, (why, _) in found.items()}, {group: look for group, (_, look) in found.items()}


def moved_between(first: ObservedGroup, second: ObservedGroup) -> list[str]:
    """Return what differs between two looks at a group: offsets that moved, members that came or went."""
    reasons = []
    partitions = first.committed.keys() | second.committed.keys()
    moved = sorted(tp for tp in partitions if first.committed.get(tp) != second.committed.get(tp))
    if moved:
        reasons.append(
            f"{counted(len(moved), 'offset')} moved without a member holding the topic: {some(moved)}; "
            "a consumer that assigns itself partitions, or a pending transaction"
        )
    if {member.member_id for member in first.description.members} != {
        member.member_id for member in second.description.members
    }:
        reasons.append("its members changed")
    return reasons


def _look(
    reader: GroupReader, group: str, how: Wait, in_question: InQuestion, *, offsets: bool
) -> tuple[list[str], ObservedGroup]:
    """Return why a group still runs, and the look at it: where it has stopped, with its offsets if they are wanted."""
    if how.may_be_gone and not (description := reader.describe_group(group)).exists:
        return [], ObservedGroup(description=description, topics={}, committed={})
    description = existing_group(reader, group)
    if not description.is_consumer_group:
        kind = f"{description.group_type} {description.protocol_type}".strip()
        raise Refused(f"group {group!r} is not a consumer group but {kind}")
    topics = in_question(reader, description)
    reasons = running(description, topics)
    if reasons or not offsets:
        return reasons, ObservedGroup(description=description, topics={}, committed={})
    return [], observe(reader, description, lambda own: own if topics is None else topics)
