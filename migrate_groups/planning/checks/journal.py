"""Check that no other run has claimed the partitions of a write, as the journals of its groups say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.planning.claims import Claim, Claims, ClaimState, gives, in_words
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import counted, named, shell_command, some

_GONE_SINCE = (
    "its committed offset is gone since, and the receipt has that from before: set the right one with rewind and apply"
)
# A rollback would then restore what the target group had before it got the partition for the first time.
_BACK_SINCE = (
    "this run had handed it over before that: undo that run, or, to hand it over once more, name another run directory "
    "(--run-dir), with apply another receipt (--receipt)"
)
_BOTH = "pass --copy if both groups are to process the same records"
_NOT_OWNED = (ClaimState.HANDED_OVER, ClaimState.ARRIVING)


class GroupAt(NamedTuple):
    """A group. cluster: the id of its cluster; empty if it is that of the source groups."""

    name: str
    cluster: str = ""


Place = tuple[GroupAt, TopicPartition]
"""A group and a partition: the key of claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFacts:
    """What a write hands over, or undoes, and what the runs of this tool have claimed of it.

    - run: the id of the run that writes.
    - verb: the kind of the write.
    - handed: the target groups of each partition that a source group hands over, or has handed over in this run, with
      the partition there.
    - targets: of a hand-over, the names of the target groups of each source group.
    - unsourced: of a hand-over, the partitions whose target group gets another offset without a source group.
    - stopped_at: the offset at which the source group stopped, of each of these partitions that has one.
    - here: the id of the source groups' cluster.
    - elsewhere: the id of the target groups' cluster, if it is another one; otherwise empty.
    - begun: those of the partitions for which this run has begun this way back, or has completed it.
    - done: those of the partitions of which this way back has nothing left to do, because this run has undone their
      hand-over, or because brokers refused it. Nobody else may have them, because the source groups are started.
    - resumed: of a hand-over, those of the partitions whose hand-over this run has begun, by its receipt, and has not
      undone.
    - restored: those of the partitions whose committed offset is gone, so that an earlier one is handed over.
    - in_place: those of the partitions whose target groups have the offsets already, so that nothing is written.
    - is_copy: whether the groups get a copy, so that claims don't matter (the option ``copy``).
    - claims: the claims on the partitions of the source and target groups.
    - not_known: by group, why its claims are not known, and what to do.
    - further: if some are not known, other groups that consume the partitions from the same offsets on.
    - givers: of partitions that an earlier run handed over to the source group, its claim, and the committed offset of
      the group that gave them, if it has committed since.
    """

    run: str
    verb: Verb
    handed: Mapping[Place, Sequence[Place]] = field(default_factory=dict)
    targets: Mapping[GroupAt, Collection[str]] = field(default_factory=dict)
    unsourced: frozenset[Place] = frozenset()
    stopped_at: Mapping[Place, int] = field(default_factory=dict)
    here: str = ""
    elsewhere: str = ""
    begun: frozenset[Place] = frozenset()
    done: frozenset[Place] = frozenset()
    resumed: frozenset[Place] = frozenset()
    restored: frozenset[Place] = frozenset()
    in_place: frozenset[Place] = frozenset()
    is_copy: bool = False
    claims: Mapping[Place, Claims] = field(default_factory=dict)
    not_known: Mapping[GroupAt, str] = field(default_factory=dict)
    further: tuple[str, ...] = ()
    givers: Mapping[Place, tuple[Claim, int]] = field(default_factory=dict)

    @property
    def groups(self) -> list[GroupAt]:
        """The groups whose claims matter: the source and target groups, sorted.

        If the target groups are on another cluster, a deletion of the source groups' offsets leaves theirs out.
        """
        groups = {group for group, _ in (*self.handed, *self.unsourced)}
        if not (self.elsewhere and self.verb is Verb.DELETE_OFFSETS):
            groups |= {group for targets in self.handed.values() for group, _ in targets}
        return sorted(groups)

    @property
    def source_cluster(self) -> str:
        """The source groups' cluster as the journals of the target groups name it: empty if it is theirs."""
        return self.here if self.elsewhere else ""

    def names(self, source: Place) -> tuple[str, ...]:
        """Return the names of the target groups of a partition."""
        return tuple([group.name for group, _ in self.handed[source]])  # faster than a generator, for each partition

    def of(self, place: Place) -> Claims:
        """Return the claims on a partition of a group; empty if there are none or they are not known."""
        return self.claims.get(place, ())


