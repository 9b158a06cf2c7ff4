"""Claim the partitions of a write on the cluster, so that every other run knows what this run hands over.

The claims on a group's partitions are committed offsets of its journal, a group of this tool. Joining the journal is
the lock: only one run at a time does, and a killed run is removed by its session timeout. The claims are read after the
join, and committed with the membership, so that a run that has lost its lock is refused before it writes
(docs/kafka-behaviour.md#holding-a-group).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import NamedTuple

from migrate_groups.errors import MigrateGroupsError, NotAuthorized, Refused
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.migration.clusters import Clusters
from migrate_groups.migration.make_plan import refuse_forbidden
from migrate_groups.migration.ports import GroupReader, GroupWriter, HeldGroup
from migrate_groups.migration.reading.claims import (
    GRANT,
    groups_further_on,
    journals_not_granted,
    read_claims,
    with_givers,
)
from migrate_groups.migration.write_requests import Offsets, divided
from migrate_groups.model.answers import Answer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning import claims as of_partition
from migrate_groups.planning.change import Order
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.checks.handed import handed_by, undone_by
from migrate_groups.planning.checks.journal import GroupAt, JournalFacts, Place
from migrate_groups.planning.checks.registry import judge
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.claims import Claims, ClaimState, Giving
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.text import some


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What this run and others have claimed of the partitions of a write.

    - facts: as they were read.
    - offsets: the offsets that are committed with the claims.
    - writers: commit claims, while this run holds the journals; by cluster, as in `GroupAt`. Empty if nothing is
      claimed.
    """

    facts: JournalFacts
    offsets: Mapping[Place, int] = field(default_factory=dict)
    writers: Mapping[str, GroupWriter] = field(default_factory=dict)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The check ``journal`` of the plan."""
        return judge(Scope.JOURNAL, self.facts)

    def for_plan(self, plan: Plan, receipt: Receipt) -> Journal:
        """Return the journal for the plan that is written. Raises `Refused` if another run has claimed a partition."""
        journal = replace(self, facts=handed_by(self.facts, plan, receipt))
        _refuse_claimed(journal)
        return journal

    def claim(self, now: datetime) -> Mapping[Order, str]:
        """Claim the partitions right before the write; return why partitions could not be claimed.

        Nothing may be written for these partitions. The keys are those of the source and of the target groups.
        """
        if not self.writers:
            return {}
        facts = self.facts
        new: dict[Place, Claims] = {}
        begin, givings = _BEGUN.get(facts.verb), self._givings(now)
        for source, targets in facts.handed.items():
            is_done, of_source = source in facts.done, facts.of(source)
            # Committed also if it is there already: the coordinator refuses it if this run has lost its lock.
            if of_source and (is_done or source in facts.begun):
                new[source] = of_source
            elif not is_done and (of_source or facts.verb is not Verb.DELETE_OFFSETS):
                names = facts.names(source)
                new[source] = of_partition.handed_over(of_source, facts.run, names, now, facts.elsewhere)
            # Until the user is told to start a group, no other run may hand on what this one gives to it or takes away.
            if begin and not is_done:
                giving = givings[source[0]]
                for target in targets:
                    new[target] = begin(facts.of(target), giving)
        return self._commit(new)

    def not_released(self, execution: Execution) -> Execution:
        """Return the record of a way back as it must be saved before `settled`: its claims are not released yet.

        A killed process must not leave it as done, because then the same command would not release them.
        """
        if not self.writers or self.facts.verb not in _RELEASES:
            return execution
        reason = "the claim in the journal is not released yet"
        return execution.updated(change.unknown(reason) for change in execution.changes if change.settled)

    def settled(self, execution: Execution, receipt: Receipt, now: datetime) -> Execution:
        """Record in the journals what came of the write, and return the record of the write.

        A claim whose outcome is not known stays. If a claim can't be released, the outcome of a way back is unknown.
        """
        failed = self.record(receipt.with_execution(execution), now, is_over=execution.is_whole) if self.writers else {}
        if not failed:
            return execution
        if self.facts.verb in _RELEASES:
            return execution.updated(
                change.unknown(failed[change.order])
                for change in execution.changes
                if change.order in failed and change.settled
            )
        names = sorted({f"{topic}-{number}" for _, topic, number in failed})
        return execution.remarked(
            f"the claims on {some(names)} are not up to date ({next(iter(failed.values()))}), so other "
            "runs may be refused: run the same command again"
        )

    def record(self, receipt: Receipt, now: datetime, *, is_over: bool) -> Mapping[Order, str]:
        """Commit the claims that change with the write, and return the errors, with the keys of `claim`.

        receipt: the record of the run with this write. is_over: whether the user is told to start the groups that have
        the partitions now.
        """
        facts = self.facts
        new: dict[Place, Claims] = {}
        partitions = receipt.partition_states
        after_of, owned_again = _AFTER[facts.verb], _OWNED_AGAIN[facts.verb]
        givings = self._givings(now)
        for source, targets in facts.handed.items():
            if source in facts.done:
                continue
            giving, is_back = givings[source[0]], True
            for target in targets:
                group, partition = target
                found = partitions.get((group.name, partition.topic, partition.partition))
                is_back &= (found.state if found else State.NEW) in owned_again
                after = after_of.get(found.state) if found else None
                if after and (is_over or after is not of_partition.arrived):
                    new[target] = after(facts.of(target), giving)
            if is_back:
                names = facts.names(source)
                new[source] = of_partition.returned(facts.of(source), facts.run, names, now, facts.elsewhere)
        return self._commit({place: claims for place, claims in new.items() if claims != facts.of(place)})

    def _givings(self, now: datetime) -> Mapping[GroupAt, Giving]:
        """Return, by source group, that this run gives partitions of it to target groups, or takes them back."""
        run, cluster = self.facts.run, self.facts.source_cluster
        return {group: Giving(run, group.name, now, cluster) for group in self.facts.groups}

    def _commit(self, claims: Mapping[Place, Claims]) -> dict[Order, str]:
        """Commit claims, and note them; return the errors, with the keys of `claim`."""
        facts = self.facts
        failed: dict[Place, str] = {}
        # With the claims of both groups goes the offset at which the source group stopped.
        offsets = {**self.offsets, **facts.stopped_at}
        for source, targets in facts.handed.items():
            if (stopped := facts.stopped_at.get(source)) is not None:
                for target in targets:
                    offsets[target] = stopped
        for cluster, writer in self.writers.items():
            groups = [group for group in facts.groups if group.cluster == cluster and group not in facts.not_known]
            found: dict[GroupAt, dict[TopicPartition, CommittedOffset]] = {group: {} for group in groups}
            for place, of_place in claims.items():
                if (of_group := found.get(place[0])) is not None:
                    of_group[place[1]] = CommittedOffset(
                        offset=offsets.get(place, 0), metadata=of_partition.encode(of_place)
                    )
            by_name = {journal_group(group.name): group for group in groups}
            sent = _sent(writer, {journal: found[group] for journal, group in by_name.items()})
            failed |= {(by_name[journal], partition): error for journal, partition, error in sent}
        known: dict[Place, Claims] = facts.claims  # type: ignore[assignment]
        known |= {place: of_place for place, of_place in claims.items() if place not in failed} if failed else claims
        return self._of_changes(failed)

    def _of_changes(self, failed: Mapping[Place, str]) -> dict[Order, str]:
        """Return the errors of claims by the partitions of the source and target groups that belong together."""
        found: dict[Order, str] = {}
        for source, targets in self.facts.handed.items() if failed else ():
            places = (source, *targets)
            error = next((failed[place] for place in places if place in failed), None)
            if error is not None:
                found |= dict.fromkeys([(group.name, *partition) for group, partition in places], error)
        return found


def _sent(writer: GroupWriter, offsets: Offsets) -> Iterator[tuple[str, TopicPartition, str]]:
    """Commit claims to journals of one cluster; yield the journal, the partition and the error of each that failed."""
    # All at once, because a request has as few claims as fit into one batch, and none of them depends on another.
    commits = [partial(writer.alter_offsets, of_request) for of_request in divided(offsets)]
    for answers in writer.at_once(*commits):
        for journal, of_journal in answers.items():
            for partition, answer in of_journal.items():
                if answer.answer is not Answer.WRITTEN:
                    yield journal, partition, f"not claimed in group {journal}: {answer.error}"


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
_AFTER: Mapping[Verb, Mapping[State, _Change]] = {
    Verb.HAND_OVER: {
        State.HANDED_OVER: of_partition.arrived,
        State.WRITING: of_partition.arrived,  # if the user is told that the group has started
        **dict.fromkeys(_NOTHING_HANDED_OVER, of_partition.not_arrived),
    },
    Verb.ROLLBACK: {State.UNDONE: of_partition.given_back, State.HANDED_OVER: of_partition.not_given_back},
    Verb.HAND_BACK: {State.HANDED_BACK: of_partition.given_back, State.HANDED_OVER: of_partition.not_given_back},
    Verb.DELETE_OFFSETS: {},
}
# The states of the target groups' partitions in which a partition is the source group's again.
_OWNED_AGAIN = {
    Verb.HAND_OVER: _NOTHING_HANDED_OVER,
    Verb.ROLLBACK: {State.UNDONE},
    Verb.HAND_BACK: {State.HANDED_BACK},
    Verb.DELETE_OFFSETS: frozenset[State](),
}


def read_journal(clusters: Clusters[GroupReader | None], plan: Plan, receipt: Receipt, verb: Verb) -> Journal:
    """Return what runs have claimed of the partitions of a plan. Reads only."""
    facts = handed_by(JournalFacts(run=receipt.run, verb=verb), plan, receipt)
    if facts.is_copy or not facts.groups:
        return Journal(facts=facts)
    facts = replace(facts, not_known=_not_granted(clusters, facts))
    sources = {group.name for group in facts.groups if not group.cluster}
    if clusters.source and verb is Verb.HAND_OVER and any(not group.cluster for group in facts.not_known):
        facts = replace(facts, further=tuple(groups_further_on(clusters.source, facts.stopped_at, sources)))
    return _with_givers(clusters, _read(clusters, Journal(facts=facts)))


def refuse_taken(clusters: Clusters[GroupReader | None], receipt: Receipt, verb: Verb) -> None:
    """Raise `Refused` if another run has undone the hand-over of a receipt, or has handed its partitions on since.

    verb: a way back, which the receipt allows or records as done, or the hand-over itself, run again.
    """
    if (journal := _of_hand_over(clusters, receipt, verb)) is not None:
        _refuse_claimed(journal)


class HandedOn(NamedTuple):
    """What other runs have done since with the partitions of a hand-over.

    sources, targets: the partitions of source groups and of target groups, each with what the newest claim says.
    """

    sources: Mapping[Order, str]
    targets: Mapping[Order, str]

    def without(self, targets: Collection[Order]) -> HandedOn:
        """Return this without some partitions of target groups."""
        return self._replace(targets={each: text for each, text in self.targets.items() if each not in targets})

    def in_words(self) -> list[str]:
        """Return what the claims say."""
        return [*self.targets.values(), *self.sources.values()]


NOT_HANDED_ON = HandedOn({}, {})
"""Other runs have done nothing."""


def handed_on(clusters: Clusters[GroupReader], receipt: Receipt) -> HandedOn:
    """Return what other runs have done since with the partitions of a receipt's hand-over, as far as claims show it."""
    journal = _of_hand_over(clusters, receipt, Verb.ROLLBACK)
    if journal is None:
        return NOT_HANDED_ON
    facts = journal.facts

    def of_others(places: Iterable[Place]) -> dict[Order, str]:
        return {
            (group.name, *partition): f"{partition} {of_partition.in_words(claims[0], group.name)}"
            for group, partition in places
            if (claims := facts.of((group, partition))) and claims[0].run != receipt.run
        }

    return HandedOn(of_others(facts.handed), of_others(chain.from_iterable(facts.handed.values())))


