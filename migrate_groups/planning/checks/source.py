"""Checks of the source groups: they have stopped, and cluster, topics and committed offsets are as in the snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence, Set

from migrate_groups.errors import InvalidInput
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.topics import is_same_topic
from migrate_groups.planning.change import Change
from migrate_groups.planning.checks.advice import Advice
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check, Verdict
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.survey import Survey
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.text import counted, did_you_mean, named, some

NO_SOURCE_GROUP = "no source group to compare with"
"""The reason of a check that does not apply because the offsets have no source group."""
# Until the session timeout, no request distinguishes a member that was killed from one that runs
# (docs/kafka-behaviour.md#members-and-states).
_LINGERS = "a killed member, or a closed static one, stays until its session timeout, 45 s by default"


def cluster(wanted: Sequence[Change], cluster_id: str, advice: Advice) -> Check:
    """Check that the offsets were read on this cluster, because elsewhere the same offset is another record.

    The verdict is ``not known`` if an offset names no cluster. cluster_id: the id of this cluster.
    """
    others = {each.cluster_id for each in wanted if each.cluster_id not in (None, cluster_id)}
    if others:
        return Check.refused(
            "cluster",
            f"the offsets are from {named('cluster', [*map(str, others)])}, this is {cluster_id}: "
            f"check --bootstrap-server, or {advice.read_again}",
        )
    if any(each.cluster_id is None for each in wanted):
        return Check.not_known(
            "cluster", f"the file names no cluster: make sure that its offsets are from this one, {cluster_id}"
        )
    if not wanted:
        return Check.not_applicable("cluster", f"no offset to compare with this cluster, {cluster_id}")
    return Check.passed("cluster", f"the offsets are from this cluster, {cluster_id}")


def hand_over(wanted: Sequence[Change], advice: Advice) -> Check:
    """Check that every partition is handed over by a source group, to only one target group.

    The check warns if an offset has no source group, or if several target groups get the same partition from one
    source group. It refuses if there are no offsets.
    """
    if not wanted:
        return Check.refused("hand-over", f"the file has no offsets to write: {advice.read_again}")
    takers: dict[tuple[str, TopicPartition], set[str]] = defaultdict(set)
    for each in wanted:
        if each.source_group is not None:
            takers[each.source_group, each.topic_partition].add(each.group)
    warnings = []
    if without := sum(each.source_group is None for each in wanted):
        warnings.append(f"{counted(without, 'offset')} without a source group, so no old group is checked")
    if shared := [f"{partition} ({some(groups)})" for (_, partition), groups in takers.items() if len(groups) > 1]:
        go, their = ("goes", "its") if len(shared) == 1 else ("go", "their")
        warnings.append(
            f"{counted(len(shared), 'partition')} {go} to several groups, each of which processes {their} records: "
            f"{some(shared, most=3)}"
        )
    if warnings:
        return Check.warned("hand-over", "; ".join(warnings))
    return Check.passed("hand-over", f"handed over by {some({source for source, _ in takers})}")


def stopped(wanted: Sequence[Change], survey: Survey, options: WriteOptions, advice: Advice) -> Check:
    """Check that no member of a source group may still consume the topics that the group hands over.

    If a member may, the verdict is ``pending``, because the group may stop before the write. A source group that does
    not exist is refused. The option ``vanished`` "restore" allows it.
    """
    topics: dict[str, set[str]] = defaultdict(set)
    for each in wanted:
        if each.source_group is not None:
            topics[each.source_group].add(each.topic)
    missing = [group for group in topics if not survey.groups[group].exists]
    if missing and options.vanished == "refuse":
        return Check.refused(
            "stopped",
            f"{named('source group', missing)} not found: check the name, or pass --vanished restore to write the last "
            "known offsets",
        )
    reasons = [
        f"{group} {reason}"
        for group, moved in sorted(topics.items())
        if group not in missing
        for reason in running(survey.groups[group], moved)
    ]
    if reasons:
        return Check.pending("stopped", f"{some(reasons, most=3)}; {advice.still_running}")
    if not topics:
        return Check.not_applicable("stopped", NO_SOURCE_GROUP)
    return Check.passed("stopped", "no member is on the moved topics")


def running(group: GroupDescription, topics: Set[str] | None) -> list[str]:
    """Return why a group may still consume these topics; empty if the group has stopped. topics: None means any topic.

    Each reason completes a sentence that begins with the group's name. An Empty group has stopped. A Stable consumer
    group (classic or KIP-848) has stopped if no member is assigned or subscribed to ``topics``. A group in another
    state has not stopped.
    """
    if group.stopped:
        return []
    holders = holding(group, topics)
    if topics is None or not shows_topics(group):
        lead = f"is {group.state}" + (f" with {counted(len(holders), 'member')}" if holders else "")
    else:
        lead = f"has {counted(len(holders), 'member')} assigned or subscribed to {some(topics)}"
        if not holders:
            return []
    if holders:
        lead += f" ({some([describe_member(member) for member in holders], most=3)}; {_LINGERS})"
    return [lead]


def holding(group: GroupDescription, topics: Set[str] | None) -> tuple[Member, ...]:
    """Return the members that may consume these topics. topics: None means any topic.

    All members are returned if the description does not show which topics each member has.
    """
    if topics is None or not shows_topics(group):
        return group.members
    return tuple(member for member in group.members if may_consume(member, topics))


def may_consume(member: Member, topics: Set[str]) -> bool:
    """Return whether a member is assigned one of these topics, or subscribed to one by name or regular expression.

    The result is True if RE2 can't parse the expression, because it may match any topic.
    """
    if member.topics & topics:
        return True
    # Brokers match the expression again when topics are added, and assign the topics that it matches.
    try:
        return bool(
            member.subscription_regex and TopicPattern(member.subscription_regex, is_regex=True).matching(topics)
        )
    except InvalidInput:
        return True


def shows_topics(group: GroupDescription) -> bool:
    """Return whether a group's description shows which member has which topics: the group is Stable and has members."""
    # Other states hide partitions that a KIP-848 member is revoking, and subscriptions of classic members.
    return group.state == "Stable" and bool(group.members) and group.is_consumer_group


