"""The steps before the write: provisional plan, wait for the source group to stop, final offsets, final plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from migrate_groups.clock import Clock
from migrate_groups.errors import GroupNotFound, InvalidInput, PendingCommits, Refused
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.clusters import Clusters, Planned
from migrate_groups.migration.hand_over.knowledge import AllWanted, Knowledge, ends_of_live
from migrate_groups.migration.hand_over.last_seen import EndsWhileConsumed, LastCommitted
from migrate_groups.migration.prepare import refuse_forbidden
from migrate_groups.migration.reading.survey import permissions_unless_hidden
from migrate_groups.migration.reading.take import ObservedGroup, Reading, TopicsToRead, check_visible, read_group
from migrate_groups.migration.stop import Wait, prove_stopped
from migrate_groups.mirrors.place import Status
from migrate_groups.model.permissions import Resource, ResourceType
from migrate_groups.planning.checks.hold import can_be_held
from migrate_groups.planning.checks.permission import of_hand_over
from migrate_groups.planning.checks.source import way_back
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.planning.translation import Translated
from migrate_groups.snapshots.snapshot import Row, SnapshotTable
from migrate_groups.snapshots.split import SplitSpec
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, named, some

_MIRROR_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan with what it was made from."""

    wanted: AllWanted
    planned: Planned

    @property
    def plan(self) -> Plan:
        """What would be written, with the verdict of every check."""
        return self.planned.plan

    @property
    def spec(self) -> SplitSpec:
        """The split: which target group gets which topics."""
        return self.wanted.knowledge.spec

    @property
    def receipt(self) -> Receipt:
        """The record of the run so far."""
        return self.wanted.knowledge.receipt

    @property
    def reading(self) -> Reading:
        """The source group's description, committed offsets and log ranges."""
        return self.wanted.reading

    def rows(self) -> Iterator[Row]:
        """Yield a snapshot row for each partition of a target group, with the offset that the group is to get.

        The offset is None if the option ``uncommitted`` decides.
        """
        look, bounds = self.reading.observed, self.planned.bounds
        for each in self.planned.written:
            log = bounds.get(each.topic_partition)
            yield Row(
                cluster_id=each.cluster_id,
                taken_at=self.reading.taken_at,
                group=each.group,
                source_group=each.source_group,
                group_state=look.description.state,
                group_type=look.description.group_type,
                topic=each.topic,
                topic_id=each.topic_id,
                partition=each.partition,
                offset=each.offset,
                leader_epoch=each.committed.leader_epoch if each.committed else None,
                metadata=each.committed.metadata if each.committed else "",
                log_start_offset=log.start if log else None,
                log_end_offset=log.end if log else None,
            )