def claim_started(clusters: Clusters[GroupWriter | None], file: ReceiptFile, now: datetime) -> None:
    """Claim for the target groups what they got, after `say_over` has told the user that they have started.

    Their claims say that the outcome is not known if the run was killed before, or had ended with exit code 4; other
    runs are then refused. Raises `Refused`.
    """
    receipt = file.receipt
    journal = _of_hand_over(clusters, receipt, Verb.HAND_OVER)
    if journal is None or not any(
        claims and claims[0].run == receipt.run and claims[0].state is ClaimState.ARRIVING
        for claims in journal.facts.claims.values()
    ):
        return
    with locked(clusters, journal, file) as held:
        held.record(receipt, now, is_over=True)


def _of_hand_over(clusters: Clusters[GroupReader | None], receipt: Receipt, verb: Verb) -> Journal | None:
    """Return what runs have claimed of the hand-over in a receipt; None if it has claimed nothing.

    verb: what is to be done with the hand-over.
    """
    if receipt.last_hand_over is None or receipt.is_copy:
        return None
    facts = undone_by(JournalFacts(run=receipt.run, verb=verb), receipt)
    return _read(clusters, Journal(facts=replace(facts, not_known=_not_granted(clusters, facts))))


@contextmanager
def locked(writers: Clusters[GroupWriter | None], journal: Journal, file: ReceiptFile) -> Iterator[Journal]:
    """Keep other runs from the groups of a write during a ``with`` block, and yield what they have claimed before.

    file: the receipt, which this process has locked. A process that was killed with the same receipt keeps none out.
    Nothing waits: raises `Refused` if another run is at work on one of the groups, or has claimed partitions.
    """
    if journal.facts.is_copy or not journal.facts.handed:
        yield journal
        return
    with ExitStack() as stack:
        not_known = dict(journal.facts.not_known)
        holds: dict[GroupAt, AbstractContextManager[HeldGroup]] = {}
        for group in journal.facts.groups:
            writer = writers.of(group.cluster)
            if group not in not_known and writer is not None:
                holds[group] = writer.held(journal_group(group.name), (), holder=file.holder)
        for group, error in _entered(writers.source or writers.target, holds, stack).items():
            if isinstance(error, NotAuthorized):
                not_known[group] = f"{error}; {GRANT}"
            elif isinstance(error, Refused):
                raise Refused(
                    f"another run is at work on group {group.name!r}: wait until it ends, or, if it was killed, until "
                    f"group {journal_group(group.name)!r} is Empty (10 s); nothing was written"
                )
            else:
                raise error
        facts = replace(journal.facts, not_known=not_known)
        of_clusters = {cluster: writers.of(cluster) for cluster in _by_cluster(facts)}
        claiming = {cluster: writer for cluster, writer in of_clusters.items() if writer is not None}
        held = _with_givers(writers, _read(writers, replace(journal, facts=facts, writers=claiming)))
        _refuse_claimed(held)
        yield held


