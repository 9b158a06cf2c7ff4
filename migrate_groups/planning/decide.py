"""Decide, for each partition that a target group takes over, which committed offset the group gets, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from migrate_groups.model.partitions import CommittedOffset, LogRange, PartitionValue
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Change, sorted_changes
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.wanted import Origin, Wanted, absent


class Decision(PartitionValue, frozen=True, kw_only=True):
    """The committed offset that a target group is to get for a partition, and why.

    wanted: the partition, with the source group's committed offset. before: the target group's current committed
    offset; None if it has none. after: the offset at which the target group is to start; None if there is none to
    write. stays: whether ``after`` is not written, because it is lower than ``before`` and the option ``on_existing``
    is ``forward``. raised_from: the source group's offset, if it is below the log start offset and ``after`` is the log
    start offset instead; otherwise None.
    """

    wanted: Wanted
    before: CommittedOffset | None
    after: CommittedOffset | None
    raised_from: int | None = None
    stays: bool = False

    @property
    def change(self) -> Change | None:
        """The change of the target group's committed offset, for the plan; None if there is no offset for it.

        If the target group keeps its higher offset (``stays``), the change has the same offset before and after.
        """
        if self.after is None:
            return None
        wanted = self.wanted
        return Change(
            source_group=wanted.source_group,
            group=wanted.group,
            topic=wanted.topic,
            partition=wanted.partition,
            before=self.before,
            after=self.before if self.stays else self.after,
            source_committed=wanted.committed if wanted.source_group is not None else None,
        )


def decide(wanted: Sequence[Wanted], survey: Survey, options: WriteOptions) -> list[Decision]:
    """Return a decision for each wanted partition: which committed offset its target group gets, and why.

    If a source group hands over a topic, partitions of this topic that ``wanted`` lacks get a decision too, as
    partitions without a committed offset. If the source group has no committed offset, the option ``uncommitted``
    decides. If the option ``on_existing`` is ``forward``, a target group keeps a committed offset that is higher than
    the wanted one.
    """
    return [_decision(each, survey, options) for each in (*wanted, *absent(wanted, survey))]


def changes_of(decisions: Iterable[Decision]) -> tuple[Change, ...]:
    """Return the changes of committed offsets that follow from decisions, sorted by group, topic and partition.

    A decision to write nothing yields no change.
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
        epoch = wanted.committed.leader_epoch if wanted.committed and _is_same_log(wanted, survey) else None
        after, raised_from = CommittedOffset(offset=offset, leader_epoch=epoch, metadata=metadata), None
    stays = options.on_existing == "forward" and before is not None and before.offset > after.offset
    return Decision(wanted=wanted, before=before, after=after, raised_from=raised_from, stays=stays)


def _start(wanted: Wanted, bounds: LogRange | None, options: WriteOptions) -> int | None:
    """Return the offset that a target group is to start at; None if nothing is to be written for the partition.

    The offset may be outside the log: the caller compares it with ``bounds``, the partition's log range. If ``bounds``
    is None, the partition does not exist or has no leader.
    """
    if wanted.offset is not None:
        return wanted.offset
    if options.uncommitted == "earliest":
        return None if bounds is None else bounds.start
    return wanted.start if options.uncommitted == "latest" and wanted.origin is Origin.PROVEN_END else None


def _is_same_log(wanted: Wanted, survey: Survey) -> bool:
    """Return whether the cluster id and the topic id are still those with which the offset was read.

    Only then is the offset's leader epoch written too. A leader epoch above the partition's current one stops a Java
    consumer (docs/kafka-behaviour.md#logs).
    """
    topic = survey.topics.get(wanted.topic)
    return wanted.cluster_id == survey.cluster_id and topic is not None and topic.topic_id == wanted.topic_id
