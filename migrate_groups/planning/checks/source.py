"""Checks of the source groups: they have stopped, and their committed offsets are as in the snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Set

from migrate_groups.errors import InvalidInput
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Change, Order
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import Facts, HandOverFacts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.text import counted, named, some

NO_SOURCE_GROUP = "no source group to compare with"
"""The reason of a check that does not apply because the offsets have no source group."""
LINGERS = "a killed member, or a closed static one, stays until its session timeout, 45 s by default"
"""What users must know about members, because until the session timeout no request distinguishes a member that was
killed from one that runs (docs/kafka-behaviour.md#members-and-states)."""
PENDING_NOT_TOLD = (
    "the brokers do not say whether a transactional commit is pending (OffsetFetch below version 7, KIP-447)"
)


def stopped(facts: HandOverFacts) -> Judgement:
    """Check that no member of a source group may still consume the topics that the group hands over.

    If a member may, the verdict is ``pending``, because the group may stop before the write. A source group that does
    not exist is refused. The option ``on_removed`` "restore" allows it, unless the group ran when the snapshot was
    taken, and this run has handed over nothing of it.
    """
    groups = facts.survey.groups
    topics: dict[str, set[str]] = defaultdict(set)
    for each in facts.wanted:
        if each.source_group is not None:
            topics[each.source_group].add(each.topic)
    missing = [group for group in topics if not groups[group].exists]
    handed_over = {each.source_group for each in facts.wanted if facts.receipt.source_offset(each) is not None}
    if ran := [group for group in missing if group in facts.ran and group not in handed_over]:
        return Verdict.REFUSE, (
            f"{named('source group', ran)} not found, and not stopped when the snapshot was taken, so it is not known "
            "where it stopped: check the name, or write the right offsets with rewind and apply"
        )
    if missing and facts.options.on_removed == "refuse":
        return Verdict.REFUSE, (
            f"{named('source group', missing)} not found: check the name, or pass --on-removed restore to write the "
            "last known offsets"
        )
    if reasons := live(groups, dict(sorted(topics.items()))):
        return Verdict.PENDING, f"{some(reasons, most=3)}; {facts.advice.still_running}"
    if not topics:
        return Verdict.NOT_APPLICABLE, NO_SOURCE_GROUP
    return Verdict.PASS, "no member is on the moved topics"


def lost_after_consuming(facts: Facts, read: Collection[Order]) -> str:
    """Return which offsets source groups have lost after they were seen to consume what they had handed over.

    Such a group may have committed a higher offset than the receipt has, which is lost too. Empty if there is none.
    read: the partitions of source groups whose committed offsets were read.
    """
    hand_over = facts.receipt.last_hand_over
    if hand_over is None or not hand_over.moved:
        return ""
    gone = {
        f"{source.group} {source.partition}"
        for partition in facts.receipt.to_restore.values()
        if partition.change.source_committed is not None
        for source in partition.handed_over_by
        # A group that does not exist any more has no partitions in the survey.
        if source.order in read and facts.survey.committed[source.group].get(source.partition) is None
    }
    if not gone:
        return ""
    return (
        f"{some(gone, 3)}: the committed offset expired or was deleted, and {hand_over.moved_in_words}; "
        "set the right one with rewind and apply"
    )


def running(group: GroupDescription, topics: Set[str] | None) -> list[str]:
    """Return why a group may still consume these topics; empty if the group has stopped. topics: None means any topic.

    Each reason completes a sentence that begins with the group's name. A group has stopped if it is Empty or does not
    exist. A Stable consumer group (classic or KIP-848) has stopped if no member is assigned or subscribed to
    ``topics``. A group in another state has not stopped.
    """
    if group.stopped or not group.exists:
        return []
    holders = holding(group, topics)
    if topics is None or not shows_topics(group):
        lead = f"is {group.state}" + (f" with {counted(len(holders), 'member')}" if holders else "")
    else:
        lead = f"has {counted(len(holders), 'member')} assigned or subscribed to {some(topics)}"
        if not holders:
            return []
    if holders:
        lead += f" ({some([describe_member(member) for member in holders], most=3)}; {LINGERS})"
    return [lead]


def live(groups: Mapping[str, GroupDescription], topics: Mapping[str, Collection[str] | None]) -> list[str]:
    """Return why groups may still consume topics, each with its name; empty if all have stopped.

    topics: by group; None means any topic.
    """
    return [
        f"{group} {reason}"
        for group, of_it in topics.items()
        for reason in running(groups[group], None if of_it is None else {*of_it})
    ]


def holding(group: GroupDescription, topics: Set[str] | None) -> tuple[Member, ...]:
    """Return the members that may consume these topics. topics: None means any topic.

    All members are returned if the description does not show which topics each member has.
    """
    if topics is None or not shows_topics(group):
        return group.members
    return tuple(member for member in group.members if may_consume(member, topics))


def may_consume(member: Member, topics: Set[str]) -> bool:
    """Return whether a member is assigned one of these topics, or subscribed to one by name or regular expression."""
    # Brokers match the expression again when topics are added, and assign the topics that it matches.
    return bool(subscribed(member, topics) & topics)


def subscribed(member: Member, topics: Collection[str]) -> frozenset[str]:
    """Return the topics that a member is assigned, or subscribed to by name or by regular expression.

    topics: the names to match against the expression (RE2, as in brokers since Kafka 4.0). An expression that RE2 can't
    parse matches all of them.
    """
    if not member.subscription_regex:
        return member.topics
    try:
        return member.topics.union(TopicPattern(member.subscription_regex, is_regex=True).matching(topics))
    except InvalidInput:
        return member.topics.union(topics)


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


def not_moved(facts: HandOverFacts) -> Judgement:
    """Check that the source groups' committed offsets are still those of the snapshot, with the same leader epochs.

    If an offset differs, the verdict is ``pending`` while a source group runs, and otherwise ``refuse``. Offsets that
    have expired or were deleted are not compared.
    """
    wanted, survey = facts.wanted, facts.survey
    # By source group and partition, because several target groups may get the same partition.
    moved: dict[tuple[str, TopicPartition], str] = {}
    compared, gone = set(), set()
    for each in wanted:
        if each.source_group is None:
            continue
        place = each.source_group, (partition := each.topic_partition)
        now = survey.committed[each.source_group].get(partition)
        if now is None and each.start is not None:
            gone.add(place)
            continue
        compared.add(place)
        if change := _change(each, now):
            moved[place] = f"{partition} {change}"
    if not compared:
        reason = "no committed offset of the snapshot is left to compare" if gone else NO_SOURCE_GROUP
        return Verdict.NOT_APPLICABLE, reason
    if not moved and gone:
        reason = f"{counted(len(compared), 'partition')} as in the snapshot, {len(gone):,} no longer has an offset"
        return Verdict.PASS, reason
    if not moved:
        return Verdict.PASS, "the source groups have the committed offsets of the snapshot"
    examples = some(moved.values(), most=3)
    runs = any(not survey.groups[each.source_group].stopped for each in wanted if each.source_group is not None)
    reason = (
        f"{counted(len(moved), 'committed offset')} moved since the snapshot: {examples}; "
        f"{'stop the group, and ' if runs else ''}{facts.advice.read_again}"
    )
    return (Verdict.PENDING if runs else Verdict.REFUSE), reason


def removed(facts: HandOverFacts) -> Judgement:
    """Check that no committed offset of the snapshot has expired in its source group, or was deleted from it.

    The option ``on_removed`` "restore" turns a refusal into a warning. Offsets that an interrupted run has handed over
    only cause a warning. Offsets can expire even in a live group (docs/kafka-behaviour.md#expiry).
    """
    wanted, committed = facts.wanted, facts.survey.committed
    compared = [
        (each, each.source_group) for each in wanted if each.source_group is not None and each.start is not None
    ]
    if not compared:
        has_source = any(each.source_group for each in wanted)
        reason = "the snapshot has no committed offset of a source group" if has_source else NO_SOURCE_GROUP
        return Verdict.NOT_APPLICABLE, reason
    missing = [each for each, source in compared if committed[source].get(each.topic_partition) is None]
    if not missing:
        return Verdict.PASS, "no committed offset has expired since the snapshot"
    gone = {(each.source_group, each.topic_partition): f"{each.topic_partition} at {each.start}" for each in missing}
    found = (
        f"{counted(len(gone), 'committed offset')} expired or deleted since the snapshot: {some(gone.values(), most=3)}"
    )
    new = any(facts.receipt.source_offset(each) != each.start for each in missing)
    if new and facts.options.on_removed == "refuse":
        # To restore these offsets is not the right advice if others have moved.
        is_moving = not_moved(facts)[0] is Verdict.PENDING
        restore = "pass --on-removed restore to hand over the offsets of the snapshot"
        return Verdict.REFUSE, f"{found}; {facts.advice.read_again if is_moving else restore}"
    return Verdict.WARN, f"{found}; handed over anyway"


def _change(wanted: Change, now: CommittedOffset | None) -> str:
    """Return how a source group's current committed offset differs from the wanted one; empty if it does not.

    now: None if neither the group nor the snapshot has an offset.
    """
    if now is None or now == wanted.committed:
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


def pending_commits(facts: HandOverFacts) -> Judgement | None:
    """Warn if the brokers can't say whether a transactional commit is pending (KIP-447). None if they can."""
    if facts.survey.cluster_facts.offers.tells_pending:
        return None
    return Verdict.WARN, (
        f"{PENDING_NOT_TOLD}: if an application commits in transactions, let them end before the stop, and keep settle "
        "at 10 s or more"
    )


_OF = (Scope.HAND_OVER, Scope.HAND_BACK, Scope.SOURCE)
RULES = (
    Rule(name="stopped", scopes=_OF, judge=stopped),
    Rule(name="not moved", scopes=_OF, judge=not_moved, depends_on=("topics",)),
    Rule(name="removed", scopes=_OF, judge=removed, depends_on=("topics", "not moved", "stopped")),
    Rule(name="pending commits", scopes=_OF, judge=pending_commits),
)
