"""Checks of a mirror between two clusters, and of offsets that were translated to the mirror's copies of the topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from migrate_groups.mirrors.position import Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import FailOverFacts, HandOverFacts, MirrorFacts
from migrate_groups.planning.checks.rule import Rule, Scope, refused_if_any
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.translation import TranslatedOffset, Translation
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, named, some

TRANSLATED_OFFSETS = "translated offsets"
"""The name of the check of the translated offsets. Its verdict is ``pending`` while the mirror has not caught up."""

_BY_TIME = "leave its topic out, and start it on the target with rewind --to-datetime and apply"
_REMEDIES: Mapping[Status, str] = {
    Status.GONE: "mirror the topic anew, from its first record",
    Status.DIFFERENT: "stop what filters the mirror or writes to the copy, and mirror the topic anew",
}


def translated_offsets(facts: MirrorFacts) -> Judgement:
    """Check that every offset was translated exactly to the mirror's copy of its partition, by comparing records."""
    return judge_translation(facts.translation, facts.options)


def judge_translation(translation: Translation, options: WriteOptions) -> Judgement:
    """Return whether every offset was translated exactly to the mirror's copy of its partition, by comparing records.

    The verdict is ``pending`` while the mirror has not delivered all records up to an offset. The check only warns if a
    group would read at most ``accept_reread`` records of a partition again, or if ``trust_copy`` names the topic of a
    partition without a record to compare.
    """
    counts = Counter(each.position.status for each in translation.partitions)
    tally = ", ".join(f"{counts[status]:,} {status}" for status in Status if counts[status]) or "none"
    others = [each for each in translation.partitions if not each.position.is_known]
    trusted = [*translation.with_status(Status.TRUSTED)]
    accepted = [each for each in others if each.position.start(options.accept_reread) is not None]
    late = [*translation.with_status(Status.NOT_MIRRORED)]
    refused = [each for each in others if each not in accepted and each not in late]
    if refused:
        return Verdict.REFUSE, f"{tally}: {_named(refused)}; {_advice(refused)}"
    if late:
        return Verdict.PENDING, f"{tally}: {_named(late)}; nothing is written before the mirror has delivered them"
    warnings = []
    if accepted:
        most = sum(each.position.reread for each in accepted)
        warnings.append(f"{_named(accepted)}; up to {counted(most, 'record')} read again (--accept-reread)")
    if trusted:
        topics = named("topic", sorted({each.source.topic for each in trusted}))
        warnings.append(f"no record was compared in {counted(len(trusted), 'partition')} of {topics} (--trust-copy)")
    if warnings:
        return Verdict.WARN, f"{tally}: {'; '.join(warnings)}"
    return Verdict.PASS, f"{tally}{_evidence(translation)}" if translation.partitions else tally


def lag(facts: MirrorFacts) -> Judgement | None:
    """Check that the mirror has delivered all records of the partitions. None if there is no partition.

    The verdict is ``pending`` if it has not: `migrate` then waits for the mirror before it asks to stop the group.
    The result is also None if it does not matter how far the mirror is behind.
    """
    mirrored = [each for each in facts.translation.partitions if each.copy is not None]
    unknown = [str(each.source) for each in mirrored if each.behind is None]
    behind = [each for each in mirrored if each.behind is not None and each.behind.records]
    if not (facts.lag_matters and mirrored):
        return None
    reasons = [
        f"{counted(len(behind), 'partition')} behind: {in_words(behind)}" if behind else "",
        f"{counted(len(unknown), 'partition')} not known: {some(unknown, 3)}" if unknown else "",
    ]
    if not any(reasons):
        return Verdict.PASS, f"no record to deliver in {counted(len(mirrored), 'partition')}"
    return Verdict.PENDING, "; ".join(filter(None, reasons))


def in_words(behind: Sequence[TranslatedOffset]) -> str:
    """Return how far the mirror is behind as text, for the three partitions in which it lacks the most records."""
    first = sorted(behind, key=lambda each: (-each.behind.records if each.behind else 0, each.source))[:3]
    rest = len(behind) - len(first)
    return ", ".join(map(_how_far, first)) + (f" and {rest:,} more" if rest else "")


def _how_far(each: TranslatedOffset) -> str:
    how = "not known" if each.behind is None else each.behind.in_words if each.behind.records else each.position.reason
    return f"{each.source} ({how})"