def _entered(
    reader: GroupReader | None, holds: Mapping[GroupAt, AbstractContextManager[HeldGroup]], stack: ExitStack
) -> dict[GroupAt, MigrateGroupsError]:
    """Enter contexts, put them on the stack, and return the errors of those that can't be entered.

    The first one is entered alone, so that of two runs that begin at once, one gets it and goes on. The others are
    entered side by side, because each takes up to group.initial.rebalance.delay.ms.
    """
    failed: dict[GroupAt, MigrateGroupsError] = {}

    def enter(group: GroupAt) -> None:
        try:
            holds[group].__enter__()
        except MigrateGroupsError as error:
            failed[group] = error

    groups = [*holds]
    for part in (groups[:1], groups[1:]):
        is_over = any(not isinstance(error, NotAuthorized) for error in failed.values())
        if part and reader is not None and not is_over:
            reader.at_once(*(partial(enter, group) for group in part))
            for group in part:
                if group not in failed:
                    stack.push(holds[group])
    return failed


def _refuse_claimed(journal: Journal) -> None:
    refuse_forbidden([check for check in journal.checks if check.verdict is Verdict.REFUSE])


def _not_granted(clusters: Clusters[GroupReader | None], facts: JournalFacts) -> dict[GroupAt, str]:
    """Return why the claims of groups can't be read or made; empty if they can."""
    not_known: dict[GroupAt, str] = {}
    for cluster, names in _by_cluster(facts).items():
        client = clusters.of(cluster)
        if client is None:
            not_known |= {GroupAt(name, cluster): _not_named(facts) for name in names}
        else:
            not_known |= {GroupAt(name, cluster): why for name, why in journals_not_granted(client, names).items()}
    return not_known


