"""The sentence about the measured outage of a hand-over."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from migrate_groups.planning.execution import Execution
from migrate_groups.planning.outage import FirstSign
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import some

_MOST_GROUPS = 5


def outage_in_words(execution: Execution) -> str:
    """Return a sentence that says how long no group consumed the partitions of a hand-over, and what is not known.

    The text is empty for a write that is no hand-over or a copy, and if the target groups may not start.
    """
    outage = execution.outage
    is_outage = execution.verb is Verb.HAND_OVER and execution.source_groups and not execution.options.copy
    if not is_outage or outage.start_at is None:
        return ""
    sources = some(execution.source_groups)
    if outage.ran_until is None:
        known = f"outage not known: {sources} was not seen running"
        begin, since = outage.start_at, "after START"
    else:
        start = _seconds(outage.ran_until, outage.start_at)
        known = f"outage: START {start} after the last reading in which {sources} still ran"
        begin, since = outage.ran_until, "after that reading"
    if not outage.first_signs:
        return f"{known}; when the new groups began is not known, because they were not watched"
    seen = [each for each in outage.first_signs if each.at is not None]
    unseen = [each.group for each in outage.first_signs if each.at is None]
    missing = f"no member or commit during the watch: {some(unseen)}" if unseen else ""
    return "; ".join(filter(None, [known, _signs(seen, begin, since), missing]))


def _signs(seen: list[FirstSign], begin: datetime, since: str) -> str:
    """Return when the groups began, the slowest first; empty if none did."""
    if not seen:
        return ""
    slowest = sorted(seen, key=lambda each: (each.at, each.group), reverse=True)
    shown = slowest[:_MOST_GROUPS]
    parts = [f"{each.group} {_seconds(begin, each.at)} ({each.sign})" for each in shown if each.at is not None]
    more = f" and {len(slowest) - _MOST_GROUPS:,} more sooner" if len(slowest) > _MOST_GROUPS else ""
    interval = "; a commit includes a commit interval" if any(each.sign == "commit" for each in seen) else ""
    return f"first member or commit {since}: {', '.join(parts)}{more}{interval}"


def _seconds(begin: datetime, end: datetime) -> str:
    """Return the time between two times, rounded up to 0.1 s, or to 1 s from 2 minutes on."""
    seconds = (end - begin).total_seconds()
    if seconds >= 120:
        return span_in_words(timedelta(seconds=math.ceil(seconds)))
    return f"{math.ceil(seconds * 10) / 10:.1f} s"
