"""Plan a hand-over to groups on another cluster: translate the source group's offsets to those in a mirror's copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from migrate_groups.migration.across.again import delivered_again
from migrate_groups.migration.across.mirror import Mirror
from migrate_groups.migration.across.places import copies
from migrate_groups.migration.across.progress import progress
from migrate_groups.migration.across.translate import translate
from migrate_groups.migration.hand_over.clusters import Planned
from migrate_groups.migration.hand_over.knowledge import AllWanted
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.survey import survey
from migrate_groups.migration.reading.take import read_committed
from migrate_groups.mirrors.place import Status
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.model.topics import topic_ids
from migrate_groups.planning.change import Change, Origin
from migrate_groups.planning.checks.run_across import checks_of_mirror, checks_of_source, checks_of_target
from migrate_groups.planning.decide import decide, with_an_offset
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

    def plan(self, wanted: AllWanted, earlier: Planned | None = None) -> Planned:
        """Return the plan to write translated offsets to the target groups, with the verdict of every check.

        A translated offset is the one in the mirror's copy at which the group must continue. earlier: not used.
        """
        # Nothing of `earlier` is used: a mirror that was killed meanwhile may have delivered records again. Then a
        # group must continue after these records, at a higher offset in the copy.
        reading, options, receipt = wanted.reading, wanted.knowledge.options, wanted.knowledge.receipt
        group = reading.observed.description.group
        # On its own cluster, the group is judged as if it handed each partition over to itself.
        own = [*{each.topic_partition: structs.replace(each, group=group) for each in wanted.partitions}.values()]
        here = survey(for_one_phase(self.source), own, None, reading)
        decisions = decide(own, here, options)
        starts = _starts(decisions)
        stopped = {each.topic_partition: each.committed.offset for each in own if each.committed is not None}
        asked = {partition: (start.offset, stopped.get(partition)) for partition, start in starts.items()}
        translation = translate(self.mirror, group, asked, options.trust_copy)
        if earlier is None:  # after the stop it would only take time
            translation = self._with_progress(translation)
        here = _read_again(self.source, here, starts)
        written = self._written(wanted.partitions, starts, translation, options)
        there = survey(for_one_phase(self.target), written)
        chosen = decide(written, there, options)
        plan = Plan(
            cluster_id=there.cluster_id,
            options=options,
            changes=with_an_offset(chosen),
            checks=(
                *checks_of_source(decisions, here, options, receipt),
                *checks_of_mirror(translation, here, there, options, is_stopped=earlier is not None),
                *checks_of_target(chosen, there, options, receipt),
            ),
            topic_ids=topic_ids(there.topics),
            translation=translation,
        )
        return Planned(plan=plan, written=written, bounds=there.bounds)

    def delivered_again(self, execution: Execution) -> str:
        """Return a remark that names copies to which the mirror has delivered records again since the plan was made.

        The remark is empty if there are none. execution: the write of the plan.
        """
        return delivered_again(self.mirror, execution.translation) if execution.translation else ""

    def _with_progress(self, translation: Translation) -> Translation:
        """Return the translation with how far the mirror is behind in each partition."""
        found = progress(self.mirror, translation.copies)
        partitions = tuple(
            replace(each, behind=found[each.source].behind) if each.source in found else each
            for each in translation.partitions
        )
        return replace(translation, partitions=partitions)

    def _written(
        self,
        wanted: Sequence[Change],
        starts: Mapping[TopicPartition, CommittedOffset],
        translation: Translation,
        options: WriteOptions,
    ) -> list[Change]:
        """Return the mirror's copies of the wanted partitions, with the offset at which a group continues in each.

        starts: by source partition, the offset to hand over. The copy of a partition that is not in ``starts`` gets no
        offset. A copy whose right offset is not known is left out, unless the mirror is about to show it.
        """
        cluster_id = self.target.cluster_id()
        topics = self.target.describe_topics({copy for _, copy in translation.topics})
        found = {}
        for each in translation.partitions:
            start = each.start(options.accept_reread)
            if each.target is None or each.target.topic not in topics:
                continue
            if start is not None or each.place.status is Status.NOT_MIRRORED:
                found[each.source] = each.target, start
        placed = [
            Change(
                group=each.group,
                source_group=None,
                topic=copy.topic,
                partition=copy.partition,
                wanted=None
                if start is None
                else CommittedOffset(offset=start, metadata=starts[each.topic_partition].metadata),
                origin=Origin.NOT_MIRRORED if start is None else Origin.COMMITTED,
                cluster_id=cluster_id,
                topic_id=topics[copy.topic].topic_id,
            )
            for each in wanted
            if each.topic_partition in found
            for copy, start in [found[each.topic_partition]]
        ]
        return placed + self._without_start([each for each in wanted if each.topic_partition not in starts])

    def _without_start(self, wanted: Sequence[Change]) -> list[Change]:
        """Return the mirror's copy of each of these source partitions, without an offset to write.

        Partitions without a copy are left out.
        """
        # A check needs the copies to find committed offsets that the target groups already have.
        copy_of = copies(
            {each.topic_partition for each in wanted}, self.target.describe_topics(None), self.mirror.names
        )
        return [
            Change(
                group=each.group,
                source_group=None,
                topic=copy.topic,
                partition=copy.partition,
                origin=Origin.UNCOMMITTED,
            )
            for each in wanted
            if (copy := copy_of.get(each.topic_partition)) is not None
        ]


def _starts(decisions: Sequence[Change]) -> Mapping[TopicPartition, CommittedOffset]:
    return {each.topic_partition: each.after for each in decisions if each.after is not None}


def _read_again(reader: GroupReader, facts: Survey, partitions: Collection[TopicPartition]) -> Survey:
    """Return the facts with newly read descriptions of the groups, and newly read offsets of these partitions."""
    # Topics that the group keeps are not read again, because transactional commits on them may be pending.
    now = read_committed(reader, dict.fromkeys(facts.groups, partitions))
    committed = {group: {**facts.committed[group], **now[group]} for group in facts.groups}
    return replace(facts, groups=reader.describe_groups([*facts.groups]), committed=committed)
