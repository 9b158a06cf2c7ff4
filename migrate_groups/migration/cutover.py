"""The whole cut-over in one process: baseline, wait for the stop, snapshot, split, plan, write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.errors import GroupNotFound, InvalidInput, PendingCommits, Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.prepare import plan_of_rows, refuse_forbidden
from migrate_groups.migration.stop import Progress, Wait, prove_stopped
from migrate_groups.migration.survey import look_around, permissions_unless_hidden
from migrate_groups.migration.take import Look, Reading, check_visible, read_group
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.permissions import Resource, ResourceType
from migrate_groups.planning.checks.hold import can_be_held
from migrate_groups.planning.checks.permission import of_hand_over
from migrate_groups.planning.checks.source import way_back
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.planning.survey import Surroundings
from migrate_groups.snapshots.snapshot import Row, Snapshot
from migrate_groups.snapshots.split import SplitSpec, share_out
from migrate_groups.text import counted, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Rows that name their new groups, the plan made from them, and what was asked for.

    rows: sorted by group, topic and partition. reading: that of the source group that they are from. last: what the
    source group was last seen to have committed. surroundings: what was asked for once.
    """

    rows: Sequence[Row]
    plan: Plan
    reading: Reading
    last: LastCommitted
    surroundings: Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOver:
    """How a cut-over waits: seconds until giving up, who is told at each look, what happens before the snapshot.

    keep_baseline: gets the rows of the source group once it is seen stopped. receipt: the record of the run so far.
    """

    wait: float
    progress: Progress
    once_stopped: Callable[[], object] = lambda: None
    keep_baseline: Callable[[Iterable[Row]], object] = lambda rows: None
    receipt: Receipt = NOTHING_WRITTEN


def prepare(
    reader: GroupReader,
    spec: SplitSpec,
    options: WriteOptions,
    clock: Clock,
    receipt: Receipt = NOTHING_WRITTEN,
    baseline: Snapshot | None = None,
    *,
    hold: bool = False,
) -> Prepared:
    """Return the source group's reading now and the provisional plan. Reads only.

    ``receipt`` is the record of the run so far; ``baseline`` what a run that was interrupted had read of the group,
    for the case that all its offsets expired since. ``hold``: the source group is to be held, which is checked.

    Raises `InvalidInput` where the spec does not cover the group's topics, `GroupNotFound`, `Refused` where the group
    expired and the baseline can't replace it, and as `GroupReader`.
    """
    patterns = [pattern for target in spec.targets for pattern in target.topics]
    named_topics = {pattern.name for pattern in patterns if pattern.name is not None}
    written = [*(target.group for target in spec.targets), *([spec.source] if hold else [])]
    visible = reader.describe_topics(None)
    permissions_unless_hidden(reader, of_hand_over([spec.source], written, named_topics), visible)
    check_visible(reader, spec.stay)
    known = {entry.change.topic for entry in receipt.hand_over.entries} if receipt.hand_over else set()
    # A topic all of whose commits have expired since is in the receipt alone, or in the baseline.
    expired = {topic for each in patterns for topic in each.matching(known)}
    if baseline is not None and not reader.describe_group(spec.source).exists:
        last = LastCommitted.of_baseline(baseline)
        last.refuse_unless_restorable(spec.source, options)
        topics = expired | {partition.topic for partition in last.committed}
        reading = read_group(reader, spec.source, clock, topics=topics, known=visible, may_be_gone=True)
    else:
        reading = read_group(reader, spec.source, clock, topics=expired, known=visible)
        last = LastCommitted.of_look(reading.look)
    rows = _as_the_earlier_run_knew(share_out([*last.restored(reading.rows())], spec), receipt, options)
    surroundings = look_around(reader, rows, visible)
    plan, _ = plan_of_rows(reader, rows, options, receipt, surroundings, reading)
    if hold:
        group = Resource(ResourceType.GROUP, spec.source)
        check = can_be_held(reader.principal, reader.describe_group(spec.source), reader.permissions({group})[group])
        plan = replace(plan, checks=(*plan.checks, check))
    if spec.stay:
        plan = replace(plan, checks=(*plan.checks, way_back(spec.source, rows, reading.look.topics, options)))
    return Prepared(rows=rows, plan=plan, reading=reading, last=last, surroundings=surroundings)