def delivered(facts: MirrorFacts) -> Judgement:
    """Warn if the mirror has delivered records of aborted transactions, which the target group then reads.

    MirrorMaker 2 delivers them by default. It does not if its consumer has ``isolation.level=read_committed``.
    """
    partitions = facts.translation.partitions
    aborted = sum(each.position.counts.aborted for each in partitions)
    if not any(each.position.method for each in partitions):
        return Verdict.NOT_APPLICABLE, "no records of the mirror were compared"
    if not aborted:
        return Verdict.PASS, "no record of an aborted transaction is at or after a translated offset"
    reason = (
        f"the mirror has delivered {counted(aborted, 'record')} of aborted transactions as committed ones, and the "
        "target group reads them: set isolation.level=read_committed for the mirror's consumer, and mirror anew"
    )
    return Verdict.WARN, reason


def synchronised(facts: HandOverFacts) -> Judgement:
    """Warn if target groups have committed offsets already: a mirror that syncs offsets may overwrite planned ones.

    MirrorMaker 2 syncs offsets if ``sync.group.offsets.enabled`` is set. The check refuses if a target group would keep
    an offset above the planned one, because the group would skip records.
    """
    ahead = [
        f"{each.group} {each.topic_partition} is at {each.before.offset}, not {each.given_up.offset}"
        for each in facts.decided
        if each.given_up and each.before
    ]
    if ahead and facts.kept_from is None:
        reason = (
            f"{counted(len(ahead), 'offset')} above the translated offset, so records would be skipped: "
            f"{some(ahead, 3)}; pass --on-existing overwrite, unless an application has run there"
        )
        return Verdict.REFUSE, reason
    groups = {each.group for each in facts.decided if each.before is not None}
    if not facts.decided:
        return Verdict.NOT_APPLICABLE, "no copy was found, in which a target group could have an offset"
    if not groups:
        return Verdict.PASS, "the mirror has written no offset of the target groups"
    reason = (
        f"{some(groups)} on the target cluster: there are offsets already. If the mirror writes them, switch that off "
        "(MirrorMaker 2: sync.group.offsets.enabled=false): it may move them until the group has members"
    )
    return Verdict.WARN, reason


def read_again(facts: HandOverFacts) -> Judgement | None:
    """Warn how many records the group has processed on both clusters, after a fail-over. None without one.

    They are those up to the group's committed offset here from before the cluster was lost, as far as the group has
    read on the other cluster; what it had processed here and not committed is not known. Records beyond are not read
    again: the group keeps the higher offset.
    """
    if facts.kept_from is None or facts.receipt.executions:  # a run that is resumed finds its own offsets
        return None
    again = ahead = 0
    kept, cut, lowered, unknown = [], [], [], []
    for each in facts.decided:
        if each.before is None or each.wanted is None:
            continue
        partition, here, there = each.topic_partition, each.before.offset, each.wanted.offset
        if (first := facts.kept_from.get(partition)) is None:
            unknown.append(str(partition))
            continue
        lowered += [f"{partition} at {there}, not {first}"] if there < first else []
        again += max(0, min(here, there) - first)
        ahead += max(0, here - there)
        bounds = facts.survey.bounds.get(partition)
        end = min(facts.survey.cut.get((partition, each.before), here), bounds.end if bounds else here)
        if here > there and end < here:
            cut.append(f"{partition} from {here} to {max(end, there)}")
        elif here > there:
            kept.append(f"{partition} stays at {here}, not {there}")
    if cut:
        return Verdict.REFUSE, (
            f"{counted(len(cut), 'log')} lost records below the committed offset with the cluster: set {some(cut, 3)} "
            "(kafka-consumer-groups --reset-offsets --to-offset), and run again"
        )
    parts = [
        f"after the offsets were kept: at most {counted(again, 'record')}, read again on the other cluster, as "
        "were any that the group had processed here and not committed, or that the mirror delivered twice",
        f"at most {counted(ahead, 'record')} not read there, and not read again: {some(kept, 3)}" if kept else "",
        f"there lowered since, by a rewind or the mirror's group sync (switch it off): {some(lowered, 3)}"
        if lowered
        else "",
        f"not known of {some(unknown, 3)}, without a kept offset" if unknown else "",
    ]
    said = f"committed here {'; '.join(filter(None, parts))}"
    return (Verdict.WARN if again or kept or lowered or unknown else Verdict.PASS), said


def other_topics(facts: MirrorFacts) -> Judgement | None:
    """Warn of topics of the source group that do not go back with it. None unless the group returns."""
    if facts.stays is None:
        return None
    group = facts.translation.group
    if not facts.stays:
        return Verdict.PASS, f"{group} has committed nothing on other topics there"
    unread = sum(facts.stays.values())
    left = f", with {counted(unread, 'unread record')}: let it read them before it stops" if unread else ""
    return Verdict.WARN, f"{group} keeps its offsets of {named('topic', facts.stays)} there{left}"


