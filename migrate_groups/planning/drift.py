"""Detect that a plan is stale: a committed offset has changed, or an offset to write is no longer in the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from migrate_groups.model.partitions import offset_in_words
from migrate_groups.planning.change import Action, Change
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.survey import Survey
from migrate_groups.text import counted

Reasons = Mapping[tuple[str, str, int], list[str]]


def drift(approved: Plan, now: Plan, wanted: Sequence[Change], survey: Survey, *, resuming: bool = False) -> Reasons:
    """Return why an approved plan is stale, by group, topic and partition number; empty if it is not stale.

    now: the plan made again from ``wanted`` and ``survey``. resuming: ignore target groups that have the planned offset
    already.
    """
    reasons: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    current = {change.order: change for change in now.changes}
    for change in approved.changes:
        found = current.pop(change.order, None)
        if not (resuming and found and found.before == change.after):
            reasons[change.order] += _target(change, found) + _out_of_range(change, survey)
    for order in current:
        reasons[order].append("not in the plan")
    for each in wanted:
        if each.source_group is not None:
            reasons[each.group, each.topic, each.partition] += _source(
                each, each.source_group, survey, approved.options
            )
    return {order: why for order, why in reasons.items() if why}


def _target(approved: Change, now: Change | None) -> list[str]:
    if now is None:
        return ["no offset would be written now"]
    if now.before != approved.before:
        return [f"target group: {offset_in_words(approved.before)} → {offset_in_words(now.before)}"]
    if now.after != approved.after:
        return [f"offset to write: {offset_in_words(approved.after)} → {offset_in_words(now.after)}"]
    return []


def _source(wanted: Change, group: str, survey: Survey, options: WriteOptions) -> list[str]:
    committed = survey.committed[group].get(wanted.topic_partition)
    expired = committed is None and options.on_removed == "restore"
    if expired or (committed and committed.offset) == wanted.start:
        return []
    return [f"source group {group}: {offset_in_words(wanted.committed)} → {offset_in_words(committed)}"]


def _out_of_range(change: Change, survey: Survey) -> list[str]:
    if change.after is None or change.action is Action.UNCHANGED:
        return []
    bounds = survey.bounds.get(change.topic_partition)
    if bounds is None:
        return ["the partition was deleted or has no leader"]
    offset = change.after.offset
    if offset < bounds.start:
        return [
            f"{offset} is below the log start offset {bounds.start}: {counted(bounds.start - offset, 'record')} deleted"
        ]
    return [f"{offset} is beyond the log end offset {bounds.end}"] if offset > bounds.end else []
