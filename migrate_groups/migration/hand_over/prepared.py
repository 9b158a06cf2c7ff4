"""The plan of a hand-over that is made while the source group may still run, and the facts from which it was made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from migrate_groups.clock import Clock
from migrate_groups.errors import UsageError
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.migration.barrier import Barrier, barrier_for, barrier_of
from migrate_groups.migration.clusters import Clusters, Mirror, one_cluster
from migrate_groups.migration.hand_over.knowledge import Knowledge, ends_of_live
from migrate_groups.migration.hand_over.last_seen import LastCommitted
from migrate_groups.migration.journal import Journal, read_journal
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.hints import hidden_topics_named
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.migration.reading.survey import EarlyGroups, permissions_unless_hidden, survey
from migrate_groups.migration.reading.take import Reading, TopicsToRead, check_visible, read_group
from migrate_groups.model.permissions import Acls, Resource, ResourceType
from migrate_groups.planning.change import Change
from migrate_groups.planning.check import Check
from migrate_groups.planning.checks.application import Applications, AppPrincipal, check_groups, read_by
from migrate_groups.planning.checks.facts import HandOverFacts
from migrate_groups.planning.checks.live_source import LiveSource
from migrate_groups.planning.checks.permission import of_hand_over
from migrate_groups.planning.checks.registry import judge, planned
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.plan import Plan, Planned
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.planning.written_by import NOT_KNOWN, WrittenBy
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import SplitSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan to write offsets to target groups, and the facts from which it was made.

    - knowledge, reading: what is known of the source group, from before its stop and as it was just read.
    - wanted: the partitions and offsets to hand over, as they are named on the source group's cluster.
    - barrier: how to wait for commits of these groups before they are read for the last time.
    - source_barrier: the same on the source group's cluster if that is another one; otherwise it waits for nothing.
    - journal: what this run and others have claimed of these partitions.
    """

    knowledge: Knowledge
    reading: Reading
    wanted: Sequence[Change]
    planned: Planned
    barrier: Barrier
    source_barrier: Barrier
    journal: Journal

    @property
    def plan(self) -> Plan:
        """What would be written, with the verdict of every check."""
        return self.planned.plan

    @property
    def spec(self) -> SplitSpec:
        """The split: which target group gets which topics."""
        return self.knowledge.spec

    @property
    def moved(self) -> frozenset[str] | None:
        """The topics that the source group hands over; None if it hands over all of them."""
        return self.plan.source_topics if self.spec.stay else None

    @property
    def receipt(self) -> Receipt:
        """The record of the run so far."""
        return self.knowledge.receipt

    def of_run(self, receipt: Receipt) -> Prepared:
        """Return the same plan for another receipt with the same executions. A new receipt has a new id of the run."""
        journal = replace(self.journal, facts=replace(self.journal.facts, run=receipt.run))
        return replace(self, knowledge=replace(self.knowledge, receipt=receipt), journal=journal)

    def judged_by(self, checks: Iterable[Check]) -> Prepared:
        """Return the same plan with these checks added."""
        return replace(self, planned=replace(self.planned, plan=self.plan.with_checks(checks)))

    def rows(self) -> Iterator[Row]:
        """Yield a snapshot row for each partition of a target group, with the offset that the group is to get.

        The offset is None if the source group has none; the option ``on_uncommitted`` then decides where to start.
        """
        look, bounds = self.reading.observed, self.planned.bounds
        for each in self.planned.changes:
            log = bounds.get(each.topic_partition)
            yield Row(
                cluster_id=each.cluster_id,
                taken_at=self.reading.taken_at,
                group=each.group,
                source_group=each.source_group,
                group_state=look.description.state,
                group_type="share" if each.is_share else look.description.group_type,
                topic=each.topic,
                topic_id=each.topic_id,
                partition=each.partition,
                offset=each.start,
                leader_epoch=each.committed.leader_epoch if each.committed else None,
                metadata=each.committed.metadata if each.committed else "",
                log_start_offset=log.start if log else None,
                log_end_offset=log.end if log else None,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """A plan to which the user has agreed before, with other groups of a fleet, and what was seen of the group since.

    - shown: the plan, whose baseline is saved.
    - topics: the topics of the source group's members since.
    - ran_until: the last reading in which the source group still ran; None if it was not seen running.
    """

    shown: Prepared
    topics: Collection[str] = ()
    ran_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateRequest:
    """The input of `migrate`, which hands over a source group's offsets to target groups.

    file: the split and the options of the write. run: the run directory. wait: seconds to wait for the source group to
    stop. hold: keep consumers out of the source group until the watch after the write is over. approved: name and
    content of the reviewed plan; None if no plan was reviewed. mirror: None if all groups are on one cluster. by: who
    writes. app_principals: the principals of the applications of the target groups, to check that they may read; each
    group is a target group. agreed: the plan to carry out; None: make one.
    """

    file: SplitFile
    run: RunDir
    wait: float = 600.0
    hold: bool = False
    approved: tuple[str, Plan] | None = None
    mirror: Mirror | None = None
    by: WrittenBy = NOT_KNOWN
    app_principals: Sequence[AppPrincipal] = ()
    agreed: Agreed | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` if ``hold`` is set and topics stay with the source group, or for a wrong principal."""
        check_groups(self.app_principals, {target.group for target in self.file.spec.targets})
        if self.hold and self.file.spec.stay:
            raise UsageError(
                "--hold would also stop the consumers of the topics that stay with the old group: drop --hold"
            )


def plan_hand_over(
    clusters: Clusters[GroupReader],
    known: Knowledge,
    reading: Reading,
    wanted: Sequence[Change],
    earlier: Planned | None = None,
    targets: EarlyGroups | None = None,
) -> Planned:
    """Return the plan to write offsets to the target groups, with the verdict of every check. Reads only.

    - known, reading: what is known of the source group, from before its stop and as it was just read.
    - wanted: the partitions and offsets to hand over.
    - earlier: a plan from before the source group stopped, whose permissions, topic names and offsets retention are
      used again on one cluster.
    - targets: the target groups on one cluster, if they were just read.
    """
    if clusters.mirror is not None:
        from migrate_groups.migration.hand_over.two_clusters import plan_move

        return plan_move(clusters.target, clusters.mirror, known, reading, wanted, is_stopped=earlier is not None)
    now = survey(clusters.target, wanted, earlier.facts if earlier else None, reading, early=targets)
    facts = HandOverFacts(survey=now, options=known.options, receipt=known.receipt, decided=wanted)
    plan = planned(Scope.HAND_OVER, facts.decided_by(now))
    return Planned(plan=plan, changes=wanted, bounds=reading.bounds, facts=now.cluster_facts)


def prepare(
    clusters: Clusters[GroupReader],
    wanted: MigrateRequest,
    receipt: Receipt,
    baseline: SnapshotTable | None,
    clock: Clock,
) -> Prepared:
    """Return the plan to show to the user while the source group may still run. Reads only.

    receipt: the record of the run so far. baseline: the source group's snapshot from an interrupted run, used if the
    group no longer exists.

    Raises `InvalidInput` if the spec does not cover the group's topics; `Refused` if the baseline can't be used;
    `GroupNotFound`.
    """
    spec, options = wanted.file.spec, wanted.file.options
    patterns = [pattern for target in spec.targets for pattern in target.topics]
    named_topics = {pattern.name for pattern in patterns if pattern.name is not None}
    targets = [target.group for target in spec.targets] if clusters.is_one else []
    written = [*targets, *([spec.source] if wanted.hold else [])]
    clusters = _for_one_phase(clusters)
    reader = clusters.source
    reader.describe_topics(None)  # one request for all topics, so that none is requested again below
    permissions_unless_hidden(reader, of_hand_over([spec.source], written, named_topics))
    check_visible(reader, spec.stay)
    known = receipt.hand_over_to_resume.source_topics if receipt.hand_over_to_resume else frozenset()
    # If all commits for a topic have expired since an interrupted run, only its receipt or baseline names the topic.
    expired = frozenset(topic for each in patterns for topic in each.matching(known))
    topics = TopicsToRead(also=expired, stay=spec.stay)
    if baseline is not None and not describe_group(reader, spec.source).exists:
        last = LastCommitted.of_baseline(baseline)
        last.refuse_unless_restorable(spec.source, options)
        topics = replace(topics, also=expired | {partition.topic for partition in last.committed})
        reading = read_group(reader, spec.source, clock, topics=topics, may_be_gone=True)
        last.forget_recreated(baseline, reading.observed.topics)
    else:
        reading = read_group(reader, spec.source, clock, topics=topics)
        last = LastCommitted.of_observation(reading.observed)
    knowledge = Knowledge(spec=spec, options=options, receipt=receipt, last=last, ends=ends_of_live(reading))
    with hidden_topics_named(reader):
        moved = knowledge.wanted(reading)
    planned = plan_hand_over(clusters, knowledge, reading, moved)
    at_source = [] if clusters.is_one else [each.topic_partition for each in moved]
    source_barrier = barrier_for(reader, {spec.source}, at_source, options.settle)
    barrier = barrier_of(clusters.target, planned.plan, is_target=not clusters.is_one)
    group = Resource(ResourceType.GROUP, spec.source)
    kept = reading.observed.topics.keys() - {each.topic for each in moved}
    live = LiveSource(
        group=reading.observed.description,
        principal=reader.principal,
        permitted=reader.permissions({group})[group],
        is_held=wanted.hold,
        kept=kept if spec.stay and clusters.is_one else None,
        settle=options.settle,
    )
    readers = read_by(wanted.app_principals, planned.changes)
    applications = Applications(readers=readers, acls=clusters.target.acls(readers) if readers else Acls())
    journal = read_journal(clusters, planned.plan, receipt, Verb.HAND_OVER)
    plan = planned.plan.with_checks(
        (
            *source_barrier.checks,
            *barrier.checks,
            *journal.checks,
            *judge(Scope.LIVE_SOURCE, live),
            *judge(Scope.APPLICATION, applications),
        )
    )
    # A running group may commit while offsets are translated. The final plan reads the group again.
    planned = replace(planned, plan=plan if clusters.is_one else plan.provisional(("not moved", "removed")))
    return Prepared(
        knowledge=knowledge,
        reading=reading,
        wanted=moved,
        planned=planned,
        barrier=barrier,
        source_barrier=source_barrier,
        journal=journal,
    )


def _for_one_phase(clusters: Clusters[GroupReader]) -> Clusters[GroupReader]:
    """Return the clusters with readers that remember topics and permissions while this plan is made."""
    target, mirror = for_one_phase(clusters.target), clusters.mirror
    if mirror is None:
        return one_cluster(target)
    source = for_one_phase(clusters.source)
    return Clusters(source, target, mirror._replace(source=mirror.source._replace(groups=source)))