def _read(clusters: Clusters[GroupReader | None], journal: Journal) -> Journal:
    """Return the journal with the claims that are committed now."""
    facts = journal.facts
    claims: dict[Place, Claims] = {}
    offsets: dict[Place, int] = {}
    not_known = dict(facts.not_known)
    for cluster, names in _by_cluster(facts).items():
        client = clusters.of(cluster)
        if client is None:
            continue
        unknown = {group.name: why for group, why in facts.not_known.items() if group.cluster == cluster}
        found = read_claims(client, names, unknown)
        not_known |= {GroupAt(name, cluster): why for name, why in found.not_known.items()}
        for name, of_group in found.claims.items():
            claims |= {
                (GroupAt(name, cluster), place): of_place
                for place, of_place in of_group.items()
                if not of_partition.is_copied(of_place, cluster or facts.here)
            }
        for name, at in found.offsets.items():
            offsets |= {(GroupAt(name, cluster), place): offset for place, offset in at.items()}
    return replace(journal, facts=replace(facts, claims=claims, not_known=not_known), offsets=offsets)


def _with_givers(clusters: Clusters[GroupReader | None], journal: Journal) -> Journal:
    """Return the journal of a hand-over, at a known offset, with what its source group was given before."""
    if journal.facts.verb is not Verb.HAND_OVER or clusters.source is None:
        return journal
    return replace(journal, facts=with_givers(clusters.source, journal.facts, journal.offsets))


def _not_named(facts: JournalFacts) -> str:
    if facts.verb is Verb.HAND_OVER:
        return f"cluster {facts.source_cluster} was not asked"
    return (
        f"cluster {facts.source_cluster} is not named, so the claims there stay: pass it as --bootstrap-server, and "
        "this one as --to-bootstrap-server"
    )


def _by_cluster(facts: JournalFacts) -> dict[str, list[str]]:
    """Return the names of the groups by cluster."""
    names: dict[str, list[str]] = defaultdict(list)
    for group in facts.groups:
        names[group.cluster].append(group.name)
    return names
