"""Checks of the source groups: same cluster, same topics, stopped, and not moved since the snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check, Verdict
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.wanted import Wanted
from migrate_groups.text import counted, some

# No request distinguishes such a member from a live one (docs/kafka-behaviour.md#members-and-states).
_LINGERS = "one that was killed, or a static one that was closed, stays until its session timeout, 45 s by default"


def cluster(wanted: Sequence[Wanted], survey: Survey) -> Check:
    """The offsets were read on this cluster, because on another cluster the same offset is another record."""
    others = {each.cluster_id for each in wanted if each.cluster_id not in (None, survey.cluster_id)}
    if others:
        return Check.refused(
            "cluster", f"the file is from cluster {some(sorted(map(str, others)))}, this is {survey.cluster_id}"
        )
    if any(each.cluster_id is None for each in wanted):
        return Check.warned("cluster", "the file does not say which cluster its offsets are from")
    return Check.passed("cluster", f"the file is from this cluster, {survey.cluster_id}")


def hand_over(wanted: Sequence[Wanted]) -> Check:
    """Every offset has a source group. Warn about offsets without one; refuse where there are no offsets.

    Without a source group, no check looks for members that still consume.
    """
    sources = {each.source_group for each in wanted if each.source_group is not None}
    without = sum(each.source_group is None for each in wanted)
    if not wanted:
        return Check.refused("hand-over", "the file has no offsets")
    if without:
        return Check.warned(
            "hand-over", f"{counted(without, 'offset')} set without a source group: no old group is asked"
        )
    return Check.passed("hand-over", f"handed over by {some(sources)}")


def stopped(wanted: Sequence[Wanted], survey: Survey, options: WriteOptions) -> Check:
    """Every source group is Empty, or Stable with no member assigned or subscribed to the moved topics.

    A source group that does not exist is refused, unless ``vanished`` is ``restore``: it has no members either, and its
    last committed offsets are handed over.
    """
    topics: dict[str, set[str]] = defaultdict(set)
    for each in wanted:
        if each.source_group is not None:
            topics[each.source_group].add(each.topic)
    missing = [group for group in topics if not survey.groups[group].exists]
    if missing and options.vanished == "refuse":
        return Check.refused("stopped", f"source group {some(missing)} does not exist")
    reasons = [
        f"{group}: {reason}"
        for group, moved in sorted(topics.items())
        if group not in missing
        for reason in running(survey.groups[group], moved)
    ]
    if reasons:
        return Check.pending("stopped", some(reasons, most=3))
    return Check.passed("stopped", "no member has the moved topics" if topics else "no source group")


def running(group: GroupDescription, topics: set[str] | None) -> list[str]:
    """Return why a group may still consume these topics (None: any topic); empty where it has stopped.

    With topics given, a group counts as stopped only if it is Empty, or Stable without a member on them. In other
    states a KIP-848 member that is revoking a partition shows it nowhere and may still commit it, and classic members
    show no subscriptions (docs/kafka-behaviour.md#members-and-states). A Stable group that shows no members, or that is
    no consumer group, does not count as stopped either.
    """
    if group.stopped:
        return []
    if topics is None or group.state != "Stable" or not group.members or not group.is_consumer_group:
        holders = group.members
        lead = f"is {group.state}" + (f" with {counted(len(holders), 'member')}" if holders else "")
    else:
        holders = tuple(member for member in group.members if member.topics & topics)
        lead = f"{counted(len(holders), 'member')} still assigned or subscribed to {some(topics)}"
        if not holders:
            return []
    if holders:
        lead += f" ({some([describe_member(member) for member in holders], most=3)}; {_LINGERS})"
    return [lead]


def describe_member(member: Member) -> str:
    """Return a member's client id, host and static name, by which a person can find it, and its topics."""
    static = f", static {member.group_instance_id}" if member.group_instance_id else ""
    topics = f" on {some(member.topics, most=2)}" if member.topics else ""
    return f"{member.client_id or member.member_id} at {member.host.removeprefix('/')}{static}{topics}"


def not_moved(wanted: Sequence[Wanted], survey: Survey) -> Check:
    """The source groups' committed offsets are those of the snapshot. Offsets that are gone are left to `vanished`."""
    moved = {}  # by partition of a source: several targets may get the same one
    for each in wanted:
        if each.source_group is None:
            continue
        now = survey.committed[each.source_group].get(each.topic_partition)
        if now is not None and now.offset != each.offset:
            moved[each.source_group, each.topic_partition] = (
                f"{each.topic_partition} {_from_to(each.offset, now.offset)}"
            )
    if not moved:
        return Check.passed("not moved", "the source groups have the committed offsets of the snapshot")
    examples = some(moved.values(), most=3)
    reason = f"{counted(len(moved), 'partition')} moved since the snapshot: {examples}; take a new snapshot"
    live = any(not survey.groups[each.source_group].stopped for each in wanted if each.source_group is not None)
    return Check(name="not moved", verdict=Verdict.PENDING if live else Verdict.REFUSE, reason=reason)


def vanished(wanted: Sequence[Wanted], survey: Survey, options: WriteOptions, receipt: Receipt) -> Check:
    """The source groups still have the committed offsets of the snapshot.

    Offsets older than the retention expire as soon as no member subscribes to their topic, even in a live group
    (docs/kafka-behaviour.md#expiry). With ``vanished`` ``restore``, the offsets of the snapshot are handed over anyway.
    So are those that the resumed run has handed over already, whatever ``vanished`` says.
    """
    entries = receipt.hand_over.entries if receipt.hand_over else ()
    handed_over = {entry.change.order: entry.change.source_committed for entry in entries}
    missing = [
        each
        for each in wanted
        if each.source_group is not None
        and each.offset is not None
        and survey.committed[each.source_group].get(each.topic_partition) is None
    ]
    if not missing:
        return Check.passed("vanished", "no commit has expired since the snapshot")
    gone = {(each.source_group, each.topic_partition): f"{each.topic_partition} at {each.offset}" for each in missing}
    found = f"{counted(len(gone), 'commit')} gone since the snapshot, expired or deleted: {some(gone.values(), most=3)}"
    new = any(
        (known := handed_over.get((each.group, each.topic, each.partition))) is None or known.offset != each.offset
        for each in missing
    )
    if new and options.vanished == "refuse":
        return Check.refused("vanished", f"{found}; --vanished restore hands them over all the same")
    return Check.warned("vanished", f"{found}; handed over all the same")


def way_back(source: str, wanted: Sequence[Wanted], own: Collection[str], options: WriteOptions) -> Check:
    """Warn that a hand-back needs a stop of the source group, where topics stay with it.

    Brokers refuse offsets for a group with members. ``own``: all topics of the source group, moved or not.
    """
    stay = set(own) - {each.topic for each in wanted}
    if not stay:
        return Check.passed("way back", f"nothing stays with {source}")
    reason = (
        f"{some(stay)} stays with {source}: a hand-back needs all members of {source} to stop, for "
        f"{options.settle:g} s to settle, and the seconds that reading and writing take; a rollback before the new "
        "groups start does not"
    )
    return Check.warned("way back", reason)


def same_topics(wanted: Sequence[Wanted], survey: Survey) -> Check:
    """Every topic exists and has the id of the snapshot, because a recreated topic starts at offset 0 (KIP-516)."""
    gone = {each.topic for each in wanted if each.topic not in survey.topics}
    if gone:
        return Check.refused("topics", f"topic {some(gone)} does not exist")
    recreated = {each.topic for each in wanted if each.topic_id and each.topic_id != survey.topics[each.topic].topic_id}
    if recreated:
        return Check.refused("topics", f"topic {some(recreated)} was deleted and created again since the snapshot")
    return Check.passed("topics", f"{counted(len({each.topic for each in wanted}), 'topic')}, as in the snapshot")


def _from_to(before: int | None, now: int) -> str:
    return f"nothing → {now}" if before is None else f"{before} → {now} ({now - before:+,})"