def describe_member(member: Member) -> str:
    """Return a text that identifies a member for users: client id, host, ``group.instance.id``, topics and regex."""
    static = f", static {member.group_instance_id}" if member.group_instance_id else ""
    topics = f" on {some(member.topics, most=2)}" if member.topics else ""
    regex = f" subscribed to regex {member.subscription_regex}" if member.subscription_regex else ""
    return f"{member.client_id or member.member_id} at {member.host.removeprefix('/')}{static}{topics}{regex}"


def not_moved(wanted: Sequence[Change], survey: Survey, advice: Advice) -> Check:
    """Check that the source groups' committed offsets are still those of the snapshot, with the same leader epochs.

    If an offset differs, the verdict is ``pending`` while a source group runs, and otherwise ``refuse``. Offsets that
    have expired or were deleted are not compared.
    """
    # By source group and partition, because several target groups may get the same partition.
    changes: dict[tuple[str, TopicPartition], str] = {}
    gone = set()
    for each in wanted:
        if each.source_group is None:
            continue
        now = survey.committed[each.source_group].get(each.topic_partition)
        if now is None and each.start is not None:
            gone.add((each.source_group, each.topic_partition))
        else:
            changes[each.source_group, each.topic_partition] = _change(each, now)
    moved = {place: f"{place[1]} {change}" for place, change in changes.items() if change}
    if not changes:
        reason = "no committed offset of the snapshot is left to compare" if gone else NO_SOURCE_GROUP
        return Check.not_applicable("not moved", reason)
    if not moved and gone:
        reason = f"{counted(len(changes), 'partition')} as in the snapshot, {len(gone):,} no longer has an offset"
        return Check.passed("not moved", reason)
    if not moved:
        return Check.passed("not moved", "the source groups have the committed offsets of the snapshot")
    examples = some(moved.values(), most=3)
    live = any(not survey.groups[each.source_group].stopped for each in wanted if each.source_group is not None)
    reason = (
        f"{counted(len(moved), 'committed offset')} moved since the snapshot: {examples}; "
        f"{'stop the group, and ' if live else ''}{advice.read_again}"
    )
    return Check(name="not moved", verdict=Verdict.PENDING if live else Verdict.REFUSE, reason=reason)


