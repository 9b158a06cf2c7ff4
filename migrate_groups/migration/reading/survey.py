"""Read what the checks before a write need: groups, committed offsets, topics, log ranges and permissions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from migrate_groups.errors import NotAuthorized, raise_first
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.hints import may_hide_topics
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.requests import describe_groups, read_committed
from migrate_groups.migration.reading.take import Reading
from migrate_groups.model.groups import GroupWithOffsets
from migrate_groups.model.partitions import (
    CommittedOffset,
    CommittedOffsets,
    LeaderEpoch,
    OffsetAndTimestamp,
    TopicPartition,
)
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.model.topics import TopicDescription, partitions_of
from migrate_groups.planning.change import Change
from migrate_groups.planning.checks.permission import hidden, lacks, missing, needed, of_hand_over
from migrate_groups.planning.survey import ClusterFacts, Survey


def permissions_unless_hidden(
    reader: GroupReader, wanted: Mapping[Resource, frozenset[Operation]]
) -> Mapping[Resource, frozenset[Operation] | None]:
    """Return the operations that the client's principal may perform on each group and topic in ``wanted``.

    None means that the brokers do not return the operations. Raises `NotAuthorized` if the principal lacks Describe on
    one of the groups and topics; the message names all ``wanted`` operations that are missing.
    """
    permissions = reader.permissions([*wanted])
    # Brokers leave a hidden group or topic out of their answers without an error
    # (docs/kafka-behaviour.md#what-a-principal-may-not-see).
    if hidden(permissions):
        raise NotAuthorized(f"not authorized: {lacks(reader.principal, missing(wanted, permissions))}")
    return permissions


def refuse_unreadable(reader: GroupReader, topics: Collection[str]) -> None:
    """Raise `NotAuthorized`, which names the topics, if the client's principal lacks Read on any of these topics."""
    wanted = of_hand_over((), (), topics)
    if lacking := missing(wanted, reader.permissions([*wanted])):
        raise NotAuthorized(f"not authorized: {lacks(reader.principal, lacking)}")


def read_cluster_facts(reader: GroupReader, wanted: Sequence[Change], *, has_targets: bool = True) -> ClusterFacts:
    """Return the permissions on the groups and topics in ``wanted``, all visible topics, and the limits of offsets.

    has_targets: as for `survey`. Raises `NotAuthorized` if the client's principal lacks Describe on a group or topic.
    """
    visible = reader.describe_topics(None)
    permissions = permissions_unless_hidden(reader, needed(wanted, has_targets=has_targets))
    limits = reader.offset_limits()
    return ClusterFacts(
        principal=reader.principal,
        permissions=permissions,
        topic_names=frozenset(visible),
        hides_topics=may_hide_topics(reader),
        offsets_retention=limits.retention,
        metadata_limit=limits.metadata,
        second_client_lacks=reader.second_client_lacks,
        offers=reader.offers(),
    )


def facts_of_way_back(reader: GroupReader, permissions: Mapping[Resource, frozenset[Operation] | None]) -> ClusterFacts:
    """Return what a rollback or a deletion needs to know about its cluster, with these permissions."""
    return ClusterFacts(principal=reader.principal, permissions=permissions, offers=reader.offers())


def unread(reader: GroupReader) -> Survey:
    """Return a survey with only the cluster id, so that a check can say first whether it is the right cluster."""
    return Survey(
        cluster_id=reader.cluster_id(), cluster_facts=ClusterFacts(principal=reader.principal, permissions={})
    )


def survey(
    reader: GroupReader,
    wanted: Sequence[Change],
    cluster_facts: ClusterFacts | None = None,
    reading: Reading | None = None,
    *,
    has_targets: bool = True,
    early: EarlyGroups | None = None,
) -> Survey:
    """Return the groups in ``wanted`` with their committed offsets, topics and log ranges.

    - cluster_facts: permissions, topic names and limits, if they were just read.
    - reading: the source group, if it was just read.
    - has_targets: whether the target groups are on this cluster; otherwise only the source groups are.
    - early: target groups, if they were just read.

    Raises `NotAuthorized` if the client's principal lacks Describe on a group or topic; `PendingCommits` if a
    transactional commit is still pending at the time-out.
    """
    reader = for_one_phase(reader)
    if cluster_facts is None or not needed(wanted, has_targets=has_targets).keys() <= cluster_facts.permissions.keys():
        cluster_facts = read_cluster_facts(reader, wanted, has_targets=has_targets)
    looks = {reading.observed.description.group: reading.observed} if reading else {}
    topics = reading.observed.topics if reading else reader.describe_topics({each.topic for each in wanted})
    involved = {each.group for each in wanted} if has_targets else set()
    involved |= {each.source_group for each in wanted if each.source_group is not None}
    groups = {group: look.description for group, look in looks.items() if group in involved}
    groups |= {group: each.description for group, each in (early.found if early else {}).items() if group in involved}
    groups |= describe_groups(reader, sorted(involved - groups.keys()))
    to_read = {group for group, described in groups.items() if described.exists and group not in looks}
    committed: dict[str, CommittedOffsets] = {
        **dict.fromkeys(groups, MappingProxyType({})),
        # Every partition is requested by name, so that brokers return an error for a topic without Describe, and do not
        # leave it out.
        **_committed(reader, _involved_partitions(to_read, wanted, topics), early),
        **{group: looks[group].committed for group in groups if group in looks},
    }
    return Survey(
        cluster_id=reading.cluster_id if reading else reader.cluster_id(),
        groups=groups,
        committed=committed,
        topics=topics,
        bounds=reading.bounds if reading else reader.log_ranges(partitions_of(topics)),
        cut=cut_logs(reader, wanted),
        cluster_facts=cluster_facts,
    )


