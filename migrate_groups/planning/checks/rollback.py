"""The checks of a rollback: whether the target groups have started, and where the source groups continue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset, LogRange, TopicPartition, offset_in_words
from migrate_groups.model.topics import is_still
from migrate_groups.planning.change import Relation
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import RollbackFacts
from migrate_groups.planning.checks.rule import NOTHING_TO_COMPARE, Rule, Scope, refused_if_any
from migrate_groups.planning.checks.source import NO_SOURCE_GROUP, live, lost_after_consuming, running
from migrate_groups.planning.run_states import State, Verb
from migrate_groups.text import counted, named, shell_command, some


class _Placed(NamedTuple):
    """A group's committed offset, or the one that it gets."""

    group: str
    partition: TopicPartition
    committed: CommittedOffset | None


def same_topics(facts: RollbackFacts) -> Judgement:
    """Check that no topic was deleted, or deleted and created again, since the write that the rollback undoes.

    The verdict is ``not known`` if the id of a topic is not known.
    """
    changed = sorted({change.topic for change in facts.changes})
    then, now = facts.earlier.topic_ids, facts.survey.topics
    # A recreated topic has another topic id (KIP-516), and starts at offset 0.
    is_same = {topic: is_still(then.get(topic), now.get(topic)) for topic in changed}
    recreated = [topic for topic in changed if is_same[topic] is False]
    unknown = [topic for topic in changed if is_same[topic] is None]
    write = "hand-over" if facts.earlier.verb is Verb.HAND_OVER else "deletion"
    complaint = f"deleted, or created again, since the {write}: set offsets on the new topic with rewind and apply"
    if unknown and not recreated:
        return Verdict.NOT_KNOWN, (
            f"the id of {named('topic', unknown)} is not known, so a topic that was created again since the {write} is "
            "not recognised: make sure that none was"
        )
    return refused_if_any(recreated, complaint, f"the topics are those of the {write}", compared=changed)


def nobody_in(facts: RollbackFacts) -> Judgement:
    """Check that no group whose offsets are restored has members."""
    groups = {group for group, *_ in facts.states}
    members = live(facts.survey.groups, dict.fromkeys(sorted(groups)))
    return refused_if_any(members, "stop these members first", f"no members in {some(groups)}", compared=groups)


def not_committed_since(facts: RollbackFacts) -> Judgement:
    """Check that no group has committed since the write that the rollback undoes, and that none has lost an offset.

    The verdict is ``not known`` if an interrupted rollback may have deleted an offset. A commit after that which has
    expired, or was deleted, would leave the same state.
    """
    earlier, states, now = facts.earlier, facts.states.values(), facts.survey.now
    since = [
        f"{group} {topic}-{number}"
        for group, topic, number in facts.receipt.added(facts.survey.topics)
        if now((group, topic, number))
    ]
    gone: list[str] = []
    maybe_deleted: list[str] = []
    after_rollback: list[str] = []
    for partition in states:
        change, committed = partition.change, now(partition.change.order)
        name, relation = f"{change.group} {change.topic_partition}", change.relation(committed)
        # The offset from before the run passes too, if the new one was not read back, or if the write is already
        # undone.
        is_replaced = partition.state is State.HANDED_OVER and change.replaced
        if relation is Relation.OURS or (relation is Relation.BEFORE and not is_replaced):
            if partition.state is State.UNDOING and change.after is not None and committed is None:
                maybe_deleted.append(name)
            continue
        (since if committed else gone).append(name)
        if committed and partition.state is State.UNDOING and earlier.verb is Verb.HAND_OVER:
            was = offset_in_words(change.before)
            after_rollback.append(f"{name} at {committed.offset} (before the hand-over: {was})")
    if since:
        return Verdict.REFUSE, _committed_since(facts, since, after_rollback)
    if gone:
        complaint = (
            "the committed offset expired or was deleted, so it is not known how far the group read: set it with apply"
        )
        return Verdict.REFUSE, f"{some(gone, 3)}: {complaint}"
    if maybe_deleted:
        complaint = (
            "may have been deleted by the rollback that was interrupted, so a commit since then that is deleted or "
            "expired is not recognised: make sure that the group has not run"
        )
        return Verdict.NOT_KNOWN, f"{some(maybe_deleted, 3)}: {complaint}"
    fine = (
        "no target group has committed since the hand-over"
        if earlier.verb is Verb.HAND_OVER
        else "the group has not committed since the deletion"
    )
    return refused_if_any((), "", fine, compared=states)


