"""The whole cut-over in one process: baseline, wait for the stop, snapshot, split, plan, write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from migrate_groups.clock import Clock
from migrate_groups.cluster.ports import GroupReader, TopicPartition
from migrate_groups.errors import Refused
from migrate_groups.migration.prepare import make_plan, refuse_forbidden
from migrate_groups.migration.stop import Look, Progress, Wait, prove_stopped
from migrate_groups.migration.take import take_snapshot
from migrate_groups.offsets.selection import TopicPattern
from migrate_groups.offsets.snapshot import Row, Snapshot
from migrate_groups.offsets.split import SplitSpec, split
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Plan
from migrate_groups.text import some


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A snapshot whose rows name their new groups, and the plan made from it."""

    named: Snapshot
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOver:
    """How a cut-over waits: seconds until giving up, who is told at each look, what happens before the snapshot."""

    wait: float
    progress: Progress
    once_stopped: Callable[[], object] = lambda: None


def prepare(reader: GroupReader, spec: SplitSpec, options: WriteOptions, clock: Clock) -> tuple[Snapshot, Prepared]:
    """Return the old group's snapshot now, the baseline, and the provisional plan. Reads only.

    Raises `InvalidInput` where the spec does not cover the group's topics, `GroupNotFound`, and as `GroupReader`.
    """
    baseline = take_snapshot(reader, [spec.source], clock)
    named, _ = split(baseline, spec)
    return baseline, Prepared(named=named, plan=make_plan(reader, named, options))


def cut_over(
    reader: GroupReader,
    spec: SplitSpec,
    baseline: Snapshot,
    shown: Prepared,
    clock: Clock,
    how: CutOver,
) -> tuple[Snapshot, Prepared]:
    """Wait for the stop, and return the final snapshot and the plan that is to be written.

    A group that keeps topics may live on; one that hands over everything must be Empty. Raises `Refused` when the wait
    runs out, a check forbids the write, or a topic came or went since the plan was shown; nothing is written.
    """
    options = shown.plan.options
    moved = sorted({change.topic for change in shown.plan.changes})
    ends = EndsWhileConsumed.of(reader, baseline)

    def look_on(reasons: Mapping[str, list[str]], looks: Mapping[str, Look], seconds: float) -> None:
        ends.seen(looks[spec.source])
        how.progress(reasons, looks, seconds)

    patterns = [TopicPattern(topic) for topic in moved] if spec.stay else []
    prove_stopped(
        reader, [spec.source], clock, Wait(wait=how.wait, settle=options.settle, progress=look_on), patterns=patterns
    )
    how.once_stopped()
    final = take_snapshot(reader, [spec.source], clock, topics=moved)
    named, _ = split(Snapshot.of_rows(_mended(final, baseline, ends)), spec)
    named = Snapshot.of_rows(_added_from_their_start(named, baseline))
    plan = make_plan(reader, named, options)
    _refuse_other_topics(shown.plan, plan)
    refuse_forbidden(plan.refusals(at_the_write=True))
    return final, Prepared(named=named, plan=plan)


@dataclass(slots=True)
class EndsWhileConsumed:
    """The log's ends as they were while the old group last had a member.

    A partition without a commit starts there (``uncommitted = "end"``): nobody has seen what is produced after that.
    An end counts once a later look still finds a member: one read after the last member left would skip records.
    """

    reader: GroupReader
    unproven: Mapping[TopicPartition, int]
    state: str = "Empty"
    proven: Mapping[TopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def of(reader: GroupReader, baseline: Snapshot) -> EndsWhileConsumed:
        """Return the ends of the baseline's partitions without a commit, which no later look has proved yet."""
        rows = baseline.without_commit().rows()
        return EndsWhileConsumed(
            reader=reader,
            unproven={row.topic_partition: row.log_end_offset for row in rows if row.log_end_offset is not None},
        )

    def seen(self, look: Look) -> None:
        """Take note of a look at the group."""
        if look.description.members and self.unproven:
            self.state, self.proven = look.description.state, self.unproven
            bounds = self.reader.log_bounds(list(self.unproven))
            self.unproven = {partition: ends.end for partition, ends in bounds.items()}


def _mended(final: Snapshot, baseline: Snapshot, ends: EndsWhileConsumed) -> Iterator[Row]:
    """Yield the final rows with what only the time before the stop can tell.

    A commit that has vanished meanwhile (it expired when its topic was unsubscribed) is that of the baseline: the check
    of that name decides whether it is restored.
    """
    before = {row.topic_partition: row for row in baseline.rows()}
    for row in final.rows():
        earlier = before.get(row.topic_partition)
        if row.offset is None and earlier is not None and earlier.offset is not None:
            yield row._replace(offset=earlier.offset, leader_epoch=earlier.leader_epoch, metadata=earlier.metadata)
        elif row.offset is None and row.topic_partition in ends.proven:
            yield row._replace(group_state=ends.state, log_end_offset=ends.proven[row.topic_partition])
        else:
            yield row


def _added_from_their_start(named: Snapshot, baseline: Snapshot) -> Iterator[Row]:
    """Yield the rows; partitions that were added since the baseline, which nobody has read, are set to their start."""
    known = {row.topic_partition for row in baseline.rows()}
    for row in named.rows():
        if row.offset is None and row.topic_partition not in known:
            yield row._replace(source_group=None, offset=row.log_start_offset)
        else:
            yield row


def _refuse_other_topics(shown: Plan, plan: Plan) -> None:
    agreed = {(change.group, change.topic) for change in shown.changes}
    now = {(change.group, change.topic) for change in plan.changes}
    different = sorted(f"{topic} ({group})" for group, topic in agreed ^ now)
    if different:
        raise Refused(f"topics came or went since the plan was shown: {some(different)}; nothing was written")
