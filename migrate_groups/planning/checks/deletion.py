"""The checks of deletions of committed offsets: of a run's source group, of any group, and by a later rollback."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Change, Relation
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import (
    GroupDeletionFacts,
    HandOverFacts,
    RunDeletionFacts,
    WayBackFacts,
)
from migrate_groups.planning.checks.rule import Rule, Scope, refused_if_any
from migrate_groups.planning.checks.source import live
from migrate_groups.planning.execution import Source
from migrate_groups.text import named, some

NOT_OFFERED = "the brokers do not offer to delete committed offsets (OffsetDelete, KIP-496)"
"""Why a rollback of a new group and delete-offsets are not possible."""


def taken_over(facts: RunDeletionFacts) -> Judgement:
    """Check that each target group has a committed offset that is not lower than the one that was handed over.

    The check warns of a target group that may not have started.
    """
    now, handed_over = facts.targets.now, [change for change, _ in facts.moved]
    if neither := [
        f"{change.group} {change.topic_partition}"
        for change, source in facts.moved
        if facts.survey.now(source.order) is None and now(change.order) is None
    ]:
        # Also after a deletion that was killed before it could set the offset back (`put_back`).
        complaint = (
            "neither this group nor the old group has a committed offset any more: set that of the old group with "
            "apply --restore and before.parquet of the run directory"
        )
        return Verdict.REFUSE, f"{some(neither, 3)}: {complaint}"
    behind = [
        f"{change.group} {change.topic_partition}" for change in handed_over if change.is_lowered(now(change.order))
    ]
    behind += [
        f"{change.group} {change.topic_partition}"
        for change in facts.refused
        if _may_lack_records(change, now(change.order))
    ]
    started = {change.group for change in handed_over if change.relation(now(change.order)) is Relation.AHEAD}
    silent = sorted({change.group for change in handed_over} - started)
    not_started = [group for group in silent if not facts.targets.groups[group].members]
    if behind or not not_started:
        return refused_if_any(
            behind,
            "no committed offset, or a lower one than was handed over: if another run has handed it on, delete with "
            "delete-offsets --group; otherwise start the group; if brokers refused the write, run migrate or apply "
            "again or, if the group has started, set its offset with snapshot, filter and apply, and delete with "
            "delete-offsets --group",
            "every target group has a member or has committed since, and no offset is lower than was handed over",
            compared=[*handed_over, *facts.refused],
        )
    return Verdict.WARN, (
        f"{named('target group', not_started)} not seen to run: no member, and no commit beyond the offsets that were "
        "handed over; start the applications first, unless they have read to the end and stopped"
    )


def _may_lack_records(change: Change, now: CommittedOffset | None) -> bool:
    """Return whether a target group, to which brokers refused to write an offset, may not process records from there.

    A group that had no offset may have started at the log end, and one that was ahead has read on from further.
    """
    before, after = change.before, change.after
    if after is None or now == after:
        return False
    return before is None or before.offset > after.offset or now == before or change.is_lowered(now)


def not_moved_since_hand_over(facts: RunDeletionFacts) -> Judgement:
    """Check that the source group has not committed since the hand-over."""
    sources = {source.order: source for _, source in facts.moved}
    now = {order: facts.survey.now(order) for order in sources}
    moved = [
        source
        for order, source in sources.items()
        if (committed := now[order]) and committed.offset != source.stopped_at
    ]
    return refused_if_any(
        [str(source.partition) for source in moved],
        f"the source group has committed since the hand-over{_then(facts, moved)}",
        "the source group has not committed since the hand-over",
        compared=[each for each in now.values() if each is not None],
    )


def _then(facts: RunDeletionFacts, moved: Sequence[Source]) -> str:
    """Return what to do about source groups that have committed since the hand-over, as the end of a sentence."""
    if not moved or live(facts.survey.groups, facts.topics):
        return ": stop its consumers of these topics"
    group = min(source.group for source in moved)
    topics = sorted({source.partition.topic for source in moved if source.group == group})
    options = " ".join([f"--group {shlex.quote(group)}", *(f"--topic {topic}" for topic in topics[:3])])
    more = " …" if len(topics) > 3 else ""
    return (
        ", and no member is on these topics now: unless the group has been given them back, migrate-groups "
        f"delete-offsets {options}{more} deletes its offsets, but hand-back of this run needs them"
    )


def nobody_on(facts: WayBackFacts) -> Judgement:
    """Check that no member of a group may still consume the topics whose offsets are deleted."""
    members = live(facts.survey.groups, facts.topics)
    return refused_if_any(members, "stop these consumers", "no member is on the topics", compared=facts.topics)


def not_moved_since_shown(facts: GroupDeletionFacts) -> Judgement | None:
    """Check that no committed offset has changed since the plan was shown. None for the plan that is shown."""
    if facts.shown is None:
        return None
    before, after = ({change.order: change.before for change in changes} for changes in (facts.shown, facts.changes))
    moved = [
        f"{topic}-{number}"
        for group, topic, number in before.keys() | after.keys()
        if before.get((group, topic, number)) != after.get((group, topic, number))
    ]
    complaint = "the group has committed since the plan was shown: stop its consumers of these topics"
    return refused_if_any(moved, complaint, f"no commit for {facts.options.settle:g} s", compared=before)


def source(facts: RunDeletionFacts) -> Judgement | None:
    """Warn if a source group no longer exists. None if all exist."""
    missing = [group for group in facts.topics if not facts.survey.groups[group].exists]
    if not missing:
        return None
    return Verdict.WARN, f"{named('group', missing)} not found any more: no offset is left to delete there"


def undo(facts: HandOverFacts) -> Judgement | None:
    """Warn before a hand-over if the brokers can't delete offsets later. None if they can, or no offset is new."""
    created = {each.group for each in facts.changes if each.before is None}
    if facts.survey.cluster_facts.offers.deletes_offsets or not created:
        return None
    return Verdict.WARN, (
        f"{NOT_OFFERED}, so rollback and delete-offsets will be refused: before the new groups commit, delete-group "
        f"{some(created)} undoes the hand-over; later, hand-back does"
    )


def offered(facts: WayBackFacts) -> Judgement | None:
    """Check that the brokers can delete offsets. None if they can, or no offset is to be deleted."""
    emptied = {each.group for each in facts.changes if each.after is None and each.before is not None}
    if facts.survey.cluster_facts.offers.deletes_offsets or not emptied:
        return None
    return Verdict.REFUSE, (
        f"{NOT_OFFERED}: delete-group deletes a whole group that nothing uses, such as {some(emptied)} after a "
        "hand-over that nobody started; other offsets expire"
    )


RULES = (
    Rule(name="deletion", scopes=(Scope.HAND_OVER, Scope.TARGET), judge=undo),
    Rule(name="deletion", scopes=(Scope.ROLLBACK, Scope.DELETE_OF_RUN, Scope.DELETE_OF_GROUP), judge=offered),
    Rule(name="taken over", scopes=(Scope.DELETE_OF_RUN,), judge=taken_over),
    Rule(name="not moved", scopes=(Scope.DELETE_OF_RUN,), judge=not_moved_since_hand_over),
    Rule(name="stopped", scopes=(Scope.DELETE_OF_RUN, Scope.DELETE_OF_GROUP), judge=nobody_on),
    Rule(name="not moved", scopes=(Scope.DELETE_OF_GROUP,), judge=not_moved_since_shown),
    Rule(name="source", scopes=(Scope.DELETE_OF_RUN,), judge=source),
)