def cut_over(
    reader: GroupReader,
    spec: SplitSpec,
    shown: Prepared,
    clock: Clock,
    how: CutOver,
) -> Prepared:
    """Wait for the stop, and return the final reading and the plan that is to be written.

    The ends of the logs in it are those of the baseline where no offset lies beyond them.

    A group that keeps topics may live on; one that hands over everything must be Empty. Raises `Refused` when the wait
    runs out, a check forbids the write, or a topic came or went since the plan was shown; nothing is written.
    """
    options, baseline = shown.plan.options, shown.reading
    moved = sorted({change.topic for change in shown.plan.changes})
    ends = EndsWhileConsumed.of(reader, baseline, options)
    # Once the members have left, a topic without a commit is no longer seen to be the group's.
    of_group = set(baseline.look.topics)
    last = shown.last

    def look_on(reasons: Mapping[str, list[str]], looks: Mapping[str, Look], seconds: float) -> None:
        if (look := looks.get(spec.source)) is not None:
            ends.seen(look)
            of_group.update(*(member.topics for member in look.description.members))
            if last.seen(look):
                how.keep_baseline(replace(baseline, look=look, taken_at=clock.now()).rows())
        how.progress(reasons, looks, seconds)

    restorable = options.vanished == "restore"
    waiting = Wait(wait=how.wait, settle=options.settle, progress=look_on, may_be_gone=restorable)
    wait_for_stop = partial(prove_stopped, reader, [spec.source], clock, topics=moved if spec.stay else ())
    try:
        wait_for_stop(waiting)
        how.once_stopped()
        read = partial(
            read_group, reader, spec.source, clock, topics=of_group, ends=baseline.ends, may_be_gone=restorable
        )
        try:
            reading = read()
        except PendingCommits:
            wait_for_stop(replace(waiting, offsets=True))
            reading = read()
    except GroupNotFound:
        last.refuse_unless_restorable(spec.source, options)
        raise
    if not reading.look.description.exists:
        last.refuse_unless_restorable(spec.source, options)
    try:
        shared = share_out([*_mended(reading, baseline, last, ends)], spec)
    except InvalidInput as error:
        raise Refused(f"the group's topics changed since the plan was shown: {error}; nothing was written") from None
    rows = _added_from_their_start(_as_the_earlier_run_knew(shared, how.receipt, options), baseline)
    plan, _ = plan_of_rows(reader, rows, options, how.receipt, shown.surroundings, reading)
    refuse_forbidden(plan.refusals(at_the_write=True))
    _refuse_other_topics(shown.plan, plan)
    return replace(shown, rows=rows, plan=plan, reading=reading)


