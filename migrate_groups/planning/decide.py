"""Decide, for each partition, at which committed offset its target group is to start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from migrate_groups.model.partitions import CommittedOffset, LogRange, PartitionValue
from migrate_groups.model.topics import is_same_topic
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Change, sorted_changes
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.wanted import Origin, Wanted, absent


class Decision(PartitionValue, frozen=True, kw_only=True):
    """The committed offset that a target group is to get for a partition, and why.

    - wanted: the partition, and the offset to take over.
    - before: the target group's current committed offset; None if it has none.
    - after: the offset planned for the target group; None if there is none.
    - raised_from: the lower offset that the log start offset replaces in ``after``; None if nothing was replaced.
    - stays: ``before`` is kept, because it is above ``after`` and the option ``on_existing`` is ``forward``.
    """

    wanted: Wanted
    before: CommittedOffset | None
    after: CommittedOffset | None
    raised_from: int | None = None
    stays: bool = False

    @property
    def change(self) -> Change | None:
        """The change of the target group's committed offset, for the plan; None if there is no offset to write.

        If the target group keeps its higher offset, ``before`` and ``after`` of the change are equal. If the offset is
        not known yet, the change says so.
        """
        wanted = self.wanted
        is_mirrored = wanted.origin is not Origin.NOT_MIRRORED
        if self.after is None and is_mirrored:
            return None
        return Change(
            source_group=wanted.source_group,
            group=wanted.group,
            topic=wanted.topic,
            partition=wanted.partition,
            before=self.before,
            after=self.before if self.stays else self.after,
            source_committed=wanted.committed if wanted.source_group is not None else None,
            is_mirrored=is_mirrored,
        )


def decide(wanted: Sequence[Wanted], survey: Survey, options: WriteOptions) -> list[Decision]:
    """Return which committed offset the target group gets for each partition, and why.

    Partitions that ``wanted`` lacks are included if a source group hands over their topic.
    """
    return [_decision(each, survey, options) for each in (*wanted, *absent(wanted, survey))]


def changes_of(decisions: Iterable[Decision]) -> tuple[Change, ...]:
    """Return the changes of committed offsets that these decisions make, sorted by group, topic and partition.

    A decision without an offset makes no change.
    """
    return sorted_changes(change for each in decisions if (change := each.change) is not None)


def _decision(wanted: Wanted, survey: Survey, options: WriteOptions) -> Decision:
    partition = wanted.topic_partition
    bounds = survey.bounds.get(partition)
    before = survey.committed[wanted.group].get(partition)
    offset = _start(wanted, bounds, options)
    if offset is None:
        return Decision(wanted=wanted, before=before, after=None)
    metadata = wanted.committed.metadata if wanted.committed else ""
    if bounds is not None and offset < bounds.start and options.out_of_range == "earliest":
        after, raised_from = CommittedOffset(offset=bounds.start, metadata=metadata), offset
    else:
        # A leader epoch of another log may be above the current one, and would then stop a Java consumer
        # (docs/kafka-behaviour.md#logs).
        epoch = wanted.committed.leader_epoch if wanted.committed and _is_same_log(wanted, survey) else None
        after, raised_from = CommittedOffset(offset=offset, leader_epoch=epoch, metadata=metadata), None
    stays = options.on_existing == "forward" and before is not None and before.offset > after.offset
    return Decision(wanted=wanted, before=before, after=after, raised_from=raised_from, stays=stays)


def _start(wanted: Wanted, bounds: LogRange | None, options: WriteOptions) -> int | None:
    """Return the offset at which a target group is to start; None if nothing is to be written for the partition.

    The offset may lie outside the log. bounds: None if the partition does not exist or has no leader.
    """
    if wanted.offset is not None:
        return wanted.offset
    if options.uncommitted == "earliest" and wanted.origin is not Origin.NOT_MIRRORED:
        return None if bounds is None else bounds.start
    return wanted.start if options.uncommitted == "latest" and wanted.origin is Origin.PROVEN_END else None


def _is_same_log(wanted: Wanted, survey: Survey) -> bool:
    """Return whether the offset is known to be of this cluster, and of a topic with the same topic id as now."""
    topic = survey.topics.get(wanted.topic)
    here = wanted.cluster_id == survey.cluster_id
    return here and topic is not None and is_same_topic(wanted.topic_id, topic.topic_id) is True
