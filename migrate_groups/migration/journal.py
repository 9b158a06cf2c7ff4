"""Claim the partitions of a write on the cluster, so that every other run knows what this run hands over.

The claims on a group's partitions are committed offsets of its journal, a group of this tool. Joining the journal is
the lock: only one run at a time does, and a killed run is removed by its session timeout. The claims are read after the
join, and committed with the membership, so that a run that has lost its lock is refused before it writes
(docs/kafka-behaviour.md#holding-a-group).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from migrate_groups.errors import NotAuthorized, Refused
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import GroupReader, GroupWriter
from migrate_groups.migration.reading.claims import GRANT, groups_further_on, journals_not_granted, read_claims
from migrate_groups.migration.write_requests import rounds
from migrate_groups.model.answers import Answer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning import claims as of_partition
from migrate_groups.planning.change import Change, Order
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.checks.handed import handed_by, undone_by
from migrate_groups.planning.checks.journal import JournalFacts
from migrate_groups.planning.checks.registry import judge
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.claims import Claims, ClaimState, Giving
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.text import some

Place = tuple[str, TopicPartition]
"""A group and a partition: the key of claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What this run and others have claimed of the partitions of a write.

    - facts: as they were read.
    - offsets: the offsets that are committed with the claims.
    - writer: commits claims, while this run holds the journals; None if nothing is claimed.
    """

    facts: JournalFacts
    offsets: Mapping[Place, int] = field(default_factory=dict)
    writer: GroupWriter | None = None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The check ``journal`` of the plan."""
        return judge(Scope.JOURNAL, self.facts)

    def for_plan(self, plan: Plan, receipt: Receipt) -> Journal:
        """Return the journal for the plan that is written. Raises `Refused` if another run has claimed a partition."""
        journal = replace(self, facts=handed_by(self.facts, plan, receipt))
        _refuse_claimed(journal)
        return journal

    def claim(self, now: datetime) -> Mapping[TopicPartition, str]:
        """Claim the partitions right before the write; return why partitions could not be claimed.

        Nothing may be written for these partitions.
        """
        facts = self.facts
        new: dict[Place, Claims] = {}
        begin = _BEGUN.get(facts.verb)
        for order, targets in facts.handed.items():
            source, partition = order[0], TopicPartition(*order[1:])
            of_source, is_done = self._of((source, partition)), order in facts.done
            # Committed also if it is there already: the coordinator refuses it if this run has lost its lock.
            if of_source and (is_done or order in facts.begun):
                new[source, partition] = of_source
            elif not is_done:
                new[source, partition] = of_partition.handed_over(of_source, facts.run, targets, now, facts.elsewhere)
            # Until the user is told to start a group, no other run may hand on what this one gives to it or takes away.
            if begin and not is_done:
                for target in facts.targets_here(order):
                    new[target, partition] = begin(self._of((target, partition)), Giving(facts.run, source, now))
        return self._commit(new)

    def not_released(self, execution: Execution) -> Execution:
        """Return the record of a way back as it must be saved before `settled`: its claims are not released yet.

        A killed process must not leave it as done, because then the same command would not release them.
        """
        if self.writer is None or self.facts.verb not in _RELEASES:
            return execution
        reason = "the claim in the journal is not released yet"
        return execution.updated(change.unknown(reason) for change in execution.changes if change.settled)

    def settled(self, execution: Execution, receipt: Receipt, now: datetime) -> Execution:
        """Record in the journals what came of the write, and return the record of the write.

        A claim whose outcome is not known stays. If a claim can't be released, the outcome of a way back is unknown.
        """
        failed = self.record(receipt.with_execution(execution), now, is_over=execution.is_whole)
        if not failed:
            return execution
        if self.facts.verb in _RELEASES:
            return execution.updated(
                change.unknown(failed[change.topic_partition])
                for change in execution.changes
                if change.topic_partition in failed and change.settled
            )
        return execution.remarked(
            f"the claims on {some([*map(str, failed)])} are not up to date ({next(iter(failed.values()))}), so other "
            "runs may be refused: run the same command again"
        )

    def record(self, receipt: Receipt, now: datetime, *, is_over: bool) -> Mapping[TopicPartition, str]:
        """Commit the claims that change with the write, and return the errors by partition.

        receipt: the record of the run with this write. is_over: whether the user is told to start the groups that have
        the partitions now.
        """
        facts = self.facts
        new: dict[Place, Claims] = {}
        states: dict[Order, dict[str, State]] = defaultdict(dict)
        for (group, *_), of_group in receipt.partition_states.items():
            for each in of_group.handed_over_by:
                states[each.order][group] = of_group.state
        for order, targets in facts.handed.items():
            if order in facts.done:
                continue
            source, partition = order[0], TopicPartition(*order[1:])
            found = states[order]
            for target in facts.targets_here(order):
                after = _AFTER.get((facts.verb, found[target])) if target in found else None
                if after and (is_over or after is not of_partition.arrived):
                    new[target, partition] = after(self._of((target, partition)), Giving(facts.run, source, now))
            if all(found.get(target, State.NEW) in _OWNED_AGAIN[facts.verb] for target in targets):
                new[source, partition] = of_partition.returned(
                    self._of((source, partition)), facts.run, targets, now, facts.elsewhere
                )
        return self._commit({place: claims for place, claims in new.items() if claims != self._of(place)})

    def _stopped_at(self) -> dict[Place, int]:
        """Return the offsets at which the source groups stopped, for them and for the target groups."""
        return {
            (group, TopicPartition(*order[1:])): offset
            for order, offset in self.facts.stopped_at.items()
            for group in (order[0], *self.facts.targets_here(order))
        }

    def _of(self, place: Place) -> Claims:
        return self.facts.of(*place)

    def _commit(self, claims: Mapping[Place, Claims]) -> dict[TopicPartition, str]:
        """Commit claims, and note them; return the errors by partition."""
        if self.writer is None:
            return {}
        failed = {}
        known, offsets = self.facts.claims, {**self.offsets, **self._stopped_at()}
        changes = [
            Change(
                source_group=None,
                group=journal_group(group),
                topic=partition.topic,
                partition=partition.partition,
                after=CommittedOffset(
                    offset=offsets.get((group, partition), 0), metadata=of_partition.encode(of_place)
                ),
            )
            for (group, partition), of_place in claims.items()
            if group in known
        ]
        for batch in rounds(changes):
            wanted: dict[str, dict[TopicPartition, CommittedOffset]] = defaultdict(dict)
            for change in batch:
                if change.after is not None:
                    wanted[change.group][change.topic_partition] = change.after
            for group, answers in self.writer.alter_offsets(wanted).items():
                for partition, answer in answers.items():
                    if answer.answer is not Answer.WRITTEN:
                        failed[partition] = f"not claimed in group {group}: {answer.error}"
        for (group, partition), of_place in claims.items():
            if group in known and partition not in failed:
                known[group][partition] = of_place  # type: ignore[index]
        return failed


