"""Checks of where the offsets are from: the cluster, the source groups and the topics."""

from __future__ import annotations

from collections import defaultdict

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.topics import is_still
from migrate_groups.planning.check import Judgement, Verdict
from migrate_groups.planning.checks.facts import Facts, HandOverFacts, MirrorFacts, RunDeletionFacts
from migrate_groups.planning.checks.rule import Rule, Scope
from migrate_groups.text import counted, did_you_mean, named, some


def cluster(facts: HandOverFacts) -> Judgement:
    """Check that the offsets were read on this cluster, because elsewhere the same offset is another record.

    The verdict is ``not known`` if an offset names no cluster.
    """
    wanted, cluster_id = facts.wanted, facts.survey.cluster_id
    others = {each.cluster_id for each in wanted if each.cluster_id not in (None, cluster_id)}
    if others:
        return Verdict.REFUSE, (
            f"the offsets are from {named('cluster', [*map(str, others)])}, this is {cluster_id}: "
            f"check --bootstrap-server, or {facts.advice.read_again}"
        )
    if any(each.cluster_id is None for each in wanted):
        reason = f"the file names no cluster: make sure that its offsets are from this one, {cluster_id}"
        return Verdict.NOT_KNOWN, reason
    if not wanted:
        return Verdict.NOT_APPLICABLE, f"no offset to compare with this cluster, {cluster_id}"
    return Verdict.PASS, f"the offsets are from this cluster, {cluster_id}"


def cluster_of_receipt(facts: Facts) -> Judgement:
    """Check that this is the cluster to which the earlier write was made."""
    here, earlier = facts.survey.cluster_id, facts.earlier
    if earlier is None:
        return Verdict.NOT_APPLICABLE, f"no receipt to compare with this cluster, {here}"
    source = earlier.translation
    if source is not None and here == source.cluster_id:
        reason = f"this is the old group's cluster, {here}: pass the new groups' cluster, {earlier.cluster_id}"
        return Verdict.REFUSE, f"{reason}, as --bootstrap-server"
    if here != earlier.cluster_id:
        return Verdict.REFUSE, (
            f"the receipt is from cluster {earlier.cluster_id}, this is {here}: check --bootstrap-server"
        )
    return Verdict.PASS, f"the receipt is from this cluster, {here}"


def cluster_of_hand_back(facts: HandOverFacts) -> Judgement:
    """Check that this is the cluster of the hand-over, and that the offsets were read on it."""
    of_receipt = cluster_of_receipt(facts)
    return of_receipt if of_receipt[0] is Verdict.REFUSE else cluster(facts)


def both_clusters(facts: RunDeletionFacts) -> Judgement:
    """Check that each cluster is the one of the source group or of the target groups in the earlier hand-over."""
    earlier = facts.earlier
    if earlier.translation is None:
        return cluster_of_receipt(facts)
    wanted = earlier.translation.cluster_id, earlier.cluster_id
    here = facts.survey.cluster_id, facts.targets.cluster_id
    options = ("the old group is", "--bootstrap-server"), ("the new groups are", "--to-bootstrap-server")
    wrong = [
        f"{groups} on cluster {right}, {option} is {given}"
        for (groups, option), right, given in zip(options, wanted, here, strict=True)
        if right != given
    ]
    if wrong:
        return Verdict.REFUSE, "; ".join(wrong)
    return Verdict.PASS, f"the old group is on this cluster, {here[0]}, the new groups are on {here[1]}"


def clusters_of_move(facts: MirrorFacts) -> Judgement:
    """Name the clusters of a move. It never refuses."""
    return Verdict.PASS, f"from cluster {facts.source.cluster_id} to cluster {facts.survey.cluster_id}"


def hand_over(facts: HandOverFacts) -> Judgement:
    """Check that every partition is handed over by a source group, to only one target group.

    The check warns if an offset has no source group, or if several target groups get the same partition from one
    source group. It refuses if there are no offsets.
    """
    wanted = facts.wanted
    if not wanted:
        return Verdict.REFUSE, f"the file has no offsets to write: {facts.advice.read_again}"
    sources = {each.source_group for each in wanted if each.source_group is not None}
    takers: dict[tuple[str, TopicPartition], set[str]] = defaultdict(set)
    for each in wanted if len({each.group for each in wanted}) > 1 else ():
        if each.source_group is not None:
            takers[each.source_group, each.topic_partition].add(each.group)
    warnings = []
    if without := sum(each.source_group is None for each in wanted):
        warnings.append(f"{counted(without, 'offset')} {facts.advice.unasked}")
    if shared := [f"{partition} ({some(groups)})" for (_, partition), groups in takers.items() if len(groups) > 1]:
        go, their = ("goes", "its") if len(shared) == 1 else ("go", "their")
        warnings.append(
            f"{counted(len(shared), 'partition')} {go} to several groups, each of which processes {their} records: "
            f"{some(shared, most=3)}"
        )
    if warnings:
        return Verdict.WARN, "; ".join(warnings)
    return Verdict.PASS, f"handed over by {some(sources)}"


def same_topics(facts: HandOverFacts) -> Judgement:
    """Check that every topic exists and has the topic id of the snapshot (KIP-516).

    The offsets of the snapshot do not apply to a topic that was deleted and created again. The verdict is ``not known``
    if the snapshot or the brokers (before Kafka 2.8) do not name the id of a topic.
    """
    wanted, survey = facts.wanted, facts.survey
    gone = {each.topic for each in wanted if each.topic not in survey.topics}
    if gone:
        hint = did_you_mean(gone, survey.cluster_facts.topic_names) or (
            "leave deleted topics out with filter --exclude-topic"
        )
        return Verdict.REFUSE, f"{named('topic', gone)} not found: {hint}"
    same = {(each.topic, is_still(each.topic_id, survey.topics[each.topic])) for each in wanted}
    if recreated := {topic for topic, is_same in same if is_same is False}:
        reason = f"{named('topic', recreated)} deleted and created again since the snapshot: {facts.advice.read_again}"
        return Verdict.REFUSE, reason
    if unknown := {topic for topic, is_same in same if is_same is None}:
        return Verdict.NOT_KNOWN, (
            f"the id of {named('topic', unknown)} is not known, so a topic that was deleted and created again is not "
            "recognised: make sure that none was"
        )
    if not same:
        return Verdict.NOT_APPLICABLE, "no topic to compare"
    return Verdict.PASS, f"{counted(len(same), 'topic')}, as in the snapshot"


_WITH_TOPICS = (Scope.HAND_OVER, Scope.HAND_BACK, Scope.SOURCE)
RULES = (
    Rule(name="cluster", scopes=(Scope.HAND_OVER, Scope.FAIL_OVER), judge=cluster, is_first=True),
    Rule(name="cluster", scopes=(Scope.HAND_BACK,), judge=cluster_of_hand_back, is_first=True),
    Rule(name="cluster", scopes=(Scope.ROLLBACK, Scope.DELETE_OF_GROUP), judge=cluster_of_receipt, is_first=True),
    Rule(name="cluster", scopes=(Scope.DELETE_OF_RUN,), judge=both_clusters, is_first=True),
    Rule(name="cluster", scopes=(Scope.MIRROR,), judge=clusters_of_move),
    Rule(name="hand-over", scopes=_WITH_TOPICS, judge=hand_over),
    Rule(name="topics", scopes=(*_WITH_TOPICS, Scope.FAIL_OVER), judge=same_topics),
)