def prepare(
    clusters: Clusters,
    spec: SplitSpec,
    options: WriteOptions,
    clock: Clock,
    receipt: Receipt = NOTHING_WRITTEN,
    baseline: SnapshotTable | None = None,
    *,
    hold: bool = False,
) -> Prepared:
    """Return the provisional plan, from the source group's current committed offsets. Reads only.

    The source group may still run; the plan is made again once it has stopped (`CutOver`).

    spec: the split: which topics of the source group each target group gets.
    receipt: the record of the run so far.
    baseline: the source group's snapshot from an interrupted run; None if there is none. It is used if the group no
    longer exists because all its offsets have expired.
    hold: also check whether this tool can join the stopped source group to keep consumers out.

    Raises `InvalidInput` if the spec does not cover the group's topics; `GroupNotFound`; `Refused` if the group no
    longer exists and the baseline can't replace it; and the errors of `GroupReader`.
    """
    patterns = [pattern for target in spec.targets for pattern in target.topics]
    named_topics = {pattern.name for pattern in patterns if pattern.name is not None}
    targets = [] if clusters.elsewhere else [target.group for target in spec.targets]
    written = [*targets, *([spec.source] if hold else [])]
    clusters = clusters.for_one_phase()
    reader = clusters.source
    reader.describe_topics(None)  # one request for all topics, so that none is requested again below
    permissions_unless_hidden(reader, of_hand_over([spec.source], written, named_topics))
    check_visible(reader, spec.stay)
    known = receipt.hand_over.source_topics if receipt.hand_over else frozenset()
    # If all commits for a topic have expired since an interrupted run, only its receipt or baseline names the topic.
    expired = frozenset(topic for each in patterns for topic in each.matching(known))
    topics = TopicsToRead(also=expired, stay=spec.stay)
    if baseline is not None and not reader.describe_group(spec.source).exists:
        last = LastCommitted.of_baseline(baseline)
        last.refuse_unless_restorable(spec.source, options)
        topics = replace(topics, also=expired | {partition.topic for partition in last.committed})
        reading = read_group(reader, spec.source, clock, topics=topics, may_be_gone=True)
    else:
        reading = read_group(reader, spec.source, clock, topics=topics)
        last = LastCommitted.of_observation(reading.observed)
    knowledge = Knowledge(spec=spec, options=options, receipt=receipt, last=last, ends=ends_of_live(reading))
    wanted = knowledge.wanted(reading)
    planned = clusters.plan(wanted)
    checks = planned.plan.checks
    if hold:
        group = Resource(ResourceType.GROUP, spec.source)
        check = can_be_held(reader.principal, reader.describe_group(spec.source), reader.permissions({group})[group])
        checks = (*checks, check)
    if spec.stay and not clusters.elsewhere:
        checks = (*checks, way_back(spec.source, wanted.partitions, reading.observed.topics, options))
    plan = replace(planned.plan, checks=checks)
    # While places are looked for, a running group commits, or stops; the final plan reads it anew.
    planned = replace(planned, plan=plan.provisional(("not moved", "vanished")) if clusters.elsewhere else plan)
    return Prepared(wanted=wanted, planned=planned)