@dataclass(frozen=True, slots=True)
class EarlyGroups:
    """Groups with their committed offsets for these partitions. wanted: by group; None: for all that have one."""

    wanted: Mapping[str, Collection[TopicPartition] | None]
    found: Mapping[str, GroupWithOffsets]

    def offsets(self, group: str, partitions: Collection[TopicPartition]) -> CommittedOffsets | None:
        """Return a group's committed offsets for these partitions; None if they must be read again.

        They must if a partition was not asked for by name, or if a transactional commit is pending for it.
        """
        asked, found = self.wanted.get(group), self.found.get(group)
        if asked is None or found is None or not set(partitions) <= set(asked):
            return None
        if any(each in found.offsets and found.offsets[each] is None for each in partitions):
            return None
        return {each: found.offsets.get(each) for each in partitions}


def read_early_groups(reader: GroupReader, wanted: Mapping[str, Collection[TopicPartition] | None]) -> EarlyGroups:
    """Return groups with their committed offsets. Raises the first error of `GroupReader.describe_with_offsets`."""
    return EarlyGroups(wanted, raise_first(reader.describe_with_offsets(wanted)))


def _committed(
    reader: GroupReader, wanted: Mapping[str, Collection[TopicPartition]], early: EarlyGroups | None
) -> dict[str, CommittedOffsets]:
    known: dict[str, CommittedOffsets] = {}
    for group, partitions in wanted.items():
        if early and (offsets := early.offsets(group, partitions)) is not None:
            known[group] = offsets
    left = {group: partitions for group, partitions in wanted.items() if group not in known}
    return known | dict(read_committed(reader, left))


def cut_logs(reader: GroupReader, wanted: Sequence[Change]) -> Mapping[tuple[TopicPartition, CommittedOffset], int]:
    """Return the wanted offsets below which an unclean leader election replaced records.

    The values are the offsets of the first replaced records.
    """
    ends = reader.epoch_ends([epoch for _, _, epoch in _with_epochs(wanted)])
    if not ends:  # true in almost every cut-over; the consumers are stopped meanwhile, so nothing more is done
        return {}
    # A committed offset has the leader epoch of the last record that the group has processed. If this epoch ends at a
    # lower offset, the next leader had only the records up to there.
    cut = {
        (partition, committed): ends[epoch]
        for partition, committed, epoch in _with_epochs(wanted)
        if epoch in ends and ends[epoch] < committed.offset
    }
    spans: dict[TopicPartition, range] = {}
    for (partition, committed), end in cut.items():
        of_others = spans.get(partition, range(end, committed.offset))  # several groups may have offsets there
        spans[partition] = range(min(end, of_others.start), max(committed.offset, of_others.stop))
    records = reader.first_records(spans) if spans else {}
    unknown = {partition: OffsetAndTimestamp(offset=span.start, timestamp=-1) for partition, span in spans.items()}
    # Without a record between the two offsets, the group has read only a transaction marker there
    # (docs/kafka-behaviour.md#logs).
    first: dict[TopicPartition, OffsetAndTimestamp | None] = {**unknown, **records}
    return {
        (partition, committed): end
        for (partition, committed), end in cut.items()
        if (record := first[partition]) is not None and record.offset < committed.offset
    }


def _with_epochs(wanted: Sequence[Change]) -> Iterator[tuple[TopicPartition, CommittedOffset, LeaderEpoch]]:
    """Yield each committed offset that has a leader epoch, with its partition and its leader epoch."""
    for each in wanted:
        if (committed := each.committed) is not None and committed.leader_epoch is not None:
            partition = each.topic_partition
            yield partition, committed, LeaderEpoch(partition=partition, epoch=committed.leader_epoch)


def _involved_partitions(
    groups: Collection[str], wanted: Sequence[Change], topics: Mapping[str, TopicDescription]
) -> Mapping[str, Collection[TopicPartition]]:
    """Return, for each of these groups, all partitions of the topics that the group gets or hands over."""
    own: dict[str, dict[TopicPartition, None]] = defaultdict(dict)
    names: dict[str, set[str]] = defaultdict(set)
    for each in wanted:
        for group in (each.group, each.source_group):
            if group is not None and group in groups:
                own[group][each.topic_partition] = None
                names[group].add(each.topic)
    return {group: dict.fromkeys([*partitions_of(topics, names[group]), *of_group]) for group, of_group in own.items()}
