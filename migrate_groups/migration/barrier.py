"""Before the last reading of committed offsets, wait for commits that brokers have accepted and not replicated yet.

A coordinator appends a commit to the group's partition of ``__consumer_offsets``, and answers when all in-sync replicas
have it. Until then OffsetFetch does not return it. A later commit to the same partition is answered only after it
(docs/kafka-behaviour.md#commits-that-wait-for-replication).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from migrate_groups.errors import NotAuthorized, Refused, UsageError
from migrate_groups.migration.events import Events
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.migration.prepare import refuse_forbidden
from migrate_groups.migration.progress import not_known
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, log_partition, probe_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Resource, ResourceType
from migrate_groups.planning.checks.barrier import NAME, can_wait, cannot_wait, may_commit, not_answered
from migrate_groups.planning.plan import Check, Plan, Verdict
from migrate_groups.text import shell_command, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """How to wait for commits of groups on one cluster that brokers have accepted and not replicated yet.

    - probes: for each partition of ``__consumer_offsets`` that holds commits of the groups, the name of a group of this
      tool whose commits go to the same partition; empty if the tool can't wait.
    - place: an existing partition for which the probe groups commit.
    - checks: the check of the plan, whose name is ``name``; empty if there is no commit to wait for.
    """

    probes: tuple[str, ...] = ()
    place: TopicPartition | None = None
    checks: tuple[Check, ...] = ()
    settle: float
    name: str = NAME

    def pass_through(self, writer: GroupWriter) -> tuple[Check, ...]:
        """Commit to the probe groups, wait for the answers, and return the check.

        If it passes, a reading that begins now returns every commit that coordinators accepted before this call.
        """
        if not self.probes or self.place is None:
            return self.checks
        return (replace(self._judged(writer.commit_probes(self.probes, self.place)), name=self.name),)

    def _judged(self, answers: Mapping[str, WriteAnswer]) -> Check:
        failed = {
            kind: [f"{probe} ({each.error})" for probe, each in answers.items() if each.answer is kind]
            for kind in (Answer.REFUSED, Answer.UNKNOWN)
        }
        if refused := failed[Answer.REFUSED]:
            return cannot_wait(f"a broker refused the commit to {some(refused)}", self.settle, "see its log")
        if unknown := failed[Answer.UNKNOWN]:
            return not_answered(f"no answer to the commit to {some(unknown)}")
        waited = f"no accepted commit waited for a replica when the offsets were read, as {some(self.probes)} showed"
        return Check.passed(NAME, waited)

    def remove(self, writer: GroupWriter, events: Events) -> None:
        """Delete the probe groups, after `pass_through` has passed. If one is left, tell the user."""
        for probe in self.probes:
            answer = writer.delete_group(probe)
            if answer.answer is not Answer.WRITTEN and answer.error != "GROUP_ID_NOT_FOUND":
                delete = shell_command("delete-group", [probe])
                events.said(f"group {probe} may be left ({answer.error}), which does no harm: migrate-groups {delete}")
                return


def barrier_of(reader: GroupReader, plan: Plan, name: str = NAME) -> Barrier:
    """Return how to wait for commits of the groups of a plan. Reads only.

    name: see `barrier_for`. Raises `ClusterUnavailable`.
    """
    groups = {group for change in plan.changes for group in (change.group, change.source_group) if group is not None}
    return barrier_for(reader, groups, [change.topic_partition for change in plan.changes], plan.options.settle, name)


def barrier_for(
    reader: GroupReader,
    groups: Collection[str],
    partitions: Collection[TopicPartition],
    settle: float,
    name: str = NAME,
) -> Barrier:
    """Return how to wait for commits of groups for these partitions. Reads only.

    name: the name of the check in the result. The check warns if the tool can't wait, or refuses if ``settle`` is short
    as well. Raises `ClusterUnavailable`.
    """
    principal = reader.principal
    place = _existing_partition(reader, partitions) if partitions else None
    # Without a topic that exists, there is no commit to wait for: a topic is deleted with its committed offsets.
    if not groups or place is None:
        return Barrier(settle=settle, name=name)
    number = _number_of_partitions(reader)
    if not number:
        hidden = f"{principal} may not describe Topic {OFFSETS_TOPIC!r}"
        check = cannot_wait(hidden, settle, f"grant Describe on Topic {OFFSETS_TOPIC!r}")
        return Barrier(checks=(replace(check, name=name),), settle=settle, name=name)
    probes = tuple(probe_group(each, number) for each in sorted({log_partition(group, number) for group in groups}))
    permissions = reader.permissions([Resource(ResourceType.GROUP, probe) for probe in probes])
    checks = (replace(can_wait(principal, probes, permissions, settle), name=name),)
    if not may_commit(probes, permissions):
        return Barrier(checks=checks, settle=settle, name=name)
    return Barrier(probes=probes, place=place, checks=checks, settle=settle, name=name)


@contextmanager
def after_barrier(writer: GroupWriter, barrier: Barrier, events: Events) -> Iterator[tuple[Check, ...]]:
    """Wait until all commits that coordinators have accepted are readable; then run the ``with`` block.

    The block gets the check, reads the committed offsets and writes. Afterwards the probe groups are deleted. Raises
    `Refused` if it is not known whether all commits are readable.
    """
    with events.working("waiting for the replicas of commits", not_known):
        checks = barrier.pass_through(writer)
    refuse_forbidden([check for check in checks if check.verdict in (Verdict.PENDING, Verdict.REFUSE)])
    has_passed = any(check.verdict is Verdict.PASS for check in checks)
    try:
        yield checks
    except (Refused, UsageError):
        if has_passed:
            barrier.remove(writer, events)
        raise
    # After any other error the brokers may not answer, and the user should not wait for a group that does no harm.
    if has_passed:
        barrier.remove(writer, events)


def _number_of_partitions(reader: GroupReader) -> int:
    """Return the number of partitions of ``__consumer_offsets``; 0 if the principal may not describe the topic."""
    try:
        described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
    except NotAuthorized:
        return 0
    return len(described.partitions) if described else 0


def _existing_partition(reader: GroupReader, partitions: Collection[TopicPartition]) -> TopicPartition | None:
    topics = reader.describe_topics({each.topic for each in partitions})
    return next(
        (each for each in partitions if each.topic in topics and each.partition in topics[each.topic].partitions), None
    )
