"""The whole cut-over in one process: baseline, wait for the stop, snapshot, split, plan, write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from migrate_groups.clock import Clock
from migrate_groups.cluster.ports import GroupReader, Resource, ResourceType, TopicPartition
from migrate_groups.errors import InvalidInput, PendingCommits, Refused
from migrate_groups.migration.prepare import plan_of_rows, refuse_forbidden
from migrate_groups.migration.stop import Progress, Wait, prove_stopped
from migrate_groups.migration.survey import look_around, permissions_unless_hidden
from migrate_groups.migration.take import Look, Reading, check_visible, read_group
from migrate_groups.offsets.snapshot import Row
from migrate_groups.offsets.split import SplitSpec, share_out
from migrate_groups.plan.checks.hold import can_be_held
from migrate_groups.plan.checks.permission import of_hand_over
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Plan
from migrate_groups.plan.receipt import Receipt
from migrate_groups.plan.survey import Surroundings
from migrate_groups.text import some


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Rows that name their new groups, the plan made from them, and what was asked for.

    rows: sorted by group, topic and partition. reading: that of the old group that they are from. surroundings: what
    was asked for once.
    """

    rows: Sequence[Row]
    plan: Plan
    reading: Reading
    surroundings: Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOver:
    """How a cut-over waits: seconds until giving up, who is told at each look, what happens before the snapshot.

    earlier: the receipt of a run that this one resumes.
    """

    wait: float
    progress: Progress
    once_stopped: Callable[[], object] = lambda: None
    earlier: Receipt | None = None


def prepare(
    reader: GroupReader,
    spec: SplitSpec,
    options: WriteOptions,
    clock: Clock,
    earlier: Receipt | None = None,
    *,
    hold: bool = False,
) -> Prepared:
    """Return the old group's reading now, the baseline, and the provisional plan. Reads only.

    ``earlier`` is the receipt of a run that this one resumes. ``hold``: the old group is to be held, which is checked.

    Raises `InvalidInput` where the spec does not cover the group's topics, `GroupNotFound`, and as `GroupReader`.
    """
    patterns = [pattern for target in spec.targets for pattern in target.topics]
    named_topics = {pattern.name for pattern in patterns if pattern.name is not None}
    written = [*(target.group for target in spec.targets), *([spec.source] if hold else [])]
    visible = reader.describe_topics(None)
    permissions_unless_hidden(reader, of_hand_over([spec.source], written, named_topics), visible)
    check_visible(reader, spec.stay)
    known = {entry.change.topic for entry in earlier.entries} if earlier else set()
    # A topic all of whose commits have expired since is in the receipt alone.
    expired = {topic for each in patterns for topic in each.matching(known)}
    reading = read_group(reader, spec.source, clock, topics=expired, known=visible)
    rows = _as_the_earlier_run_knew(share_out([*reading.rows()], spec), earlier, options)
    surroundings = look_around(reader, rows, visible)
    plan, _ = plan_of_rows(reader, rows, options, earlier, surroundings, reading)
    if hold:
        group = Resource(ResourceType.GROUP, spec.source)
        check = can_be_held(reader.principal, reader.describe_group(spec.source), reader.permissions({group})[group])
        plan = replace(plan, checks=(*plan.checks, check))
    return Prepared(rows=rows, plan=plan, reading=reading, surroundings=surroundings)


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

    def look_on(reasons: Mapping[str, list[str]], looks: Mapping[str, Look], seconds: float) -> None:
        ends.seen(looks[spec.source])
        of_group.update(*(member.topics for member in looks[spec.source].description.members))
        how.progress(reasons, looks, seconds)

    waiting = Wait(wait=how.wait, settle=options.settle, progress=look_on)
    wait_for_stop = partial(prove_stopped, reader, [spec.source], clock, topics=moved if spec.stay else ())
    read = partial(read_group, reader, spec.source, clock, topics=of_group, ends=baseline.ends)
    wait_for_stop(waiting)
    how.once_stopped()
    try:
        reading = read()
    except PendingCommits:
        wait_for_stop(replace(waiting, offsets=True))
        reading = read()
    try:
        shared = share_out([*_mended(reading, baseline, ends)], spec)
    except InvalidInput as error:
        raise Refused(f"the group's topics changed since the plan was shown: {error}; nothing was written") from None
    rows = _added_from_their_start(_as_the_earlier_run_knew(shared, how.earlier, options), baseline)
    plan, _ = plan_of_rows(reader, rows, options, how.earlier, shown.surroundings, reading)
    refuse_forbidden(plan.refusals(at_the_write=True))
    _refuse_other_topics(shown.plan, plan)
    return replace(shown, rows=rows, plan=plan, reading=reading)


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


def _mended(final: Reading, baseline: Reading, ends: EndsWhileConsumed) -> Iterator[Row]:
    """Yield the final rows with what only the time before the stop can tell.

    A commit that has vanished meanwhile (it expired when its topic was unsubscribed) is that of the baseline: the check
    of that name decides whether it is restored.
    """
    before, topics = baseline.look.committed, baseline.look.topics
    recreated = [
        name
        for name, topic in final.look.topics.items()
        if name in topics and topics[name].topic_id not in (None, topic.topic_id)
    ]
    if recreated:
        raise Refused(
            f"topic {some(recreated)} was deleted and created again since the plan was shown; nothing was written"
        )
    for row in final.rows():
        if row.offset is not None:
            yield row
        elif (earlier := before.get(row.topic_partition)) is not None:
            yield structs.replace(
                row, offset=earlier.offset, leader_epoch=earlier.leader_epoch, metadata=earlier.metadata
            )
        elif row.topic_partition in ends.proven:
            yield structs.replace(row, group_state=ends.state, log_end_offset=ends.proven[row.topic_partition])
        else:
            yield structs.replace(row, log_end_offset=None)  # read after the stop: no end to start from


def _as_the_earlier_run_knew(rows: Sequence[Row], earlier: Receipt | None, options: WriteOptions) -> Sequence[Row]:
    """Return the rows with what only the killed run that this one resumes could know of partitions without a commit.

    Unless it left such partitions out, those of its topics that it did not have were added since: from their start.
    """
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
        if change.source_offset is not None:  # it has vanished since
            epoch = change.after.leader_epoch if change.after.offset == change.source_offset else None
            return structs.replace(row, offset=change.source_offset, leader_epoch=epoch, metadata=change.after.metadata)
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
