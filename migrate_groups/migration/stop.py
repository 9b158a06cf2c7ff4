"""The proof of a stop: nobody is there, and no offset moves.

Empty alone is no proof: a simple consumer commits without being a member, and a member over max.poll.interval.ms or a
restarted replica comes back (all measured). So a group is looked at twice, ``settle`` apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from migrate_groups.clock import Clock
from migrate_groups.cluster.ports import CommittedOffset, GroupDescription, GroupReader, TopicPartition
from migrate_groups.errors import Refused
from migrate_groups.migration.take import check_visible, existing_group, topics_of
from migrate_groups.offsets.selection import TopicPattern, matching_topics
from migrate_groups.plan.checks.source import running
from migrate_groups.text import counted, some

_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A group at one moment: its coordinator's description, and what it has committed on the topics in question."""

    description: GroupDescription
    committed: Mapping[TopicPartition, CommittedOffset | None]


# Why each group still runs (empty: it has stopped), the looks at them, and how many seconds have passed.
Progress = Callable[[Mapping[str, list[str]], Mapping[str, Look], float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How a stop is waited for.

    wait: seconds until giving up; 0 looks once. settle: seconds that nothing may move. progress: told at each look.
    """

    wait: float = 0.0
    settle: float = 10.0
    progress: Progress = lambda reasons, looks, seconds: None


# Which of the topics of a group are in question; None: all of them, and then nobody may be in the group at all.
Choice = Callable[[Collection[str]], Collection[str]] | None


def prove_stopped(
    reader: GroupReader,
    groups: Sequence[str],
    clock: Clock,
    how: Wait,
    *,
    patterns: Sequence[TopicPattern] = (),
    topics: Collection[str] = (),
) -> Mapping[str, Look]:
    """Wait until these groups have stopped, by topic where some are given, and return how they stood then.

    ``patterns`` must match topics that a group has a commit, an assignment or a subscription for; ``topics`` need not:
    a commit that expires while the stop is waited for takes its topic out of the group.

    Raises `GroupNotFound`, `Refused` when the wait runs out or a group is no consumer group, `InvalidInput` where a
    pattern matches no topic; and as `GroupReader`.
    """
    check_visible(reader, patterns)
    started = clock.monotonic()
    choice: Choice = (lambda present: matching_topics(present, patterns)) if patterns else None
    choice = (lambda present: topics) if topics else choice
    while True:
        reasons, looks = _look_twice(reader, groups, clock, how, choice)
        passed = clock.monotonic() - started
        how.progress(reasons, looks, passed)
        if not any(reasons.values()):
            return looks
        if passed >= how.wait:
            found = "; ".join(f"{group} {some(why, most=3)}" for group, why in reasons.items() if why)
            waited = f" after {passed:.0f} s" if how.wait else ""
            raise Refused(f"not stopped{waited}: {found}")
        clock.sleep(min(_POLL_SECONDS, how.wait - passed))


def _look_twice(
    reader: GroupReader, groups: Sequence[str], clock: Clock, how: Wait, choice: Choice
) -> tuple[dict[str, list[str]], dict[str, Look]]:
    first = {group: _look(reader, group, choice) for group in groups}
    reasons = {group: _why_running(look, choice) for group, look in first.items()}
    if any(reasons.values()):
        return reasons, first
    clock.sleep(how.settle)
    second = {group: _look(reader, group, choice) for group in groups}
    return {
        group: _why_running(second[group], choice) + moved_between(first[group], second[group]) for group in groups
    }, second


def moved_between(first: Look, second: Look) -> list[str]:
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


def _look(reader: GroupReader, group: str, choice: Choice) -> Look:
    description = existing_group(reader, group)
    if not description.is_consumer_group:
        kind = f"{description.group_type} {description.protocol_type}".strip()
        raise Refused(f"group {group!r} is not a consumer group but {kind}")
    present = topics_of(reader, description)
    described = reader.describe_topics(present if choice is None else choice(present))
    partitions = [TopicPartition(name, number) for name, topic in described.items() for number in topic.partitions]
    return Look(description=description, committed=reader.committed(group, partitions))


def _why_running(look: Look, choice: Choice) -> list[str]:
    return running(look.description, None if choice is None else {partition.topic for partition in look.committed})