def journal(facts: JournalFacts) -> Judgement | None:
    """Check that no run has claimed that the partitions went to other groups than those of this run.

    A way back, such as rollback, is also refused if a target group has handed the partitions over to another group. The
    verdict is ``not known`` if the claims of a group can't be read or made. None if no source group hands over, and no
    target group has handed over what it gets.
    """
    if facts.is_copy and facts.handed:
        return Verdict.NOT_APPLICABLE, "a copy, so what other runs handed over is not looked at (--copy)"
    complaints: dict[tuple[str, str], list[str]] = defaultdict(list)
    has_claims = any(facts.claims.values())
    of_topics = _of_topics(facts)
    for source in facts.handed if has_claims else ():
        group, partition = source
        claims = facts.of(source) or of_topics.get((group, partition.topic), ())
        for complaint in _complaints(facts, source, claims):
            complaints[complaint].append(str(partition))
    for partition, complaint in _given_away(facts):
        complaints[complaint].append(str(partition))
    if complaints:
        found = [f"{some(places)} {what}: {advice}" for (what, advice), places in complaints.items()]
        return Verdict.REFUSE, some(found, 3)
    if not facts.handed:
        return None
    if facts.not_known:
        reasons = dict.fromkeys(facts.not_known.values())
        if facts.further:
            what = f"{named('group', facts.further)} with members on these topics and commits at or after these offsets"
            reasons[f"is it one of these? {what}"] = None
        return Verdict.NOT_KNOWN, (
            "it is not known whether another run handed over partitions of "
            f"{some({group.name for group in facts.not_known})}: {some(reasons, 4)}"
        )
    sources = some({group.name for group, _ in facts.handed})
    partitions = f"{counted(len(facts.handed), 'partition')} of {sources}"
    if not has_claims:
        return Verdict.PASS, f"no run has claimed {partitions}"
    claimed = sum(bool(facts.of(source)) for source in facts.handed)
    return Verdict.PASS, f"no other run has handed over {partitions}; {claimed} with claims"


def _of_topics(facts: JournalFacts) -> Mapping[tuple[GroupAt, str], Claims]:
    """Return the newest claims of other runs on each topic of a group, for partitions that a hand-over finds without.

    Such a partition was added to the topic after the topic was handed over.
    """
    newest: dict[tuple[GroupAt, str], Claims] = {}
    for (group, partition), claims in facts.claims.items() if facts.verb is Verb.HAND_OVER else ():
        known = newest.get((group, partition.topic))
        if claims and claims[0].run != facts.run and (known is None or known[0].at < claims[0].at):
            newest[group, partition.topic] = claims
    return newest


def _complaints(facts: JournalFacts, source: Place, claims: Claims) -> Iterator[tuple[str, str]]:
    """Yield what speaks against the write of a partition of a source group, and what to do.

    claims: those on the partition in the journal of the source group.
    """
    if source in facts.done:
        if claims and claims[0].state in _NOT_OWNED:
            yield _claimed_since(facts, source, claims[0])
        return
    if claims and claims[0].state is ClaimState.ARRIVED:
        if source in facts.restored:
            yield _found(facts, source[0].name, claims[0]), _GONE_SINCE
            return
        if source in facts.resumed and any(_is_hand_over_of(facts.run, claim) for claim in claims):
            yield _found(facts, source[0].name, claims[0]), _BACK_SINCE
            return
    if source in facts.givers and facts.givers[source][1] > facts.stopped_at.get(source, 0):
        yield _consumed_since(source[0].name, facts.givers[source][0])
        return
    is_own = gives(claims, facts.names(source), facts.elsewhere) and not _is_repeated(facts, source, claims[0])
    complaint = _COMPLAINTS[facts.verb](facts, source, claims[0]) if claims and not is_own else None
    if complaint is not None:
        yield complaint
    elif is_own or facts.verb is not Verb.HAND_OVER:
        yield from _handed_on(facts, source)
    else:
        yield from _not_arrived_yet(facts, source)


def _is_hand_over_of(run: str, claim: Claim) -> bool:
    return claim.run == run and claim.state is ClaimState.HANDED_OVER


def _is_repeated(facts: JournalFacts, source: Place, newest: Claim) -> bool:
    """Return whether this hand-over would write again what another run gave to the same target groups.

    These may have processed records since, which would be processed twice. Another copy of this run's directory is
    another run, although its claims have the same id.
    """
    is_other = newest.run != facts.run or source not in facts.resumed
    return facts.verb is Verb.HAND_OVER and is_other and source not in facts.in_place


def _consumed_since(group: str, arrival: Claim) -> tuple[str, str]:
    (giver,) = arrival.groups
    return in_words(arrival, group), (
        f"{giver!r} has committed higher offsets since, so records would be processed twice: stop its consumers, and, "
        f"if {group!r} has not started, run the command of that run again; otherwise set the offsets of {group!r} with "
        "rewind and apply"
    )


