"""Hand over from a cluster that is lost, to groups on the cluster of a mirror's copies: from offsets that were kept.

``compare`` has translated these offsets while the source cluster was there. Nothing is asked of that cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrate_groups.clock import Clock
from migrate_groups.errors import InvalidInput, MigrateGroupsError
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.migration.barrier import Barrier, after_barrier, barrier_of
from migrate_groups.migration.carry_out import agree, write_plan
from migrate_groups.migration.clusters import Clusters, one_cluster
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.migration.journal import Journal, claim_started, locked, read_journal
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.survey import survey, unread
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.migration.receipt_refusals import refuse_by_record, refuse_other_run, refuse_returned
from migrate_groups.migration.started import say_over, started_since
from migrate_groups.migration.write_result import WriteResult, result_of
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Change
from migrate_groups.planning.checks.facts import FailOverFacts
from migrate_groups.planning.checks.registry import is_wrong_cluster, judge, planned, read_on
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.planning.translation import KeptOffsets
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import cover


@dataclass(frozen=True, slots=True, kw_only=True)
class FailOver:
    """A plan to write kept offsets to target groups, and the facts from which it was made.

    barrier, journal: as in `Prepared`.
    """

    plan: Plan
    facts: FailOverFacts
    barrier: Barrier
    journal: Journal

    def rows(self) -> Sequence[Row]:
        """Return a snapshot row for each partition of a target group, with the offset that the group is to get."""
        bounds = self.facts.survey.bounds
        return [
            Row.knowing(
                cluster_id=each.cluster_id,
                taken_at=self.facts.translation.compared_at,
                group=each.group,
                group_type="share" if each.is_share else None,
                topic=each.topic,
                topic_id=each.topic_id,
                partition=each.partition,
                offset=each.start,
                log_start_offset=log.start if log else None,
                log_end_offset=log.end if log else None,
            )
            for each in self.facts.wanted
            for log in [bounds.get(each.topic_partition)]
        ]

    def before(self) -> Sequence[Row]:
        """Return the snapshot rows of the source group from the time when its offsets were translated."""
        of = self.facts.translation
        return [
            Row.knowing(
                cluster_id=of.cluster_id,
                taken_at=of.compared_at,
                group=of.group,
                topic=each.source.topic,
                partition=each.source.partition,
                offset=each.committed,
            )
            for each in of.partitions
        ]


def plan_fail_over(
    reader: GroupReader, wanted: MigrateRequest, kept: KeptOffsets, clock: Clock, events: Events
) -> FailOver | None:
    """Return the plan that writes the kept offsets of the source group to the target groups. Reads only.

    Returns None if an earlier call has written them and a target group has started since.

    Raises `Refused` if the receipt (the record of the run) forbids it; `InvalidInput` if no offset of the group was
    kept, or if the split lacks a topic; `UsageError` if the receipt is of another migration.
    """
    with open_receipt(wanted.run.receipt, read_only=True) as file:
        return _shown(reader, wanted, kept, file, clock, events)


def fail_over(
    clients: Clients, wanted: MigrateRequest, kept: KeptOffsets, clock: Clock, events: Events
) -> WriteResult | None:
    """Write the kept offsets of the source group to the target groups, and return the result.

    Returns None, and raises errors, as `plan_fail_over`; also raises `Refused` if a check or the user forbids it. If an
    error is raised, this call wrote nothing. The source group is not watched after the write.
    """
    writer = clients.writer
    with wanted.run.made(), open_receipt(wanted.run.receipt, by=wanted.by) as file:
        shown = _shown(writer, wanted, kept, file, clock, events)
        if shown is None:
            claim_started(Clusters(None, writer), file, clock.now())
            return None
        agree(shown.plan, shown.rows, events)
        with (
            locked(Clusters(None, writer), shown.journal, file) as journal,
            after_barrier(writer, shown.barrier, events),
        ):
            final = _planned(writer, wanted, kept, file, clock)
            refuse_forbidden(final.plan.refusals(at_the_write=True))
            refuse_other_run(Clusters(None, writer), file, final.plan)
            execution = write_plan(clients, final.plan, file, clock, events, journal)
        try:
            groups = sorted({each.group for each in final.plan.changes if not each.is_share})
            after = take_snapshot(writer, groups, clock) if execution.is_whole and groups else None
            before = SnapshotTable.of_rows(final.before())
            wanted.run.save(wanted.file.content, before, final.rows(), final.plan, after)
        except InvalidInput as error:
            file.note_unsaved_file(error)
        except MigrateGroupsError as error:
            events.said(f"the files of {wanted.run.folder} were not all written: {error}")
        return result_of(execution, file)


def _shown(
    reader: GroupReader, wanted: MigrateRequest, kept: KeptOffsets, file: ReceiptFile, clock: Clock, events: Events
) -> FailOver | None:
    refuse_by_record(file.receipt, Verb.HAND_OVER)
    refuse_returned(file)
    if (started := started_since(one_cluster(reader), file.receipt)) is not None:
        say_over(Clusters(None, reader), started, file, events)
        return None
    found = _planned(reader, wanted, kept, file, clock)
    if found.plan.changes:
        refuse_other_run(Clusters(None, reader), file, found.plan)
    return found


def _planned(
    reader: GroupReader, wanted: MigrateRequest, kept: KeptOffsets, file: ReceiptFile, clock: Clock
) -> FailOver:
    reader, spec, options = for_one_phase(reader), wanted.file.spec, wanted.file.options
    found = kept.of(spec.source)
    topics = cover(spec, found.source_topics).targets
    moved = {topic for of_group in topics.values() for topic in of_group}
    translation = replace(found, partitions=tuple(each for each in found.partitions if each.source.topic in moved))
    facts = FailOverFacts(
        survey=unread(reader),
        options=options,
        receipt=file.receipt,
        decided=[
            Change(
                group=group,
                source_group=None,
                is_share=group in spec.share_groups,
                topic=each.copy.topic,
                partition=each.copy.partition,
                wanted=CommittedOffset(offset=start),
                cluster_id=kept.cluster_id,
                topic_id=kept.topic_ids.get(each.copy.topic),
            )
            for group, of_group in topics.items()
            for each in translation.partitions
            if each.copy and each.source.topic in of_group
            if (start := each.position.start_if_lost(options.accept_reread)) is not None
        ],
        translation=translation,
        age=clock.now() - (found.compared_at or clock.now()),
    )
    facts = read_on(Scope.FAIL_OVER, facts, lambda known: known.decided_by(survey(reader, known.decided)))
    plan = replace(planned(Scope.FAIL_OVER, facts), translation=translation)
    if not is_wrong_cluster(Scope.FAIL_OVER, facts):
        plan = plan.with_checks(judge(Scope.TARGET, facts))
    journal = read_journal(Clusters(None, reader), plan, file.receipt, Verb.HAND_OVER)
    barrier = barrier_of(reader, plan, is_target=True)
    plan = plan.with_checks((*barrier.checks, *journal.checks))
    return FailOver(plan=plan, facts=facts, barrier=barrier, journal=journal)