class CutOver:
    """Wait until the source group has stopped (`wait_for_stop`), then make the final plan (`read`). Both only read.

    A source group that keeps topics may keep running on those. A source group that hands over all its topics must be
    Empty.

    shown: the provisional plan that the user agreed to. wait: seconds until giving up. events: ``still_running`` is
    called after each check, and ``said`` when the group has stopped. keep_baseline: called with the snapshot rows of
    the source group each time that its committed offsets are read after it has stopped.
    """

    def __init__(
        self,
        clusters: Clusters,
        shown: Prepared,
        clock: Clock,
        *,
        wait: float,
        events: Events,
        keep_baseline: Callable[[Iterable[Row]], object] = lambda rows: None,
    ) -> None:
        self._clusters, self._shown, self._clock = clusters, shown, clock
        self._reader = clusters.source
        self._wait, self._events, self._keep_baseline = wait, events, keep_baseline
        self._source, self._options, self._last = shown.spec.source, shown.plan.options, shown.wanted.knowledge.last
        self._may_be_gone = self._options.vanished == "restore"
        self._ends = EndsWhileConsumed.of(self._reader, shown.reading, self._options)
        # All topics seen so far: once the members have left, nothing shows that the group had a topic without a commit.
        self._seen = set(shown.reading.observed.topics)

    def wait_for_stop(self) -> None:
        """Wait until the source group has stopped consuming the topics that it hands over.

        Raises `Refused` if the wait runs out, or if the group no longer exists and its last known offsets can't be
        restored; `GroupNotFound`; and the errors of `GroupReader`.
        """
        with self._gone_is_restorable():
            self._prove_stopped()

    def read(self) -> Prepared:
        """Return the plan to write, made from the committed offsets of the stopped source group.

        To save time, a log end offset that was read for the shown plan, before the stop, is used again if the committed
        offset does not exceed it.

        Raises `Refused` if a check forbids the write, if a topic was added, removed or recreated since the plan was
        shown, or if the group no longer exists and its last known offsets can't be restored; `GroupNotFound`; and the
        errors of `GroupReader`.
        """
        shown = self._shown
        with self._gone_is_restorable():
            reading = self._read()
        if not reading.observed.description.exists:
            self._last.refuse_unless_restorable(self._source, self._options)
        _refuse_recreated(reading, shown.reading)
        try:
            wanted = replace(shown.wanted.knowledge, ends=self._ends.proven, baseline=shown.reading).wanted(reading)
        except InvalidInput as error:
            changed = f"the group's topics changed since the plan was shown: {error}"
            raise Refused(f"{changed}; nothing was written") from None
        planned = self._planned(wanted)
        refuse_forbidden(planned.plan.refusals(at_the_write=True))
        _refuse_other_topics(shown.plan, planned.plan)
        return Prepared(wanted=wanted, planned=planned)

    def _planned(self, wanted: AllWanted) -> Planned:
        """Return the plan; wait first until the mirror has delivered all records up to the committed offsets."""
        plan = partial(self._clusters.plan, wanted, self._shown.planned)
        began = self._clock.monotonic()
        planned = plan()
        if self._wait and (late := _late(planned.plan)):
            most = span_in_words(timedelta(seconds=self._wait))
            self._events.said(f"waiting up to {most} for the mirror: {_behind(late)}")
        while _late(planned.plan) and (left := began + self._wait - self._clock.monotonic()) > 0:
            self._clock.sleep(min(_MIRROR_POLL_SECONDS, left))
            planned = plan()
        return planned

    @contextmanager
    def _gone_is_restorable(self) -> Iterator[None]:
        """Within the block, turn `GroupNotFound` into `Refused` if the group's last known offsets can't be restored.

        The message of `Refused` says why they can't. If they can, `GroupNotFound` is raised unchanged.
        """
        try:
            yield
        except GroupNotFound:
            self._last.refuse_unless_restorable(self._source, self._options)
            raise

    def _read(self) -> Reading:
        read = partial(
            read_group,
            *(self._reader, self._source, self._clock),
            ends=self._shown.reading.ends,
            may_be_gone=self._may_be_gone,
        )
        try:
            return read(topics=self._topics)
        except PendingCommits:
            self._prove_stopped(offsets=True)
            return read(topics=self._topics)

    @property
    def _topics(self) -> TopicsToRead:
        return TopicsToRead(also=frozenset(self._seen), stay=self._shown.spec.stay)

    def _prove_stopped(self, *, offsets: bool = False) -> None:
        how = Wait(
            wait=self._wait,
            settle=self._options.settle,
            offsets=offsets,
            may_be_gone=self._may_be_gone,
            progress=self._look_on,
            said=self._events.said,
        )
        moved = sorted(self._shown.plan.source_topics) if self._shown.spec.stay else ()
        prove_stopped(self._reader, [self._source], self._clock, how, topics=moved)

    def _look_on(self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float) -> None:
        if (look := looks.get(self._source)) is not None:
            self._ends.seen(look)
            self._seen.update(*(member.topics for member in look.description.members))
            if self._last.seen(look):
                self._keep_baseline(replace(self._shown.reading, observed=look, taken_at=self._clock.now()).rows())
        self._events.still_running(reasons, looks, seconds)


def _late(plan: Plan) -> list[Translated]:
    """Return the partitions that the mirror has not delivered up to the offset; none if a check refuses anyway."""
    if plan.translation is None or plan.refusals(at_the_write=False):
        return []
    return [*plan.translation.with_status(Status.NOT_MIRRORED)]


def _behind(late: Sequence[Translated]) -> str:
    names = some([str(each.source) for each in late])
    return f"{counted(len(late), 'partition')} not mirrored up to the committed offset: {names}"


def _refuse_recreated(final: Reading, baseline: Reading) -> None:
    topics = baseline.observed.topics
    recreated = [
        name
        for name, topic in final.observed.topics.items()
        if name in topics and topics[name].topic_id not in (None, topic.topic_id)
    ]
    if recreated:
        raise Refused(
            f"{named('topic', recreated)} deleted and created again since the plan was shown; run again; "
            "nothing was written"
        )


def _refuse_other_topics(shown: Plan, plan: Plan) -> None:
    agreed = {(change.group, change.topic) for change in shown.changes}
    now = {(change.group, change.topic) for change in plan.changes}
    different = sorted(f"{topic} ({group})" for group, topic in agreed ^ now)
    if different:
        raise Refused(f"topics changed since the plan was shown: {some(different)}; run again; nothing was written")