def partitions(facts: MirrorFacts) -> Judgement:
    """Check that no mirrored copy has more partitions than its topic. No offset is written for additional ones."""
    here, there = facts.source.topics, facts.survey.topics
    found = [(topic, copy) for topic, copy in facts.translation.topics if topic in here and copy in there]
    more = [
        f"{copy} has {counted(len(there[copy].partitions), 'partition')}, not {len(here[topic].partitions)}"
        for topic, copy in found
        if len(there[copy].partitions) > len(here[topic].partitions)
    ]
    complaint = (
        "in the others auto.offset.reset decides where a group starts: mirror into the same number of partitions"
    )
    fine = "every copy has as many partitions as its topic"
    return refused_if_any(more, complaint, fine, compared=found)


def not_asked(facts: FailOverFacts) -> Judgement:
    """Say that it is not known whether the source group has stopped, because its cluster is lost."""
    group, cluster = facts.translation.group, facts.translation.cluster_id
    return Verdict.NOT_KNOWN, (
        f"cluster {cluster} is not asked whether {group} has stopped: make sure of it, also when the cluster returns"
    )


def translated_before(facts: FailOverFacts) -> Judgement:
    """Check that each partition has an offset at which no unread record is skipped, as far as it was compared.

    The check warns how old the offsets are, and how many records may be read again: those from the offset on.
    """
    partitions, most = facts.translation.partitions, facts.options.accept_reread
    if refused := [each for each in partitions if each.position.start_if_lost(most) is None]:
        return Verdict.REFUSE, f"{_named(refused)}; {_BY_TIME}"
    topics, bounds = facts.survey.topics, facts.survey.bounds
    places = {each.topic_partition: each.wanted.offset for each in facts.decided if each.wanted}
    again = sum(max(0, bounds[each].end - offset) for each, offset in places.items() if each in bounds)
    copies = {topic: topics[topic].partitions for topic, _ in places if topic in topics}
    without = {TopicPartition(topic, each) for topic, numbers in copies.items() for each in numbers} - places.keys()
    late = sum(each.position.status is Status.NOT_MIRRORED for each in partitions)
    age = timedelta(seconds=round(facts.age.total_seconds()))
    parts = [
        f"{counted(len(partitions), 'offset')}, translated {span_in_words(age)} ago: no record of the copies is "
        f"skipped, at most {again:,} are read again",
        f"{counted(late, 'partition')} not mirrored up to the committed offset then" if late else "",
        f"{counted(len(without), 'partition')} without a committed offset then, where auto.offset.reset decides: "
        f"{some(without, 3)}"
        if without
        else "",
        "records that the mirror had not delivered are not here: if it delivers them when the cluster returns, those "
        f"that {facts.translation.group} has processed there are read again",
    ]
    return Verdict.WARN, "; ".join(filter(None, parts))


def _evidence(translation: Translation) -> str:
    """Return how many records were compared to translate offsets exactly."""
    compared = [each.position.compared for each in translation.partitions if each.position.compared]
    empty = len(translation.partitions) - len(compared)
    parts = []
    if compared:
        least = f", at least {min(compared):,} a partition" if len(compared) > 1 else ""
        parts.append(f"{counted(sum(compared), 'record')} compared{least}")
    if empty:
        parts.append(f"{counted(empty, 'partition')} without a record on either cluster, ever")
    return f"; {'; '.join(parts)}"


def _named(found: list[TranslatedOffset]) -> str:
    return some(
        [f"{each.source} at {each.offset} is {each.position.status} ({each.position.reason})" for each in found], 3
    )


def _advice(refused: list[TranslatedOffset]) -> str:
    most = max(each.position.reread if each.position.offset is not None else 0 for each in refused)
    if most and all(each.position.offset is not None for each in refused):
        return f"pass --accept-reread {most} to start at the lowest one, which reads up to so many records again"
    remedies = dict.fromkeys(_REMEDIES.get(each.position.status, "correct that") for each in refused)
    return "; or ".join([*remedies, _BY_TIME])


RULES = (
    Rule(name=TRANSLATED_OFFSETS, scopes=(Scope.MIRROR,), judge=translated_offsets),
    Rule(name=TRANSLATED_OFFSETS, scopes=(Scope.FAIL_OVER,), judge=translated_before, depends_on=("topics",)),
    Rule(name="stopped", scopes=(Scope.FAIL_OVER,), judge=not_asked),
    Rule(name="mirror", scopes=(Scope.MIRROR,), judge=delivered),
    Rule(name="partitions", scopes=(Scope.MIRROR,), judge=partitions),
    Rule(name="mirror lag", scopes=(Scope.MIRROR,), judge=lag),
    Rule(name="other topics", scopes=(Scope.MIRROR,), judge=other_topics),
    Rule(name="read again", scopes=(Scope.TARGET,), judge=read_again),
    Rule(name="group sync", scopes=(Scope.TARGET,), judge=synchronised),
)
