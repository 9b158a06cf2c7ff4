"""The steps before the write: wait for the source group to stop, read its final offsets, make the final plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from migrate_groups.clock import Clock
from migrate_groups.errors import GroupNotFound, InvalidInput, MigrateGroupsError, PendingCommits, Refused, raise_first
from migrate_groups.migration.clusters import Clusters
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.last_seen import EndsWhileConsumed
from migrate_groups.migration.hand_over.prepared import Prepared, plan_hand_over
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import describe_groups
from migrate_groups.migration.reading.stop_checkpoint import (
    by_number,
    partitions_of_offsets_topic,
    take_stop_checkpoints,
)
from migrate_groups.migration.reading.survey import EarlyGroups, read_early_groups
from migrate_groups.migration.reading.take import Reading, TopicsToRead, read_group
from migrate_groups.migration.stop import Wait, prove_stopped
from migrate_groups.mirrors.position import Status
from migrate_groups.model.groups import GroupWithOffsets, ObservedGroup
from migrate_groups.model.offsets_topic import StopCheckpoint
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.topics import partitions_of, recreated_topics, topic_ids
from migrate_groups.planning.checks.source import holding, running, shows_topics
from migrate_groups.planning.plan import Plan, Planned
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.times import span_in_words
from migrate_groups.text import counted, named, some

_MIRROR_POLL_SECONDS = 0.5


class CutOver:
    """Waits until the source group has stopped (`wait_for_stop`), then makes the final plan (`read`). Reads only.

    shown: the plan that the user agreed to. wait: seconds until giving up. keep_baseline: called with the source
    group's snapshot rows each time that its committed offsets are read during the wait. get_ready: called
    during the wait, to make the clients ready for the write.
    """

    def __init__(
        self,
        clusters: Clusters[GroupReader],
        shown: Prepared,
        clock: Clock,
        *,
        wait: float,
        events: Events,
        keep_baseline: Callable[[Iterable[Row]], object] = lambda rows: None,
        get_ready: Callable[[], object] = lambda: None,
    ) -> None:
        self._clusters, self._shown, self._clock = clusters, shown, clock
        self._reader = clusters.source
        self._wait, self._events, self._keep_baseline, self._make_ready = wait, events, keep_baseline, get_ready
        self._source, self._options, self._last = shown.spec.source, shown.plan.options, shown.knowledge.last
        self._may_be_gone = self._options.on_removed == "restore"
        self._ends = EndsWhileConsumed.of(self._reader, shown.reading, self._options)
        self._deadline = clock.monotonic() + wait
        self._commits_pend = False
        reading = shown.reading
        is_running = bool(running(reading.observed.description, shown.moved))
        self._ran_until: datetime | None = reading.taken_at if is_running else None
        # Read during the wait, and only to send later requests together: no decision rests on them.
        self._settled: Mapping[TopicPartition, int] = {}
        self._is_ready = False
        self._targets: Mapping[str, Collection[TopicPartition] | None] = {}
        self._offsets_topic: Sequence[TopicPartition] = ()
        self._checkpoints: list[StopCheckpoint] = []
        # All topics seen so far: once the members have left, nothing shows that the group had a topic without a commit.
        self._seen = set(shown.reading.observed.topics)

    def saw_before(self, topics: Iterable[str], ran_until: datetime | None) -> None:
        """Note topics of the source group's members, and the last reading in which it ran, from before this wait."""
        self._seen.update(topics)
        self._ran_until = ran_until or self._ran_until

    @property
    def ran_until(self) -> datetime | None:
        """The last reading in which the source group still ran, from the plan on; None if there is none."""
        return self._ran_until

    @property
    def checkpoints(self) -> list[StopCheckpoint]:
        """The stop checkpoint of each cluster, from which `audit` later reads. Empty if one can't be read."""
        return self._checkpoints

    def take_checkpoints(self) -> None:
        """Read the stop checkpoints, unless `read` reads them together with the source group.

        If the log end offsets can't be read, tell the user. Called after the barrier: before it, a commit that waits
        for a replica is beyond the log end offset.
        """
        if not self._offsets_topic:
            readers = [self._reader] if self._clusters.is_one else [self._reader, self._clusters.target]
            self._checkpoints = take_stop_checkpoints(readers, self._clock, self._events)

    def wait_for_stop(self) -> None:
        """Wait until the source group has stopped consuming the topics that it hands over. Reads only.

        Raises `Refused` if the wait runs out, or if the group no longer exists and its last known offsets may not be
        used.
        """
        with self._gone_is_restorable():
            self._prove_stopped()

    def read(self) -> Prepared | None:
        """Return the plan to write, made from the committed offsets of the stopped source group.

        Returns None if there is time left to wait for the stop again: since `wait_for_stop` the group has begun a
        rebalance, so that it does not show who has the topics, or a member has returned, or a transaction has begun.

        Raises `Refused` if a check forbids the write, if topics were added, removed or recreated since the plan was
        shown, or if the group no longer exists and its last known offsets may not be used.
        """
        shown = self._shown
        with self._gone_is_restorable():
            reading, targets = (
                self._reader.at_once(self._read, self._read_targets) if self._targets else (self._read(), None)
            )
        if reading is None:
            self._ran_until = self._clock.now()
            return None
        if not reading.observed.description.exists:
            self._last.refuse_unless_restorable(self._source, self._options)
        _refuse_recreated(reading, shown.reading)
        try:
            known = replace(shown.knowledge, ends=self._ends.proven, baseline=shown.reading)
            wanted = known.wanted(reading)
        except InvalidInput as error:
            changed = f"the group's topics changed since the plan was shown: {error}"
            raise Refused(f"{changed}; nothing was written") from None
        planned = self._planned(partial(plan_hand_over, self._clusters, known, reading, wanted, shown.planned, targets))
        refuse_forbidden(planned.plan.refusals(at_the_write=True))
        _refuse_other_topics(shown.plan, planned.plan)
        return replace(shown, knowledge=known, reading=reading, wanted=wanted, planned=planned)

    def _planned(self, plan: Callable[[], Planned]) -> Planned:
        """Return the final plan. If a mirror is involved, first wait until it has reached the committed offsets."""
        deadline = self._clock.monotonic() + self._wait
        planned = plan()
        late = _late(planned.plan)
        if late and self._wait:
            most = span_in_words(timedelta(seconds=self._wait))
            self._events.doing(f"waiting up to {most} for the mirror: {_behind(late)}")
        while late and (left := deadline - self._clock.monotonic()) > 0:
            self._clock.sleep(min(_MIRROR_POLL_SECONDS, left))
            planned = plan()
            late = _late(planned.plan)
        return planned

    @contextmanager
    def _gone_is_restorable(self) -> Iterator[None]:
        """Turn `GroupNotFound` in a ``with`` block into `Refused` if the group's last known offsets may not be used.

        If they may be used, `GroupNotFound` is raised unchanged.
        """
        try:
            yield
        except GroupNotFound:
            self._last.refuse_unless_restorable(self._source, self._options)
            raise

    def _read(self) -> Reading | None:
        has_time = self._clock.monotonic() < self._deadline
        try:
            reading = read_group(
                *(self._reader, self._source, self._clock),
                # To save time: an end read before is used again if the committed offset does not exceed it.
                ends=self._ends_of_committed if self._settled else self._shown.reading.ends,
                may_be_gone=self._may_be_gone,
                topics=self._topics,
                at_once=self._settled.keys(),
                describe=self._describe if self._offsets_topic else None,
            )
        except PendingCommits:
            self._commits_pend = True
            if has_time:
                return None
            raise
        # The log end offsets were read before the cluster id, in the same round.
        self._checkpoints = [
            replace(each, cluster_id=reading.cluster_id) if self._offsets_topic else each for each in self._checkpoints
        ]
        group = reading.observed.description
        # Without time left, the check of the plan names the members.
        return None if has_time and running(group, self._shown.moved) else reading

    def _describe(self) -> GroupWithOffsets:
        """Return the source group with its offsets, which are read after the stop checkpoint."""
        partitions = self._offsets_topic
        ends, found = self._reader.describe_after_ends(partitions, self._source)
        self._checkpoints = [
            StopCheckpoint(
                cluster_id=self._shown.reading.cluster_id, taken_at=self._clock.now(), ends=by_number(partitions, ends)
            )
        ]
        return raise_first({self._source: found})[self._source]

    def _read_targets(self) -> EarlyGroups:
        return read_early_groups(self._reader, self._targets)

    def _get_ready(self, looks: Mapping[str, ObservedGroup]) -> None:
        """Do what later saves time, during the wait: connect, and read what hardly changes."""
        reader, shown, self._is_ready = self._reader, self._shown, True
        self._settled, self._targets, self._offsets_topic = {}, {}, ()
        if not self._clusters.is_one:
            return
        topics: dict[str, set[str]] = defaultdict(set)
        for change in shown.plan.changes:
            topics[change.group].add(change.topic)
        with suppress(MigrateGroupsError):
            found, ranges, offsets_topic, _ = reader.at_once(
                lambda: describe_groups(reader, topics),
                lambda: reader.log_ranges(looks[self._source].committed or shown.reading.observed.committed),
                lambda: partitions_of_offsets_topic(reader),
                self._make_ready,
            )
            self._offsets_topic = offsets_topic if ranges else ()
            self._settled = {partition: bounds.end for partition, bounds in ranges.items()}
            # Of a group that does not exist, all offsets: if there is one, it has come into being meanwhile.
            self._targets = {
                group: partitions_of(shown.reading.observed.topics, topics[group]) if each.exists else None
                for group, each in found.items()
            }

    @property
    def _ends_of_committed(self) -> Mapping[TopicPartition, int]:
        """The log end offsets that were read during the wait, of partitions with a committed offset.

        The others are read again with the group, because the group may have consumed since.
        """
        committed = self._shown.reading.observed.committed
        return {partition: end for partition, end in self._settled.items() if committed.get(partition) is not None}

    @property
    def _topics(self) -> TopicsToRead:
        return TopicsToRead(also=frozenset(self._seen), stay=self._shown.spec.stay)

    def _prove_stopped(self) -> None:
        how = Wait(
            wait=self._wait,
            settle=self._options.settle,
            offsets=self._commits_pend,
            may_be_gone=self._may_be_gone,
            expected=self._shown.reading.observed.topics,
            progress=self._look_on,
            doing=self._events.doing,
            get_ready=self._get_ready,
        )
        prove_stopped(self._reader, [self._source], self._clock, how, topics=sorted(self._shown.moved or ()))

    def _look_on(self, reasons: Mapping[str, list[str]], looks: Mapping[str, ObservedGroup], seconds: float) -> None:
        if any(reasons.values()) and not self._only_rejoins(looks.get(self._source)):
            self._ran_until = self._clock.now()
        if (look := looks.get(self._source)) is not None:
            self._ends.seen(look)
            self._seen.update(*(member.topics for member in look.description.members))
            if self._last.seen(look):
                self._keep_baseline(replace(self._shown.reading, observed=look, taken_at=self._clock.now()).rows())
        # Without a settle, the group is only waited for while it runs.
        if any(reasons.values()) and not (self._options.settle or self._is_ready):
            self._get_ready(looks)
        self._events.still_running(reasons, looks, seconds)

    def _only_rejoins(self, look: ObservedGroup | None) -> bool:
        """Return whether the group rebalances, and all its members had none of the moved topics when it was Stable."""
        description = self._shown.reading.observed.description
        if look is None or look.description.state in ("Stable", "Empty") or not shows_topics(description):
            return False
        stopping = {member.member_id for member in holding(description, self._shown.moved)}
        known = {member.member_id for member in description.members} - stopping
        return {member.member_id for member in look.description.members} <= known


def _late(plan: Plan) -> list[TranslatedOffset]:
    """Return the partitions that the mirror has not yet copied up to the offset to hand over.

    The list is empty if a check refuses the plan anyway.
    """
    if plan.translation is None or plan.refusals(at_the_write=False):
        return []
    return [*plan.translation.with_status(Status.NOT_MIRRORED)]


def _behind(late: Sequence[TranslatedOffset]) -> str:
    names = some([str(each.source) for each in late])
    return f"{counted(len(late), 'partition')} not mirrored up to the committed offset: {names}"


def _refuse_recreated(final: Reading, baseline: Reading) -> None:
    then, now = topic_ids(baseline.observed.topics), topic_ids(final.observed.topics)
    if recreated := recreated_topics(then.items(), now):
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
