"""Before the last reading of committed offsets, wait for commits that brokers have accepted and not replicated yet.

A coordinator appends a commit to the group's partition of ``__consumer_offsets``, and answers when all in-sync replicas
have it. Until then OffsetFetch does not return it. A later commit to the same partition is answered only after it
(docs/kafka-behaviour.md#commits-that-wait-for-replication).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from migrate_groups.errors import Refused, UsageError
from migrate_groups.migration.events import Events
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.migration.reading.stop_checkpoint import partitions_of_offsets_topic
from migrate_groups.model.answers import Answer
from migrate_groups.model.offsets_topic import log_partition, probe_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Resource, ResourceType
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.checks.barrier import Probes
from migrate_groups.planning.checks.registry import judge, of_target
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.plan import Plan
from migrate_groups.text import shell_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """How to wait for commits of groups on one cluster that brokers have accepted and not replicated yet.

    - probes: what is known of the probe groups, which are groups of this tool: one for each partition of
      ``__consumer_offsets`` that holds commits of the groups. None if there is no commit to wait for.
    - place: an existing partition for which the probe groups commit.
    - is_target: whether the check is named as that of the target groups in a move to another cluster.
    """

    probes: Probes | None = None
    place: TopicPartition | None = None
    is_target: bool = False

    @property
    def checks(self) -> tuple[Check, ...]:
        """The check ``barrier`` of the plan; empty if there is no commit to wait for."""
        checks = judge(Scope.BARRIER, self.probes) if self.probes is not None else ()
        return tuple(map(of_target, checks)) if self.is_target else checks

    def pass_through(self, writer: GroupWriter) -> tuple[Check, ...]:
        """Commit to the probe groups, wait for the answers, and return the check.

        If it passes, a reading that begins now returns every commit that coordinators accepted before this call.
        """
        probes, place = self.probes, self.place
        if probes is None or place is None or not probes.may_commit:
            return self.checks
        answers = writer.commit_probes(probes.groups, place)
        return replace(self, probes=replace(probes, answers=answers)).checks

    def remove(self, writer: GroupWriter, events: Events) -> None:
        """Delete the probe groups, after `pass_through` has passed. If one is left, tell the user."""
        for probe, answer in writer.delete_groups(self.probes.groups if self.probes else ()).items():
            if answer.answer is not Answer.WRITTEN and answer.error != "GROUP_ID_NOT_FOUND":
                delete = shell_command("delete-group", [probe])
                events.said(f"group {probe} may be left ({answer.error}), which does no harm: migrate-groups {delete}")
                return


def barrier_of(reader: GroupReader, plan: Plan, *, is_target: bool = False) -> Barrier:
    """Return how to wait for commits of the groups of a plan. Reads only.

    is_target: see `Barrier`.
    """
    groups = {group for change in plan.changes for group in (change.group, change.source_group) if group is not None}
    barrier = barrier_for(reader, groups, [change.topic_partition for change in plan.changes], plan.options.settle)
    return replace(barrier, is_target=is_target)


def barrier_for(
    reader: GroupReader, groups: Collection[str], partitions: Collection[TopicPartition], settle: float
) -> Barrier:
    """Return how to wait for commits of groups for these partitions. Reads only.

    Its check warns if the tool can't wait, or refuses if ``settle`` is short as well.
    """
    place = _existing_partition(reader, partitions) if partitions else None
    # Without a topic that exists, there is no commit to wait for: a topic is deleted with its committed offsets.
    if not groups or place is None:
        return Barrier()
    number = len(partitions_of_offsets_topic(reader))
    if not number:
        return Barrier(probes=Probes(principal=reader.principal, settle=settle), place=place)
    probes = tuple(probe_group(each, number) for each in sorted({log_partition(group, number) for group in groups}))
    permissions = reader.permissions([Resource(ResourceType.GROUP, probe) for probe in probes])
    found = Probes(principal=reader.principal, groups=probes, permissions=permissions, settle=settle)
    return Barrier(probes=found, place=place)


@contextmanager
def after_barrier(writer: GroupWriter, barrier: Barrier, events: Events) -> Iterator[tuple[Check, ...]]:
    """Wait until all commits that coordinators have accepted are readable; then run the ``with`` block.

    The block gets the check, reads the committed offsets and writes. Afterwards the probe groups are deleted. Raises
    `Refused` if it is not known whether all commits are readable.
    """
    with events.working("waiting for the replicas of commits"):
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


def _existing_partition(reader: GroupReader, partitions: Collection[TopicPartition]) -> TopicPartition | None:
    topics = reader.describe_topics({each.topic for each in partitions})
    return next(
        (each for each in partitions if each.topic in topics and each.partition in topics[each.topic].partitions), None
    )