def _committed_since(facts: RollbackFacts, since: Sequence[str], after_rollback: Sequence[str]) -> str:
    """Return that groups have committed since the write, and what to do.

    since: the partitions. after_rollback: those that a rollback may have set or deleted before, with their offsets.
    """
    earlier, states = facts.earlier, facts.states.values()
    if earlier.verb is not Verb.HAND_OVER:
        return f"{some(since, 3)}: the group has committed since the deletion: set the right offsets with apply"
    if earlier.translation is not None:
        return (
            f"{some(since, 3)}: the group has committed since the move to this cluster, and a rollback would lose how "
            "far it has read: let it run on here"
        )
    if facts.receipt.is_copy or not any(partition.sources for partition in states):
        delete = shell_command("delete-group", sorted({partition.change.group for partition in states}))
        return (
            f"{some(since, 3)}: the group has committed since the write, and no old group can take that back: stop it, "
            f"and delete it with migrate-groups {delete}, or set other offsets with rewind and apply --on-existing "
            "overwrite"
        )
    if after_rollback:
        return (
            f"{some(after_rollback, 3)}: another client committed after the rollback's write, so it is not known how "
            "far the group has read: if it has not run, set by hand what it had before the hand-over, and run rollback "
            "again; otherwise set the old group's offset with rewind and apply"
        )
    return (
        f"{some(since, 3)}: the group has committed since the hand-over: use hand-back, which moves the source group "
        "forward"
    )


def source_group(facts: RollbackFacts) -> Judgement:
    """Check that the source groups will continue from the offsets at which they stopped.

    The check refuses if a source group lost an offset, and has members, so that the offset can't be set again, or has
    consumed since the hand-over. It warns if a lost offset will be set again, or if a source group has committed since
    the hand-over. The verdict is ``not known`` if the group is on another cluster.
    """
    if (there := facts.earlier.translation) is not None:
        reason = f"group {there.group} on cluster {there.cluster_id} is not read: check its offsets with describe"
        return Verdict.NOT_KNOWN, reason
    if not facts.stopped:
        reason = "a copy: the old group goes on by itself" if facts.receipt.is_copy else NO_SOURCE_GROUP
        return Verdict.NOT_APPLICABLE, reason
    lost, had_none, moved = _source_offsets(facts)
    blocked = [
        # Brokers accept an offset only for a consumer group without members.
        f"{group} {has} a committed offset for {some(partitions)}, and {reason}"
        for has, of_group in (("no longer has", lost), ("never had", had_none))
        for group, partitions in of_group.items()
        for reason in _can_not_get_an_offset(facts.survey.groups[group])
    ]
    if blocked:
        return Verdict.REFUSE, f"{some(blocked, most=3)}; stop its members, so that these offsets can be set"
    if consumed := lost_after_consuming(facts, facts.stopped):
        return Verdict.REFUSE, consumed
    found = [
        f"{meaning}: " + "; ".join(f"{group} {some(partitions)}" for group, partitions in of_group.items())
        for meaning, of_group in (
            ("expired or deleted, set again from the receipt", lost),
            ("without a committed offset before, gets the one that was handed over", had_none),
            ("committed since the hand-over, and left as it is", moved),
        )
        if of_group
    ]
    if found:
        return Verdict.WARN, "; ".join(found)
    return Verdict.PASS, "the source group has its committed offsets"


_ByGroup = Mapping[str, Sequence[str]]


