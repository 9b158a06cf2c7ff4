"""Checks of the offsets to write: each lies within the log, and no partition of the topics lacks an offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Action, Change, Origin, share_groups
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import HandOverFacts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.planning.survey import Survey
from migrate_groups.text import counted, named, some


def in_range(facts: HandOverFacts) -> Judgement:
    """Check that every offset to write lies between the log start offset and the log end offset.

    Brokers accept other offsets too (docs/kafka-behaviour.md#altering-offsets). The check also refuses a partition
    without a leader, and an offset below which an unclean leader election has replaced records. It warns if offsets
    were raised to the log start offset, or if an offset that is in place already is no longer within the log.
    """
    survey = facts.survey
    below, beyond, unknown, cut = [], [], [], []
    # A topic that does not exist is refused by the check `topics`.
    written = [each for each in _to_write(facts.changes) if each[0].topic in survey.topics]
    for partition, committed in written:
        bounds, offset = survey.bounds.get(partition), committed.offset
        if bounds is None:
            unknown.append(str(partition))
        elif offset < bounds.start:
            below.append(_gone(partition, offset, bounds.start))
        elif offset > bounds.end:
            beyond.append(_beyond(partition, offset, bounds.end))
        elif survey.cut and (end := survey.cut.get((partition, committed))) is not None:
            cut.append(f"{partition} at {offset}: from {end} on there are other records than the group has read")
    reasons = [
        f"{counted(len(found), 'offset')} {meaning}: {some(found, most=3)}; {advice}"
        for found, meaning, advice in (
            (
                unknown,
                "in partitions that do not exist or have no leader",
                "check the partition numbers, and run again once every partition has a leader",
            ),
            (beyond, "beyond the log end offset", "rewind --to-current lowers each to the log end offset"),
            (
                cut,
                "above the end of a log that an election has cut, and that has grown again since",
                "reset the old group to it (kafka-consumer-groups --reset-offsets --to-offset), and run again",
            ),
            (below, "below the log start offset", "pass --on-out-of-range earliest to write the log start offset"),
        )
        if found
    ]
    if reasons:
        return Verdict.REFUSE, "; ".join(reasons)
    if warnings := [*_warnings(facts)]:
        return Verdict.WARN, "; ".join(warnings)
    if not written:
        return Verdict.NOT_APPLICABLE, "no offset is written"
    return Verdict.PASS, f"{counted(len(written), 'offset')} within the log"


def _warnings(facts: HandOverFacts) -> Iterator[str]:
    if raised := list(dict.fromkeys(_raised(facts.decided))):
        yield f"{counted(len(raised), 'offset')} set to the log start offset: {some(raised, most=3)}"
    if outside := [*_in_place_outside(facts)]:
        found = f"{counted(len(outside), 'offset')} in place already but outside the log: {some(outside, most=3)}"
        yield f"{found}; the group's auto.offset.reset decides there"


def _to_write(changes: Sequence[Change]) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
    """Yield each partition and offset that these changes set, without offsets that are in place already."""
    for change in changes:
        if change.after is not None and change.action is not Action.UNCHANGED:
            yield change.topic_partition, change.after


def _in_place_outside(facts: HandOverFacts) -> Iterator[str]:
    """Yield each offset that is in place already, and that no longer lies between log start and log end offset."""
    # It is not refused, because an interrupted run must still be able to write the others.
    for change in facts.changes:
        bounds = facts.survey.bounds.get(change.topic_partition)
        if bounds is None or change.after is None or change.action is not Action.UNCHANGED:
            continue
        if change.after.offset < bounds.start:
            yield _gone(change.topic_partition, change.after.offset, bounds.start)
        elif change.after.offset > bounds.end:
            yield _beyond(change.topic_partition, change.after.offset, bounds.end)


def _raised(decided: Sequence[Change]) -> Iterator[str]:
    for each in decided:
        if each.raised_from is not None and each.after is not None:
            yield _gone(each.topic_partition, each.raised_from, each.after.offset)


def _gone(partition: TopicPartition, offset: int, start: int) -> str:
    return f"{partition} at {offset}: {counted(start - offset, 'record')} deleted already"


def _beyond(partition: TopicPartition, offset: int, end: int) -> str:
    return f"{partition} at {offset}: the log end offset is {end}"


def complete(facts: HandOverFacts) -> Judgement:
    """Check that every partition of the topics has an offset to write.

    In a partition without an offset, the target group's auto.offset.reset decides, and may skip records
    (docs/kafka-behaviour.md#logs). The check refuses such partitions, unless the option ``on_uncommitted`` allows
    them. It only warns if no source group hands them over.
    """
    decided, survey, on_uncommitted = facts.decided, facts.survey, facts.options.on_uncommitted
    missing = [each for each in decided if each.start is None]
    left_out = _left_out(decided, survey)
    if not decided:
        return Verdict.NOT_APPLICABLE, "no topic to compare"
    if not (missing or left_out):
        return Verdict.PASS, "every partition of the moved topics has an offset"
    # A set, because several target groups may get the same partition.
    partitions = {each.topic_partition for each in missing}
    is_only_warned = on_uncommitted == "refuse" and all(each.source_group is None for each in missing)
    if not missing or on_uncommitted == "leave" or is_only_warned:
        without = partitions | left_out
        count = counted(len(without), "partition")
        decides = "the new group's auto.offset.reset decides there"
        if shares := share_groups(decided):
            decides += (
                f"; {named('share group', shares)} starts at the log end, unless its share.auto.offset.reset is set"
            )
        return Verdict.WARN, f"no offset is written for {count}: {some(without)}; {decides}"
    found = f"{counted(len(partitions), 'partition')} without a committed offset: {some(partitions)}"
    cut = {
        each.topic_partition
        for each in missing
        if each.origin is Origin.ABSENT and survey.committed[each.source_group or ""].get(each.topic_partition)
    }
    if cut:
        reason = f"the file lacks {counted(len(cut), 'partition')} with a committed offset: {some(cut)}"
        other = "pass --on-uncommitted leave to write no offset there"
        return Verdict.REFUSE, f"{reason}; {facts.advice.read_again}, or {other}"
    if on_uncommitted == "refuse":
        choices = (
            "pass --on-uncommitted earliest for the log start offset, latest (migrate only) for the log end offset, "
            "or leave to let the new group's auto.offset.reset decide"
        )
        return Verdict.REFUSE, f"{found}; {choices}"
    if on_uncommitted == "latest":
        late = {each.topic_partition for each in missing if each.origin is not Origin.PROVEN_END}
        if late:
            reason = (
                f"the log end offset was never read with a member on the topic and no open transaction: {some(late)}; "
                "pass --on-uncommitted earliest or leave"
            )
            return Verdict.REFUSE, reason
    edge = "start" if on_uncommitted == "earliest" else "end"
    return Verdict.WARN, f"{found}; the log {edge} offset is written (on_uncommitted = {on_uncommitted})"


def _left_out(decided: Sequence[Change], survey: Survey) -> set[TopicPartition]:
    """Return the partitions for which no offset was decided and the target group has no committed offset.

    Only topics whose offsets are set without a source group are searched.
    """
    topics = {(each.group, each.topic) for each in decided if each.source_group is None}
    # If a source group hands over a topic, every partition has a decision.
    if not topics:
        return set()
    known = {(each.group, each.topic_partition) for each in decided}
    return {
        partition
        for group, topic in topics
        if topic in survey.topics
        for partition in (TopicPartition(topic, number) for number in survey.topics[topic].partitions)
        if (group, partition) not in known and survey.committed.get(group, {}).get(partition) is None
    }


_OUTDATED = ("topics", "not moved")
_OF = (Scope.HAND_OVER, Scope.HAND_BACK, Scope.SOURCE)
RULES = (
    Rule(name="complete", scopes=_OF, judge=complete, depends_on=_OUTDATED),
    Rule(name="in range", scopes=(*_OF, Scope.TARGET), judge=in_range, depends_on=_OUTDATED),
)