_Change = Callable[[Claims, Giving], Claims]
"""Returns a target group's new claims."""

_RELEASES = (Verb.ROLLBACK, Verb.HAND_BACK)
_NOTHING_HANDED_OVER = {State.NEW, State.UNDONE, State.HANDED_BACK}
# What becomes of a target group's claims right before the write, by the verb.
_BEGUN: Mapping[Verb, _Change] = {
    Verb.HAND_OVER: of_partition.arriving,
    Verb.ROLLBACK: of_partition.giving_back,
    Verb.HAND_BACK: of_partition.giving_back,
}
# What becomes of them after the write, by the verb and the state of the partition. In a state that is not here, it is
# not known what was written.
_AFTER: Mapping[tuple[Verb, State], _Change] = {
    (Verb.HAND_OVER, State.HANDED_OVER): of_partition.arrived,
    **{(Verb.HAND_OVER, state): of_partition.not_arrived for state in _NOTHING_HANDED_OVER},
    (Verb.ROLLBACK, State.UNDONE): of_partition.given_back,
    (Verb.HAND_BACK, State.HANDED_BACK): of_partition.given_back,
    **{(verb, State.HANDED_OVER): of_partition.not_given_back for verb in _RELEASES},
}
# The states of the target groups' partitions in which a partition is the source group's again.
_OWNED_AGAIN = {
    Verb.HAND_OVER: _NOTHING_HANDED_OVER,
    Verb.ROLLBACK: {State.UNDONE},
    Verb.HAND_BACK: {State.HANDED_BACK},
    Verb.DELETE_OFFSETS: frozenset[State](),
}


