"""Checks of the groups that hand over: the same cluster and topics, stopped, and not moved since the snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from migrate_groups.cluster.ports import GroupDescription, Member
from migrate_groups.offsets.snapshot import Row
from migrate_groups.plan.plan import Check, Verdict
from migrate_groups.plan.survey import Survey
from migrate_groups.text import counted, some


def cluster(rows: Sequence[Row], survey: Survey) -> Check:
    """The offsets were read on this cluster: on another one the same offset is another record."""
    others = {row.cluster_id for row in rows if row.cluster_id not in (None, survey.cluster_id)}
    if others:
        return _refuse(
            "cluster", f"the file is from cluster {some(sorted(map(str, others)))}, this is {survey.cluster_id}"
        )
    if any(row.cluster_id is None for row in rows):
        return _warn("cluster", "the file does not say which cluster its offsets are from")
    return _passed("cluster", f"the file is from this cluster, {survey.cluster_id}")


def hand_over(rows: Sequence[Row]) -> Check:
    """Say where rows claim no source group: then nobody is asked whether somebody still consumes."""
    sources = {row.source_group for row in rows if row.source_group is not None}
    without = sum(row.source_group is None for row in rows)
    if without:
        return _warn("hand-over", f"{counted(without, 'offset')} set without a source group: no old group is asked")
    return _passed("hand-over", f"handed over by {some(sources)}")


def stopped(rows: Sequence[Row], survey: Survey) -> Check:
    """Every source group is Empty, or Stable with nobody assigned or subscribed to the moved topics."""
    topics: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.source_group is not None:
            topics[row.source_group].add(row.topic)
    missing = [group for group in topics if not survey.groups[group].exists]
    if missing:
        return _refuse("stopped", f"source group {some(missing)} does not exist")
    foreign = [group for group in topics if not survey.groups[group].is_consumer_group]
    if foreign:
        return _refuse("stopped", f"source group {some(foreign)} is not a consumer group: {_kind(survey, foreign)}")
    reasons = [
        f"{group}: {reason}"
        for group, moved in sorted(topics.items())
        for reason in running(survey.groups[group], moved)
    ]
    if reasons:
        return Check(name="stopped", verdict=Verdict.PENDING, reason=some(reasons, most=3))
    return _passed("stopped", "nobody holds the moved topics" if topics else "no source group")


def running(group: GroupDescription, topics: set[str] | None) -> list[str]:
    """Return why a group still consumes these topics (None: any); empty where it has stopped.

    By topic, any state but Stable and Empty means wait: KIP-848 members that are revoking show a topic nowhere and
    still commit it, and classic ones that rebalance show no subscriptions (measured).
    """
    if group.stopped:
        return []
    if topics is None or group.state != "Stable":
        holders = group.members
        lead = f"is {group.state} with {counted(len(holders), 'member')}"
    else:
        holders = tuple(member for member in group.members if member.topics & topics)
        lead = f"{counted(len(holders), 'member')} still assigned or subscribed to {some(topics)}"
        if not holders:
            return []
    return [lead + (f" ({some([describe_member(member) for member in holders], most=3)})" if holders else "")]


def describe_member(member: Member) -> str:
    """Return who a member is, in the words that a person can find it by."""
    static = f", static {member.group_instance_id}" if member.group_instance_id else ""
    return f"{member.client_id or member.member_id} at {member.host.removeprefix('/')}{static}"


def not_moved(rows: Sequence[Row], survey: Survey) -> Check:
    """What the source groups have committed is what the snapshot holds."""
    moved = []
    for row in rows:
        if row.source_group is None:
            continue
        now = survey.committed[row.source_group].get(row.topic_partition)
        if (now.offset if now else None) != row.offset:
            moved.append(f"{row.topic_partition} {_from_to(row.offset, now.offset if now else None)}")
    if not moved:
        return _passed("not moved", "the source groups stand where the snapshot saw them")
    reason = f"{counted(len(moved), 'partition')} moved since the snapshot: {some(moved, most=3)}; take a new snapshot"
    live = any(not survey.groups[row.source_group].stopped for row in rows if row.source_group is not None)
    return Check(name="not moved", verdict=Verdict.PENDING if live else Verdict.REFUSE, reason=reason)


def same_topics(rows: Sequence[Row], survey: Survey) -> Check:
    """Every topic exists, and is the one that the snapshot saw: a recreated one starts again at offset 0 (KIP-516)."""
    gone = {row.topic for row in rows if row.topic not in survey.topics}
    if gone:
        return _refuse("topics", f"topic {some(gone)} does not exist")
    recreated = {row.topic for row in rows if row.topic_id and row.topic_id != survey.topics[row.topic].topic_id}
    if recreated:
        return _refuse("topics", f"topic {some(recreated)} was deleted and created again since the snapshot")
    return _passed("topics", f"{counted(len({row.topic for row in rows}), 'topic')}, as in the snapshot")


def _from_to(before: int | None, now: int | None) -> str:
    if before is None or now is None:
        return f"{'nothing' if before is None else before} → {'nothing' if now is None else now}"
    return f"{before} → {now} ({now - before:+,})"


def _kind(survey: Survey, groups: Sequence[str]) -> str:
    kinds = {f"{survey.groups[group].group_type} {survey.groups[group].protocol_type}".strip() for group in groups}
    return some(kinds)


def _passed(name: str, reason: str) -> Check:
    return Check(name=name, verdict=Verdict.PASS, reason=reason)


def _warn(name: str, reason: str) -> Check:
    return Check(name=name, verdict=Verdict.WARN, reason=reason)


def _refuse(name: str, reason: str) -> Check:
    return Check(name=name, verdict=Verdict.REFUSE, reason=reason)
