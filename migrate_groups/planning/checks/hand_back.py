"""The checks of a hand-back that a hand-over does not have."""

from __future__ import annotations

from collections import defaultdict

from migrate_groups.model.partitions import CommittedOffset, offset_in_words
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import HandOverFacts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.planning.checks.source import live, lost_after_consuming
from migrate_groups.text import counted, named, some


def not_handed_over(facts: HandOverFacts) -> Judgement | None:
    """Check the partitions that brokers refused to write in the hand-over. None if there are none.

    The check refuses if, on such a partition, a target group has committed beyond the source group's offset, or the
    source group lost its offset. It also refuses if a target group that gives back nothing consumes the topic.
    """
    survey = facts.survey
    refused = [partition for partition in facts.receipt.refused.values() if partition.sources]
    moved = [(partition.change, source) for partition in refused for source in partition.handed_over_by]
    if not moved:
        return None
    topics: dict[str, set[str]] = defaultdict(set)
    # The hand-back waits for the members of the groups in `topics` anyway.
    for change in (change for change, _ in moved if change.group not in facts.topics):
        topics[change.group].add(change.topic)
    # Compared with the offset of the source group now, not with the one at the hand-over, because the source group kept
    # the partition and may have read on.
    ahead = [
        f"{change.group} {change.topic_partition} at {offset_in_words(survey.now(change.order))}, {source.group} at "
        f"{offset_in_words(survey.now(source.order))}"
        for change, source in moved
        if _offset(survey.now(change.order)) > max(_offset(survey.now(source.order)), _offset(change.before))
    ]
    lost = [
        f"{source.group} {source.partition}"
        for change, source in moved
        if change.source_committed is not None and survey.now(source.order) is None
    ]
    found = [
        f"{some(which, most=3)}: {advice}"
        for which, advice in (
            (live(survey.groups, topics), "stop these consumers"),
            (
                ahead,
                "the new group has committed since: compare what both have processed, and set the old group's offset "
                "with apply",
            ),
            (lost, "the committed offset expired or was deleted: set it with rewind and apply"),
        )
        if which
    ]
    if found:
        return Verdict.REFUSE, f"of partitions that were refused in the hand-over, {'; '.join(found)}"
    return Verdict.PASS, f"{counted(len(moved), 'partition')} stayed with the old group"


def _offset(committed: CommittedOffset | None) -> int:
    return -1 if committed is None else committed.offset


def lost_since(facts: HandOverFacts) -> Judgement | None:
    """Refuse if a source group has lost an offset after it was seen to consume. Otherwise None.

    It may have read further than the target group from which it would get an offset.
    """
    consumed = lost_after_consuming(facts, {each.order for each in facts.changes})
    return (Verdict.REFUSE, consumed) if consumed else None


def other_topics(facts: HandOverFacts) -> Judgement:
    """Warn of target groups' committed offsets on topics that were not handed over."""
    handed_over = {(group, topic) for group, topic, _ in facts.receipt.begun_or_done}
    stay = {
        group: others
        for group, topics in facts.topics.items()
        if (others := {topic for topic in topics if (group, topic) not in handed_over})
    }
    if not stay:
        return Verdict.PASS, "the new groups have committed nothing on other topics"
    each = [f"{group} keeps its offsets of {named('topic', topics)}" for group, topics in stay.items()]
    return Verdict.WARN, (
        f"{some(each, most=3)}, which this run did not hand over: before an old application that reads such a topic "
        "starts, give these offsets to its group with snapshot, filter and apply"
    )


RULES = (
    Rule(name="not handed over", scopes=(Scope.HAND_BACK,), judge=not_handed_over),
    Rule(name="source group", scopes=(Scope.HAND_BACK,), judge=lost_since),
    Rule(name="other topics", scopes=(Scope.HAND_BACK,), judge=other_topics),
)