def _source_offsets(facts: RollbackFacts) -> tuple[_ByGroup, _ByGroup, _ByGroup]:
    """Return the source groups' partitions in which they do not have the offset at which they stopped, by group.

    First those whose offset is gone since, then those that have never had one, then those with another offset.
    """
    lost, had_none, moved = (defaultdict[str, list[str]](list) for _ in range(3))
    without = {
        (source, *partition.change.topic_partition)
        for partition in facts.receipt.to_restore.values()
        if partition.change.source_committed is None
        for source in partition.sources
    }
    for order, change in facts.stopped.items():
        committed, after = facts.survey.now(order), change.after
        if committed is None:
            (had_none if order in without else lost)[change.group].append(str(change.topic_partition))
        elif after is not None and committed.offset != after.offset:
            moved[change.group].append(f"{change.topic_partition} {after.offset} → {committed.offset}")
    return lost, had_none, moved


def _can_not_get_an_offset(group: GroupDescription) -> list[str]:
    return [reason] if (reason := group.not_a_consumer_group) else running(group, None)


def in_range(facts: RollbackFacts) -> Judgement:
    """Check that all groups continue within the log; outside it, consumers apply auto.offset.reset.

    The check refuses if an offset that a source group has lost is outside the log, and warns about other offsets. The
    verdict is ``not known`` if the log of another offset can't be read.
    """
    bounds, now = facts.survey.bounds, facts.survey.now
    restored = [change for change in facts.changes if change.source_group is not None]
    undone = [change for change in facts.changes if change.source_group is None]
    lost = [_Placed(change.group, change.topic_partition, change.after) for change in restored]
    others = [_Placed(change.group, change.topic_partition, change.after) for change in undone]
    others += [_Placed(change.group, change.topic_partition, now(order)) for order, change in facts.stopped.items()]
    if missing := [str(each.partition) for each in lost if each.partition not in bounds]:
        return Verdict.REFUSE, f"{some(missing, 3)}: no leader, so the log end is not known: run again later"
    if out := _outside(lost, bounds):
        advice = "set an offset of the source group there with rewind and apply, and run again"
        return Verdict.REFUSE, f"{some(out, 3)}: outside the log by now: {advice}"
    if facts.survey.logs_unread:
        reason = "the logs could not be read, so it is not known whether offsets are within"
        return Verdict.NOT_KNOWN, f"{reason}: {facts.survey.logs_unread}"
    if out := _outside(others, bounds):
        return Verdict.WARN, f"{some(out, 3)}: outside the log by now, so auto.offset.reset decides there"
    compared = [each for each in (*lost, *others) if each.committed is not None]
    if without_leader := [str(each.partition) for each in compared if each.partition not in bounds]:
        return Verdict.NOT_KNOWN, f"{some(without_leader, 3)}: no leader, so the log end is not known"
    if not compared:
        return Verdict.NOT_APPLICABLE, NOTHING_TO_COMPARE
    return Verdict.PASS, "the offsets of all groups are within the log"


def _outside(offsets: Iterable[_Placed], bounds: Mapping[TopicPartition, LogRange]) -> list[str]:
    """Return the groups' offsets that are outside the log, as texts. A partition without a leader is left out."""
    return [
        f"{group} {partition} at {committed.offset}"
        for group, partition, committed in offsets
        if committed is not None
        and (log := bounds.get(partition)) is not None
        and not log.start <= committed.offset <= log.end
    ]


def earlier_deletions(facts: RollbackFacts) -> Judgement | None:
    """Warn if earlier deletions of offsets are not undone by the rollback. None if there are none."""
    undone = {change.order for change in facts.changes}
    left = [change for change in facts.receipt.deleted if change.order not in undone]
    if not left:
        return None
    topics = {change.topic for change in left}
    reason = f"{counted(len(left), 'offset')} of {named('topic', topics)}, deleted before that, stay deleted until the "
    return Verdict.WARN, f"{reason}next rollback of this receipt"


RULES = (
    Rule(name="topics", scopes=(Scope.ROLLBACK,), judge=same_topics),
    Rule(name="targets", scopes=(Scope.ROLLBACK,), judge=nobody_in),
    Rule(name="not committed since", scopes=(Scope.ROLLBACK,), judge=not_committed_since),
    Rule(name="source group", scopes=(Scope.ROLLBACK,), judge=source_group),
    Rule(name="in range", scopes=(Scope.ROLLBACK,), judge=in_range),
    Rule(name="earlier deletions", scopes=(Scope.ROLLBACK,), judge=earlier_deletions),
)
