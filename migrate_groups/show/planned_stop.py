"""Sentences about stopping members of the source group before a migration, for the terminal and Markdown views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta

from migrate_groups.model.groups import Member
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.planned_stop import PlannedStop, steps_until_start
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, some

_MOST_NAMES = 10


def who(stop: PlannedStop) -> list[str]:
    """Return sentences that say which topics stay with the source group, and which members must stop."""
    staying = ", whose members keep running" if stop.may_stay else ""
    lines = [f"stays with {stop.source.group}: {some(stop.stay)}{staying}"] if stop.stay else []
    return [*lines, _members(stop)]


def how_long(stop: PlannedStop) -> str:
    """Return a sentence that says for how long no group consumes the moved topics, in total and step by step."""
    total, parts = _total_and_parts(stop.parts, stop.partitions)
    return (
        f"the moved topics are not consumed for about {total} ({parts}), "
        "plus the time that the applications take to stop and start"
    )


def until_old_may_start(plan: Plan) -> str:
    """Return a sentence that says how long a rollback takes until the old applications may start, step by step."""
    partitions = len(plan.changes)
    total, parts = _total_and_parts(steps_until_start(plan.options.settle, partitions), partitions)
    also = (
        f"; the watch of {_span(plan.options.guard)} comes later, and they need not wait for it"
        if plan.options.guard
        else ""
    )
    return f"the old applications may start about {total} after the rollback begins ({parts}){also}"


def question(stop: PlannedStop, offsets: str) -> str:
    """Return the question that the user answers before offsets are written, such as ``Write 12 offsets?``.

    If the tool first waits for members to stop, or for a time without commits, the question says for how long. offsets:
    their number as text, here ``12 offsets``.
    """
    if stop.must_stop:
        return f"Wait up to {_span(stop.wait)} for them, then write {offsets}?"
    settled = f"Wait {_span(stop.settle)} for the group to settle, then write" if stop.settle else "Write"
    return f"{settled} {offsets}?"


def _total_and_parts(steps: Mapping[str, float], partitions: int) -> tuple[str, str]:
    parts = ", ".join(f"{_span(seconds)} {step}" for step, seconds in steps.items())
    return _span(sum(steps.values())), f"{parts} {counted(partitions, 'partition')}"


def _members(stop: PlannedStop) -> str:
    if not stop.source.members:
        return f"{stop.source.group} has no members; a consumer that uses assign() does not show, and must stop too"
    if not stop.is_clear:
        state = f"{stop.source.group} is {stop.source.state}"
        return f"{state}: it does not show yet which of its members must stop: {_names(stop.must_stop)}"
    stays = f"{_names(stop.may_stay)} may stay" if stop.may_stay else ""
    if not stop.must_stop:
        return f"no member has to stop; {stays}"
    both = _names(stop.must_go_on)
    restart = f"{both} may start again after START, with only the topics that stay" if both else ""
    return "; ".join(filter(None, [f"stop {_names(stop.must_stop)}", restart, stays]))


def _names(members: Iterable[Member]) -> str:
    counts = Counter(member.client_id or member.member_id for member in members)
    return some([name if count == 1 else f"{name} ({count} members)" for name, count in counts.items()], _MOST_NAMES)


def _span(seconds: float) -> str:
    return span_in_words(timedelta(seconds=seconds))
