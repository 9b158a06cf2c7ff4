"""Delete the moved topics' committed offsets from the source group, after the target groups have taken over."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from migrate_groups.errors import Refused
from migrate_groups.migration.clusters import Clusters
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import committed_of, describe_groups
from migrate_groups.migration.reading.survey import facts_of_way_back, permissions_unless_hidden, unread
from migrate_groups.migration.receipt_refusals import check_clusters_named, refuse_by_record
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Change, sorted_changes
from migrate_groups.planning.checks.facts import RunDeletionFacts
from migrate_groups.planning.checks.permission import needed_on_way_back
from migrate_groups.planning.checks.registry import planned, read_on
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.checks.target import options_of_write
from migrate_groups.planning.execution import Source
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import WORKS, Verb


def delete_source_offsets(clusters: Clusters[GroupReader], receipt: Receipt) -> Plan:
    """Return the plan that deletes the source group's committed offsets of partitions that target groups took over.

    A check refuses if a target group lacks an offset, or if the source group still consumes.

    Raises `Refused` if the receipt (the record of the run) forbids it or has nothing to delete; `UsageError` if
    the target groups' cluster is missing or not needed.
    """
    refuse_by_record(receipt, Verb.DELETE_OFFSETS)
    states = [
        partition for partition in receipt.partition_states.values() if partition.takes(Verb.DELETE_OFFSETS, *WORKS)
    ]
    moved = [
        (partition.change, source)
        for partition in states
        if partition.change.after
        for source in partition.handed_over_by
    ]
    earlier = receipt.last_hand_over
    if earlier is None or (not moved and not receipt.is_done(Verb.DELETE_OFFSETS)):
        raise Refused("nothing to delete: this run handed over no offset of a source group")
    check_clusters_named(earlier, is_target_named=not clusters.is_one)
    here = unread(clusters.source)
    facts = RunDeletionFacts(
        survey=here,
        targets=here if clusters.is_one else unread(clusters.target),
        options=earlier.options,
        receipt=receipt,
        earlier=earlier,
        moved=moved,
    )
    facts = read_on(Scope.DELETE_OF_RUN, facts, lambda known: _read(clusters, known))
    return planned(Scope.DELETE_OF_RUN, facts)


def _read(clusters: Clusters[GroupReader], facts: RunDeletionFacts) -> RunDeletionFacts:
    """Return the facts with what was read of the clusters, and with the deletions that follow from it."""
    reader, there = clusters.source, clusters.target
    sources = {source.order: source for _, source in facts.moved}
    targets = {change.group for change, _ in facts.moved}
    needed = needed_on_way_back(list(map(_deletion, sources.values())), targets if clusters.is_one else ())
    permissions = permissions_unless_hidden(reader, needed)
    if not clusters.is_one:
        permissions_unless_hidden(there, needed_on_way_back((), targets))
    topics: dict[str, set[str]] = defaultdict(set)
    for source in sources.values():
        topics[source.group].add(source.partition.topic)
    survey = replace(
        facts.survey,
        cluster_facts=facts_of_way_back(reader, permissions),
        committed=committed_of(reader, sources),
        groups=describe_groups(reader, sorted(topics)),
    )
    refused = _refused(there, facts.receipt)
    orders = dict.fromkeys(change.order for change in (*(change for change, _ in facts.moved), *refused))
    return replace(
        facts,
        survey=survey,
        targets=replace(
            facts.targets, committed=committed_of(there, orders), groups=describe_groups(there, sorted(targets))
        ),
        options=options_of_write(facts.options, topics),
        changes=sorted_changes(_deletion(source, survey.now(order)) for order, source in sources.items()),
        needed=needed,
        topics=topics,
        refused=refused,
        topic_ids=facts.earlier.topic_ids if clusters.is_one else {},
    )


def _refused(reader: GroupReader, receipt: Receipt) -> list[Change]:
    """Return the changes that brokers refused in the hand-over, without the changes of deleted topics.

    reader: reads the target groups.
    """
    # If several target groups get the same partition (fan_out), one of them may still need the offset to delete.
    changes = [partition.change for partition in receipt.refused.values() if partition.handed_over_by]
    topics = reader.describe_topics({change.topic for change in changes}) if changes else {}
    return [change for change in changes if change.topic in topics]


def _deletion(source: Source, before: CommittedOffset | None = None) -> Change:
    topic, partition = source.partition
    return Change(source_group=None, group=source.group, topic=topic, partition=partition, before=before, after=None)