def _of_hand_over(facts: JournalFacts, source: Place, newest: Claim) -> tuple[str, str] | None:
    if newest.state not in _NOT_OWNED:
        return None
    if newest.state is ClaimState.ARRIVING:
        return _found(facts, source[0].name, newest), _not_known(source[0])
    names = some([*map(repr, newest.groups)])
    if newest.cluster == facts.elsewhere and {*newest.groups} == {*facts.names(source)}:
        all_targets = () if newest.cluster else sorted(facts.targets.get(source[0], newest.groups))
        return _found(facts, source[0].name, newest), (
            f"run the command again with the run directory of that run; if it is lost, and {names} has not started, "
            f"{_forget(source[0].name, *all_targets)}"
        )
    if newest.cluster:  # a rollback there does not reach this cluster
        return _found(facts, source[0].name, newest), (
            f"go on from {names} there; or, if the topics are back here since, {_forget(source[0].name)}; or {_BOTH}"
        )
    return _found(facts, source[0].name, newest), (
        f"go on from {names}, undo that run first, or {_BOTH}; or, if the topics are back since without this tool, "
        f"{_forget(source[0].name)}"
    )


def _given_away(facts: JournalFacts) -> Iterator[tuple[TopicPartition, tuple[str, str]]]:
    """Yield each partition that a group has handed over, and for which it gets an offset without a source group.

    With it, yield what a run did with it, and what to do.
    """
    for group, partition in sorted(facts.unsourced) if not facts.is_copy else ():
        claims = facts.of((group, partition))
        if claims and claims[0].state is ClaimState.HANDED_OVER:
            advice = f"go on from {some([*map(repr, claims[0].groups)])}, undo that run first, or {_BOTH}"
            yield partition, (_found(facts, group.name, claims[0]), advice)


def _of_way_back(facts: JournalFacts, source: Place, newest: Claim) -> tuple[str, str] | None:
    if source in facts.begun and newest.state not in _NOT_OWNED:
        return None
    return _claimed_since(facts, source, newest)


def _claimed_since(facts: JournalFacts, source: Place, newest: Claim) -> tuple[str, str]:
    is_undone = newest.state is ClaimState.RETURNED
    return _found(facts, source[0].name, newest), (
        "nothing of this run is left there" if is_undone else "undo that run first, or go on from there"
    )


_COMPLAINTS: Mapping[Verb, Callable[[JournalFacts, Place, Claim], tuple[str, str] | None]] = {
    Verb.HAND_OVER: _of_hand_over,
    Verb.ROLLBACK: _of_way_back,
    Verb.HAND_BACK: _of_way_back,
    Verb.DELETE_OFFSETS: _claimed_since,
}


def _handed_on(facts: JournalFacts, source: Place) -> Iterator[tuple[str, str]]:
    """Yield that a target group has handed the partition over to another group since this run handed it over."""
    if facts.verb is Verb.DELETE_OFFSETS:
        return  # the source group's offset is not needed for that
    for place in facts.handed[source]:
        claims = facts.of(place)
        is_back = gives(claims, [source[0].name], facts.source_cluster)
        is_ours = is_back and (source in facts.begun or claims[0].run == facts.run)
        if claims and claims[0].state is ClaimState.HANDED_OVER and not is_ours:
            yield _found(facts, place[0].name, claims[0]), "undo that run first"
    yield from _not_arrived_yet(facts, source)


def _not_arrived_yet(facts: JournalFacts, source: Place) -> Iterator[tuple[str, str]]:
    """Yield that another run has begun to hand the partition over to a target group, with an unknown outcome."""
    for place in facts.handed[source]:
        claims = facts.of(place)
        if claims and claims[0].state is ClaimState.ARRIVING and claims[0].run != facts.run:
            yield _found(facts, place[0].name, claims[0]), _not_known(place[0])


def _not_known(group: GroupAt) -> str:
    there = f" on cluster {group.cluster}" if group.cluster else ""
    return (
        "its outcome is not known: run that command again first; if its run directory is lost, "
        f"{_forget(group.name)}{there}"
    )


def _forget(*groups: str) -> str:
    return f"forget the claims with migrate-groups {shell_command('delete-group', [*map(journal_group, groups)])}"


def _found(facts: JournalFacts, group: str, claim: Claim) -> str:
    """Return a claim in words."""
    copy = " (another copy of this run directory)" if claim.run == facts.run else ""
    return f"{in_words(claim, group)}{copy}"


RULES = (Rule(name="journal", scopes=(Scope.JOURNAL,), judge=journal),)