def read_journal(reader: GroupReader, plan: Plan, receipt: Receipt, verb: Verb) -> Journal:
    """Return what runs have claimed of the partitions of a plan. Reads only. Raises `ClusterUnavailable`.

    reader: of the source group's cluster.
    """
    facts = handed_by(JournalFacts(run=receipt.run, verb=verb), plan, receipt)
    if facts.is_copy or not facts.groups:
        return Journal(facts=facts)
    not_known = journals_not_granted(reader, facts.groups)
    further: list[str] = []
    if not_known and verb is Verb.HAND_OVER:
        further = groups_further_on(reader, facts.stopped_at, facts.groups)
    return _read(reader, Journal(facts=replace(facts, not_known=not_known, further=tuple(further))))


def refuse_taken(reader: GroupReader, receipt: Receipt, verb: Verb) -> None:
    """Raise `Refused` if another run has undone the hand-over of a receipt, or has handed its partitions on since.

    verb: a way back, which the receipt allows or records as done. reader: of the source group's cluster. Raises
    `ClusterUnavailable`.
    """
    if (journal := _of_hand_over(reader, receipt, verb)) is not None:
        _refuse_claimed(journal)


def claim_started(writer: GroupWriter, file: ReceiptFile, now: datetime) -> None:
    """Claim for the target groups what they got, after `say_over` has told the user that they have started.

    Their claims say that the outcome is not known if the run was killed before, or had ended with exit code 4; other
    runs are then refused. writer: of the source group's cluster. Raises `Refused` and `ClusterUnavailable`.
    """
    receipt = file.receipt
    journal = _of_hand_over(writer, receipt, Verb.HAND_OVER)
    if journal is None or not any(
        claims[0].run == receipt.run and claims[0].state is ClaimState.ARRIVING
        for of_group in journal.facts.claims.values()
        for claims in of_group.values()
    ):
        return
    facts = replace(journal.facts, resumed=frozenset(journal.facts.handed))
    with locked(writer, replace(journal, facts=facts), file) as held:
        held.record(receipt, now, is_over=True)


def _of_hand_over(reader: GroupReader, receipt: Receipt, verb: Verb) -> Journal | None:
    """Return what runs have claimed of the hand-over in a receipt; None if it has claimed nothing.

    verb: what is to be done with the hand-over.
    """
    hand_over = receipt.last_hand_over
    if hand_over is None or hand_over.options.copy or receipt.elsewhere is not None:
        return None
    facts = undone_by(JournalFacts(run=receipt.run, verb=verb), receipt)
    return _read(reader, Journal(facts=replace(facts, not_known=journals_not_granted(reader, facts.groups))))


def nothing_claimed(verb: Verb) -> Journal:
    """Return the journal of a write that hands nothing over, such as ``delete-offsets --group``."""
    return Journal(facts=JournalFacts(run="", verb=verb))


@contextmanager
def locked(writer: GroupWriter, journal: Journal, file: ReceiptFile) -> Iterator[Journal]:
    """Keep other runs from the groups of a write during a ``with`` block, and yield what they have claimed before.

    file: the receipt, which this process has locked. A process that was killed with the same receipt keeps none out.
    Nothing waits: raises `Refused` if another run is at work on one of the groups, or has claimed partitions.
    """
    if journal.facts.is_copy or not journal.facts.handed:
        yield journal
        return
    with ExitStack() as stack:
        not_known = dict(journal.facts.not_known)
        for group in journal.facts.groups:
            if group in not_known:
                continue
            try:
                stack.enter_context(writer.held(journal_group(group), (), holder=file.holder))
            except NotAuthorized as error:
                not_known[group] = f"{error}; {GRANT}"
            except Refused:
                raise Refused(
                    f"another run is at work on group {group!r}: wait until it ends, or, if it was killed, until group "
                    f"{journal_group(group)!r} is Empty (10 s); nothing was written"
                ) from None
        facts = replace(journal.facts, not_known=not_known)
        held = _read(writer, replace(journal, facts=facts, writer=writer))
        _refuse_claimed(held)
        yield held


def _refuse_claimed(journal: Journal) -> None:
    refuse_forbidden([check for check in journal.checks if check.verdict is Verdict.REFUSE])


def _read(reader: GroupReader, journal: Journal) -> Journal:
    """Return the journal with the claims that are committed now."""
    found = read_claims(reader, journal.facts.groups, journal.facts.not_known)
    facts = replace(journal.facts, claims=found.claims, not_known=found.not_known)
    offsets = {(group, place): offset for group, each in found.offsets.items() for place, offset in each.items()}
    return replace(journal, facts=facts, offsets=offsets)
