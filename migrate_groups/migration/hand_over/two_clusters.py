"""Plan a hand-over to groups on another cluster: translate the source group's offsets to those in a mirror's copies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from migrate_groups.migration.across.again import delivered_again
from migrate_groups.migration.across.mirror import Mirror
from migrate_groups.migration.across.mirror_lag import mirror_lag
from migrate_groups.migration.across.translate import copies, translate
from migrate_groups.migration.hand_over.clusters import Planned
from migrate_groups.migration.hand_over.knowledge import Knowledge
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.survey import survey
from migrate_groups.migration.reading.take import Reading, read_committed
from migrate_groups.mirrors.position import Status
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.topics import topic_ids
from migrate_groups.planning.change import Change, Origin
from migrate_groups.planning.checks.run_across import checks_of_mirror, checks_of_source, checks_of_target
from migrate_groups.planning.decide import decide, starts, with_an_offset
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.translation import Translation


@dataclass(frozen=True, slots=True)
class TwoClusters:
    """Plans a hand-over to groups on another cluster: translates offsets to those in a mirror's copies of topics."""

    target: GroupReader
    mirror: Mirror

    @property
    def source(self) -> GroupReader:
        """The reader of the source group."""
        return self.mirror.source.groups

    @property
    def elsewhere(self) -> GroupReader:
        """The reader of the source group; never None, because source and target groups are on different clusters."""
        return self.source

    def for_one_phase(self) -> TwoClusters:
        """Return these clusters with readers that cache topics and permissions, for one step, such as a plan."""
        source = self.mirror.source._replace(groups=for_one_phase(self.source))
        return TwoClusters(for_one_phase(self.target), self.mirror._replace(source=source))

    def plan(
        self, known: Knowledge, reading: Reading, wanted: Sequence[Change], earlier: Planned | None = None
    ) -> Planned:
        """Return the plan to write translated offsets to the target groups, with the verdict of every check.

        A translated offset is the one in the mirror's copy at which the group must continue. earlier: not used.
        """
        # Nothing of `earlier` is used: a mirror that was killed meanwhile may have delivered records again. Then a
        # group must continue after these records, at a higher offset in the copy.
        options, receipt = known.options, known.receipt
        here = survey(for_one_phase(self.source), wanted, None, reading, has_targets=False)
        started = starts(wanted, here, options)
        offsets = {
            each.topic_partition: (each.after.offset, each.committed.offset if each.committed else None)
            for each in started
            if each.after is not None
        }
        translation = translate(self.mirror, known.spec.source, offsets, options.trust_copy)
        if earlier is None:  # after the stop it would only take time
            translation = self._with_progress(translation)
        here = _read_again(self.source, here, offsets)
        moved = self._in_copies(started, translation, options)
        there = survey(for_one_phase(self.target), moved)
        decided = decide(moved, there, options)
        plan = Plan(
            cluster_id=there.cluster_id,
            options=options,
            changes=with_an_offset(decided),
            checks=(
                *checks_of_source(started, here, options, receipt),
                *checks_of_mirror(translation, here, there, options, is_stopped=earlier is not None),
                *checks_of_target(decided, there, options, receipt),
            ),
            topic_ids=topic_ids(there.topics),
            translation=translation,
        )
        return Planned(plan=plan, changes=decided, bounds=there.bounds)

    def delivered_again(self, execution: Execution) -> str:
        """Return a remark that names copies to which the mirror has delivered records again since the plan was made.

        The remark is empty if there are none. execution: the write of the plan.
        """
        return delivered_again(self.mirror, execution.translation) if execution.translation else ""

    def _with_progress(self, translation: Translation) -> Translation:
        """Return the translation with how far the mirror is behind in each partition."""
        found = mirror_lag(self.mirror, translation.copies)
        partitions = tuple(
            replace(each, behind=found[each.source].behind) if each.source in found else each
            for each in translation.partitions
        )
        return replace(translation, partitions=partitions)

    def _in_copies(self, started: Sequence[Change], translation: Translation, options: WriteOptions) -> list[Change]:
        """Return the changes in the mirror's copies of the partitions, with the offset at which a group continues.

        The copy of a partition without an offset to hand over gets none. A copy in which the right offset is not known
        is left out, unless the mirror is about to show it; so is a partition without a copy. started: the offsets to
        hand over, on the source group's cluster.
        """
        topics = self.target.describe_topics(None)
        translated = {each.source: each for each in translation.partitions}
        # A check needs these copies to find committed offsets that the target groups already have.
        without = copies({each.topic_partition for each in started if each.after is None}, topics, self.mirror.names)
        cluster_id = self.target.cluster_id()
        moved = []
        for change in started:
            found = translated.get(change.topic_partition)
            copy = without.get(change.topic_partition) if found is None else found.copy
            start = None if found is None else found.position.start(options.accept_reread)
            is_unknown = found is not None and start is None and found.position.status is not Status.NOT_MIRRORED
            if copy is None or copy.topic not in topics or is_unknown:
                continue
            origin = Origin.COMMITTED
            if start is None:
                origin = Origin.UNCOMMITTED if found is None else Origin.NOT_MIRRORED
            metadata = change.after.metadata if change.after else ""
            moved.append(
                Change(
                    group=change.group,
                    source_group=None,
                    topic=copy.topic,
                    partition=copy.partition,
                    wanted=None if start is None else CommittedOffset(offset=start, metadata=metadata),
                    origin=origin,
                    cluster_id=cluster_id,
                    topic_id=topics[copy.topic].topic_id,
                )
            )
        return moved


def _read_again(reader: GroupReader, facts: Survey, partitions: Collection[TopicPartition]) -> Survey:
    """Return the facts with newly read descriptions of the groups, and newly read offsets of these partitions."""
    # Topics that the group keeps are not read again, because transactional commits on them may be pending.
    now = read_committed(reader, dict.fromkeys(facts.groups, partitions))
    committed = {group: {**facts.committed[group], **now[group]} for group in facts.groups}
    return replace(facts, groups=reader.describe_groups([*facts.groups]), committed=committed)