def vanished(
    wanted: Sequence[Change], survey: Survey, options: WriteOptions, receipt: Receipt, instead: str = ""
) -> Check:
    """Check that no committed offset of the snapshot has expired in its source group, or was deleted from it.

    The option ``vanished`` "restore" turns a refusal into a warning. Offsets that an interrupted run has handed over
    only cause a warning. Offsets can expire even in a live group (docs/kafka-behaviour.md#expiry). instead: what to do,
    if restoring these offsets is not the right advice because others have moved.
    """
    compared = [
        (each, each.source_group) for each in wanted if each.source_group is not None and each.start is not None
    ]
    if not compared:
        has_source = any(each.source_group for each in wanted)
        reason = "the snapshot has no committed offset of a source group" if has_source else NO_SOURCE_GROUP
        return Check.not_applicable("vanished", reason)
    missing = [each for each, source in compared if survey.committed[source].get(each.topic_partition) is None]
    if not missing:
        return Check.passed("vanished", "no committed offset has expired since the snapshot")
    gone = {(each.source_group, each.topic_partition): f"{each.topic_partition} at {each.start}" for each in missing}
    found = (
        f"{counted(len(gone), 'committed offset')} expired or deleted since the snapshot: {some(gone.values(), most=3)}"
    )
    new = any(receipt.source_offset(each) != each.start for each in missing)
    if new and options.vanished == "refuse":
        help_ = instead or "pass --vanished restore to hand over the offsets of the snapshot"
        return Check.refused("vanished", f"{found}; {help_}")
    return Check.warned("vanished", f"{found}; handed over anyway")


def way_back(source: str, wanted: Sequence[Change], source_topics: Collection[str], options: WriteOptions) -> Check:
    """Warn if the source group keeps some topics: a later hand-back of the others requires all its members to stop.

    wanted: the partitions that are handed over. source_topics: all topics of the source group.
    """
    stay = set(source_topics) - {each.topic for each in wanted}
    if not stay:
        return Check.passed("way back", f"{source} keeps no topic")
    reason = (
        f"{source} keeps {named('topic', stay)}: for a hand-back, all its members must stop, for "
        f"{options.settle:g} s and the time to read and write; a rollback before the new groups start needs no stop"
    )
    return Check.warned("way back", reason)


def same_topics(wanted: Sequence[Change], survey: Survey, advice: Advice) -> Check:
    """Check that every topic exists and has the topic id of the snapshot (KIP-516).

    The offsets of the snapshot do not apply to a topic that was deleted and created again. The verdict is ``not known``
    if the snapshot or the brokers (before Kafka 2.8) do not name the id of a topic.
    """
    gone = {each.topic for each in wanted if each.topic not in survey.topics}
    if gone:
        hint = did_you_mean(gone, survey.cluster_facts.topic_names) or (
            "leave deleted topics out with filter --exclude-topic"
        )
        return Check.refused("topics", f"{named('topic', gone)} not found: {hint}")
    same = {(each.topic, is_same_topic(each.topic_id, survey.topics[each.topic].topic_id)) for each in wanted}
    if recreated := {topic for topic, is_same in same if is_same is False}:
        return Check.refused(
            "topics", f"{named('topic', recreated)} deleted and created again since the snapshot: {advice.read_again}"
        )
    if unknown := {topic for topic, is_same in same if is_same is None}:
        reason = (
            f"the id of {named('topic', unknown)} is not known, so a topic that was deleted and created again is not "
            "recognised: make sure that none was"
        )
        return Check.not_known("topics", reason)
    if not same:
        return Check.not_applicable("topics", "no topic to compare")
    return Check.passed("topics", f"{counted(len(same), 'topic')}, as in the snapshot")


def _change(wanted: Change, now: CommittedOffset | None) -> str:
    """Return how a source group's current committed offset differs from the wanted one; empty if it does not.

    now: None if neither the group nor the snapshot has an offset.
    """
    if now is None:
        return ""
    if wanted.start is None:
        return f"no offset → {now.offset}"
    if wanted.start != now.offset:
        return f"{wanted.start} → {now.offset} ({now.offset - wanted.start:+,})"
    # A written epoch above the current one would stop a Java consumer (docs/kafka-behaviour.md#logs).
    epoch = wanted.committed.leader_epoch if wanted.committed else None
    if epoch is None or epoch == now.leader_epoch:
        return ""
    return f"at {now.offset}, leader epoch {epoch} → {'none' if now.leader_epoch is None else now.leader_epoch}"