@dataclass(slots=True)
class LastCommitted:
    """What a group was last seen to have committed, and whether it had stopped by then.

    Where its commits expire during the wait, all of them even, this is what ``vanished = "restore"`` hands over.
    """

    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    stopped: bool = False

    @staticmethod
    def of_look(look: Look) -> LastCommitted:
        """Return what one look saw."""
        last = LastCommitted(stopped=look.description.stopped)
        last._note(look)
        return last

    @staticmethod
    def of_baseline(baseline: Snapshot) -> LastCommitted:
        """Return what an interrupted run saw."""
        rows = [*baseline.rows()]
        committed = {row.topic_partition: row.committed for row in rows if row.committed}
        return LastCommitted(committed, stopped=all(row.group_state == "Empty" for row in rows))

    def seen(self, look: Look) -> bool:
        """Take note of a look at the group once it had stopped; return whether it saw anything."""
        if not look.committed or not look.description.exists:
            return False
        self.stopped = True
        return self._note(look)

    def restored(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows, each without a commit as it was last seen."""
        for row in rows:
            last = self.committed.get(row.topic_partition) if row.offset is None else None
            yield (
                row
                if last is None
                else structs.replace(row, offset=last.offset, leader_epoch=last.leader_epoch, metadata=last.metadata)
            )

    def refuse_unless_restorable(self, group: str, options: WriteOptions) -> None:
        """Raise `Refused` where a group that is gone can't be handed over from what was last seen of it."""
        gone = (
            f"group {group!r} has no committed offset any more: {counted(len(self.committed), 'commit')} expired, or "
            "were deleted, since this run began"
        )
        if options.vanished != "restore":
            raise Refused(f'{gone}; vanished = "restore" hands over what it had committed; nothing was written')
        if not self.stopped:
            raise Refused(
                f"{gone}, and it was last seen while it still ran: where it stopped is not known; look at "
                "baseline.parquet in the run directory, and apply what is right; nothing was written"
            )

    def _note(self, look: Look) -> bool:
        known = {partition: committed for partition, committed in look.committed.items() if committed is not None}
        self.committed.update(known)
        return bool(known)


@dataclass(slots=True)
class EndsWhileConsumed:
    """The log's ends as they were while a member of the old group was last seen on their topic.

    A partition without a commit starts there (``uncommitted = "end"``): nobody has seen what is produced after that.
    An end counts once a later look still finds a member there: one read after the last of them left, while others of
    the group go on with other topics, would skip records. And it counts only where no transaction was open below it,
    whose records a ``read_committed`` member had not been handed by then.
    """

    reader: GroupReader
    partitions: Collection[TopicPartition]
    state: str = "Empty"
    unproven: Mapping[TopicPartition, int] = field(default_factory=dict)
    proven: Mapping[TopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def of(reader: GroupReader, baseline: Reading, options: WriteOptions) -> EndsWhileConsumed:
        """Return the ends of the baseline's partitions without a commit, which no later look has proved yet.

        There is nothing to watch where the options want no ends.
        """
        ends = {
            partition: baseline.bounds[partition].end
            for partition, committed in baseline.look.committed.items()
            if options.uncommitted == "end" and committed is None and partition in baseline.bounds
        }
        watching = EndsWhileConsumed(reader=reader, partitions=ends.keys())
        watching._note(ends)
        return watching

    def seen(self, look: Look) -> None:
        """Take note of a look at the group."""
        held = frozenset[str]().union(*(member.topics for member in look.description.members))
        still = [partition for partition in self.partitions if partition.topic in held]
        if still:
            proven = {partition: self.unproven[partition] for partition in still if partition in self.unproven}
            self.state, self.proven = look.description.state, {**self.proven, **proven}
            self._note({partition: bounds.end for partition, bounds in self.reader.log_bounds(still).items()})

    def _note(self, ends: Mapping[TopicPartition, int]) -> None:
        """Note ends that have been read, where the last stable offset, which is read only now, is not before them."""
        stable = self.reader.stable_ends(ends) if ends else {}
        reached = {partition: end for partition, end in ends.items() if stable.get(partition, -1) >= end}
        self.unproven = {**self.unproven, **reached}


def _mended(final: Reading, baseline: Reading, last: LastCommitted, ends: EndsWhileConsumed) -> Iterator[Row]:
    """Yield the final rows with what only the time before the stop can tell.

    A commit that has vanished meanwhile (it expired when its topic was unsubscribed) is as it was last seen: the check
    of that name decides whether it is restored.
    """
    topics = baseline.look.topics
    recreated = [
        name
        for name, topic in final.look.topics.items()
        if name in topics and topics[name].topic_id not in (None, topic.topic_id)
    ]
    if recreated:
        raise Refused(
            f"topic {some(recreated)} was deleted and created again since the plan was shown; nothing was written"
        )
    for row in last.restored(final.rows()):
        if row.offset is not None:
            yield row
        elif row.topic_partition in ends.proven:
            yield structs.replace(row, group_state=ends.state, log_end_offset=ends.proven[row.topic_partition])
        else:
            yield structs.replace(row, log_end_offset=None)  # read after the stop: no end to start from


def _as_the_earlier_run_knew(rows: Sequence[Row], receipt: Receipt, options: WriteOptions) -> Sequence[Row]:
    """Return the rows with what only the killed run that this one resumes could know of partitions without a commit.

    Unless it left such partitions out, those of its topics that it did not have were added since: from their start.
    """
    earlier = receipt.hand_over
    if earlier is None:
        return rows
    known = {entry.change.order: entry.change for entry in earlier.entries if entry.change.after is not None}
    topics = {order[:2] for order in known}

    def mended(row: Row) -> Row:
        change = known.get((row.group or "", row.topic, row.partition))
        if row.offset is not None:
            return row
        if change is None or change.after is None:
            added = (row.group, row.topic) in topics and options.uncommitted != "leave"
            return structs.replace(row, source_group=None, offset=row.log_start_offset) if added else row
        if (stopped := change.source_committed) is not None:  # it has vanished since
            return structs.replace(
                row, offset=stopped.offset, leader_epoch=stopped.leader_epoch, metadata=stopped.metadata
            )
        if change.source_group is None:  # it was added during the wait, and set to its start
            return structs.replace(row, source_group=None, offset=change.after.offset)
        # The end that was proven then.
        return structs.replace(row, group_state="Stable", log_end_offset=change.after.offset)

    return [*map(mended, rows)]


def _added_from_their_start(rows: Sequence[Row], baseline: Reading) -> Sequence[Row]:
    """Return the rows; partitions that were added since the baseline, which nobody has read, are set to their start."""
    return [
        structs.replace(row, source_group=None, offset=row.log_start_offset)
        if row.offset is None and row.topic_partition not in baseline.look.committed
        else row
        for row in rows
    ]


def _refuse_other_topics(shown: Plan, plan: Plan) -> None:
    agreed = {(change.group, change.topic) for change in shown.changes}
    now = {(change.group, change.topic) for change in plan.changes}
    different = sorted(f"{topic} ({group})" for group, topic in agreed ^ now)
    if different:
        raise Refused(f"topics came or went since the plan was shown: {some(different)}; nothing was written")
