"""Plan a hand-over to groups on another cluster: translate the source group's offsets to those in a mirror's copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from msgspec import structs

from migrate_groups.migration.across.mirror_lag import mirror_lag
from migrate_groups.migration.across.translate import copies, translate
from migrate_groups.migration.clusters import Mirror
from migrate_groups.migration.hand_over.knowledge import Knowledge
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import describe_groups, read_committed
from migrate_groups.migration.reading.survey import cut_logs, survey
from migrate_groups.migration.reading.take import Reading
from migrate_groups.mirrors.position import Status
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.change import Change, Origin
from migrate_groups.planning.checks.facts import READ_EACH_TIME, HandOverFacts, MirrorFacts
from migrate_groups.planning.checks.registry import judge, planned
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.decide import starts, with_an_offset
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Planned
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.translation import Translation


def plan_move(
    target: GroupReader,
    mirror: Mirror,
    known: Knowledge,
    reading: Reading,
    wanted: Sequence[Change],
    *,
    is_stopped: bool,
) -> Planned:
    """Return the plan to write translated offsets to the target groups, with the verdict of every check.

    A translated offset is the one in the mirror's copy at which the group must continue. Nothing of an earlier plan is
    used: a mirror that was killed meanwhile may have delivered records again. Then a group must continue after these
    records, at a higher offset in the copy.

    target: the reader of the target groups. is_stopped: whether the source group has stopped. The other arguments and
    the errors are those of `plan_hand_over`.
    """
    source, options, receipt = mirror.source.groups, known.options, known.receipt
    here = survey(source, wanted, None, reading, has_targets=False)
    started = starts(wanted, here, options)
    offsets = {
        each.topic_partition: (each.after.offset, each.committed.offset if each.committed else None)
        for each in started
        if each.after is not None
    }
    translation = translate(mirror, known.spec.source, offsets, options.trust_copy)
    # After the stop it would only take time. A group that returns does not need the mirror.
    lag_matters = not (is_stopped or mirror.is_return)
    if lag_matters:
        translation = _with_lag(mirror, translation)
    here = _read_again(source, here, offsets)
    moved = _in_copies(mirror, target, started, translation, options)
    there = survey(target, moved)
    if mirror.kept is not None:  # the group may keep the offset that it has, in a log that was cut at the loss
        there = replace(there, cut={**there.cut, **cut_logs(target, _with_their_own(moved, there))})
    of_source = HandOverFacts(
        survey=here,
        options=options,
        receipt=receipt,
        decided=started,
        changes=with_an_offset(started),
        advice=READ_EACH_TIME,
    )
    of_mirror = MirrorFacts(
        survey=there,
        options=options,
        source=here,
        translation=translation,
        lag_matters=lag_matters,
        stays=_unread(reading, {each.topic for each in wanted}) if mirror.is_return else None,
    )
    of_target = HandOverFacts(
        survey=there,
        options=options,
        receipt=receipt,
        decided=moved,
        kept_from=_kept_from(mirror.kept, translation) if mirror.kept else None,
    ).decided_by(there)
    plan = planned(Scope.TARGET, of_target)
    checks = (*judge(Scope.SOURCE, of_source), *judge(Scope.MIRROR, of_mirror), *plan.checks)
    plan = replace(plan, checks=checks, translation=translation)
    return Planned(plan=plan, changes=of_target.decided, bounds=there.bounds)


def _unread(reading: Reading, moved: Collection[str]) -> dict[str, int]:
    """Return how many records a group has not read of each topic, except those that are moved."""
    unread = Counter[str]()
    for row in reading.rows():
        if row.topic not in moved and row.offset is not None:
            unread[row.topic] += max(0, row.lag or 0)
    return dict(unread)


def _with_lag(mirror: Mirror, translation: Translation) -> Translation:
    """Return the translation with how far the mirror is behind in each partition."""
    found = mirror_lag(mirror, translation.copies)
    partitions = tuple(
        replace(each, behind=found[each.source].behind) if each.source in found else each
        for each in translation.partitions
    )
    return replace(translation, partitions=partitions)


def _in_copies(
    mirror: Mirror, target: GroupReader, started: Sequence[Change], translation: Translation, options: WriteOptions
) -> list[Change]:
    """Return the changes in the mirror's copies of the partitions, with the offset at which a group continues.

    The copy of a partition without an offset to hand over gets none. A copy in which the right offset is not known
    is left out, unless the mirror is about to show it; so is a partition without a copy. started: the offsets to
    hand over, on the source group's cluster.
    """
    topics = target.describe_topics(None)
    translated = {each.source: each for each in translation.partitions}
    # A check needs these copies to find committed offsets that the target groups already have.
    without = copies({each.topic_partition for each in started if each.after is None}, topics, mirror.renames)
    cluster_id = target.cluster_id()
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
                is_share=change.is_share,
                topic=copy.topic,
                partition=copy.partition,
                wanted=None if start is None else CommittedOffset(offset=start, metadata=metadata),
                origin=origin,
                cluster_id=cluster_id,
                topic_id=topics[copy.topic].topic_id,
            )
        )
    return moved


def _with_their_own(wanted: Sequence[Change], there: Survey) -> list[Change]:
    """Return the changes with the committed offset that each group has, in place of the wanted one."""
    committed = ((each, there.committed[each.group].get(each.topic_partition)) for each in wanted)
    return [structs.replace(each, wanted=own, origin=Origin.COMMITTED) for each, own in committed if own]


def _kept_from(kept: Translation, back: Translation) -> dict[TopicPartition, int]:
    """Return from which offset of each partition the group read on the cluster to which it had failed over.

    kept: the offsets from which it started there. back: the translation of its offsets there for the return.
    """
    copies = {each.copy: each for each in kept.partitions}
    found = {}
    for each in back.partitions:
        of, back_to = copies.get(each.source), each.position.offset
        if of is None or each.copy is None or back_to is None or of.position.offset is None:
            continue
        # Where the mirror was behind, the group started before the kept offset, by the records that it has read since.
        found[each.copy] = of.offset if of.position.is_known else back_to - (each.offset - of.position.offset)
    return found


def _read_again(reader: GroupReader, facts: Survey, partitions: Collection[TopicPartition]) -> Survey:
    """Return the facts with newly read descriptions of the groups, and newly read offsets of these partitions."""
    # Topics that the group keeps are not read again, because transactional commits on them may be pending.
    now = read_committed(reader, dict.fromkeys(facts.groups, partitions))
    committed = {group: {**facts.committed[group], **now[group]} for group in facts.groups}
    return replace(facts, groups=describe_groups(reader, [*facts.groups]), committed=committed)
