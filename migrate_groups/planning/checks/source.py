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

# Until the session timeout, no request distinguishes a member that was killed from one that runs
# (docs/kafka-behaviour.md#members-and-states).
_LINGERS = "one that was killed, or a static one that was closed, stays until its session timeout, 45 s by default"


def cluster(wanted: Sequence[Wanted], survey: Survey) -> Check:
    """Check that the offsets were read on this cluster, because elsewhere the same offset is another record."""
    others = {each.cluster_id for each in wanted if each.cluster_id not in (None, survey.cluster_id)}
    if others:
        return Check.refused(
            "cluster", f"the file is from cluster {some(sorted(map(str, others)))}, this is {survey.cluster_id}"
        )
    if any(each.cluster_id is None for each in wanted):
        return Check.warned("cluster", "the file does not say which cluster its offsets are from")
    return Check.passed("cluster", f"the file is from this cluster, {survey.cluster_id}")


def hand_over(wanted: Sequence[Wanted]) -> Check:
    """Check that every offset has a source group: warn about offsets without one; refuse if there are no offsets.

    Where an offset has no source group, no check can tell whether a group still consumes the partition.
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
    """Check that every source group is Empty, or Stable with no member assigned or subscribed to the moved topics.

    A source group that does not exist is refused, unless the option ``vanished`` is ``restore``: a group that does not
    exist has no members, and its last known committed offsets are handed over.
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

    A group has stopped if it is Empty; or, with topics given, if it is Stable without a member on them. In other
    states, a description does not show the partitions that a KIP-848 member is revoking and may still commit, nor the
    subscriptions of classic members (docs/kafka-behaviour.md#members-and-states). A Stable group that shows no members,
    or that is no consumer group, has not stopped.
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
    """Check that the source groups' committed offsets are still those of the snapshot.

    Offsets that have expired since, or were deleted, are checked by `vanished`.
    """
    moved = {}  # by source group and partition, because several target groups may get the same partition
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
    """Check that no committed offset of the snapshot has expired in its source group, or was deleted from it.

    Offsets older than the retention expire as soon as no member subscribes to their topic, even in a live group
    (docs/kafka-behaviour.md#expiry). With ``vanished`` ``restore``, the offsets of the snapshot are handed over anyway.
    Offsets that the resumed run has handed over already are never refused here.
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
    """If topics stay with the source group, warn that a later hand-back requires all its members to stop.

    The reason is that brokers refuse offsets for a group with members. ``own``: all topics of the source group, moved
    or not.
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
    """Check that every topic exists and has the topic id of the snapshot (KIP-516).

    A topic that was deleted and created again starts at offset 0, so the offsets of the snapshot do not apply to it.
    """
    gone = {each.topic for each in wanted if each.topic not in survey.topics}
    if gone:
        return Check.refused("topics", f"topic {some(gone)} does not exist")
    recreated = {each.topic for each in wanted if each.topic_id and each.topic_id != survey.topics[each.topic].topic_id}
    if recreated:
        return Check.refused("topics", f"topic {some(recreated)} was deleted and created again since the snapshot")
    return Check.passed("topics", f"{counted(len({each.topic for each in wanted}), 'topic')}, as in the snapshot")


def _from_to(before: int | None, now: int) -> str:
    return f"nothing → {now}" if before is None else f"{before} → {now} ({now - before:+,})"
