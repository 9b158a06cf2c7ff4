"""Read groups, topics and offsets with kafka-python."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from migrate_groups.errors import MigrateGroupsError, raise_first
from migrate_groups.kafka import cluster_facts, wire
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.commits import Commits
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.descriptions import ByGroup, Descriptions
from migrate_groups.kafka.first_records import first_records
from migrate_groups.kafka.log import Logs
from migrate_groups.kafka.visible import check_visible, describe_permissions
from migrate_groups.model.groups import GroupListing
from migrate_groups.model.offset_limits import OffsetLimits
from migrate_groups.model.partitions import (
    CommittedOffsets,
    LeaderEpoch,
    LogRange,
    Timestamps,
    TopicPartition,
)
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription


# kafka-python, because confluent-kafka does not return the metadata of committed offsets unchanged.
class KafkaPythonReader:
    """Reads groups, topics and offsets with kafka-python (implements `GroupReader`).

    principal: the client's principal, such as ``User:alice``. second_client_lacks: why confluent-kafka can't log in
    with the same settings; empty if it can. Every method that sends a request raises `ClusterUnavailable` or
    `NotAuthorized`.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.principal = config.principal
        self.second_client_lacks = config.security.second_client_lacks
        self._connection = KafkaConnection(config)
        self._logs = Logs(self._connection)
        self._commits = Commits(self._connection, self.principal)
        self._descriptions = Descriptions(self._connection, self._commits)
        self._config = config

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def cluster_id(self) -> str:
        """Return the id that the brokers report for their cluster."""
        return self._connection.run(cluster_facts.cluster_id, doing="reading the cluster id")

    def list_groups(self) -> Sequence[GroupListing]:
        """Return the groups of all types that the client's principal may describe, sorted by name."""
        return sorted(self._descriptions.listed().values(), key=lambda listing: listing.group)

    def describe_groups(self, groups: Collection[str]) -> ByGroup:
        """Send DescribeGroups; and ConsumerGroupDescribe for KIP-848 groups, after ListGroups has named them."""
        return self._descriptions.by_group(groups)

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Return the descriptions of topics, by name. A topic that does not exist is left out, and is not created.

        topics: the names; None: all topics that the client's principal may describe. Raises `NotAuthorized` if the
        principal lacks Describe on one of ``topics``; `ClusterUnavailable`.
        """
        return {
            topic.name: TopicDescription(
                topic=topic.name,
                topic_id=str(topic.topic_id) if topic.topic_id else None,
                partitions=tuple(sorted(partition.partition_index for partition in topic.partitions)),
                permitted=cluster_facts.permitted(topic.authorized_operations),
            )
            for topic in self._metadata(topics)
        }

    def committed(
        self, wanted: Mapping[str, Collection[TopicPartition] | None], *, wait: bool = True
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Send OffsetFetch with ``require_stable``. Groups for which no partition is wanted are not asked about."""
        return self._commits.stable(wanted) if wait else self._commits.now(wanted)

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """Return the log start and log end offset of each partition.

        A partition that does not exist or has no leader is left out. ends, starts: known offsets, which need not be
        read. If a log start may come from a new leader, the known end is read again.
        """
        return self._logs.bounds(partitions, starts or {}, ends or {})

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's last stable offset, at which ``read_committed`` consumers stop.

        A partition that does not exist or has no leader is left out.
        """
        return self._logs.last_stable_offsets(partitions)

    def epoch_ends(self, epochs: Collection[LeaderEpoch]) -> Mapping[LeaderEpoch, int]:
        """Return the offset at which each leader epoch ended, and the partition's next leader epoch began.

        A leader epoch is left out if it has not ended, if the leader does not know it, or if the partition does not
        exist or has no leader.
        """
        return self._logs.epoch_ends(epochs)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Return the offset and timestamp of each partition's first record at or after a timestamp.

        None: there is no such record. timestamps: in milliseconds since 1970. A partition that does not exist or has no
        leader is left out. Raises ``ValueError`` for a negative timestamp.
        """
        return self._logs.offsets_at(timestamps)

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Return the first record that a ``read_committed`` consumer gets in each range of offsets.

        The result has the record's offset and timestamp; None: the range has no such record. A partition that does not
        answer within 5 s is left out.
        """
        return first_records(self._config, spans)

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return the operations that the client's principal may perform on each of these groups and topics.

        An empty set: the principal lacks Describe. None: the broker does not report operations (KIP-430).
        """
        doing = "reading the permissions of this principal"
        topics = [resource.name for resource in resources if resource.type is ResourceType.TOPIC]
        of_topics = self._connection.run(cluster_facts.topic_permissions(topics), doing=doing) if topics else {}
        groups = [resource.name for resource in resources if resource.type is ResourceType.GROUP]
        answers = self._connection.run_of_groups(
            describe_permissions(groups), cluster_facts.group_permissions, f"{doing} on"
        )
        permitted = raise_first(answers)
        return {
            resource: (of_topics if resource.type is ResourceType.TOPIC else permitted).get(resource.name)
            for resource in resources
        }

    def offset_limits(self) -> OffsetLimits:
        """Return how long brokers keep committed offsets, and how long their metadata may be, as one broker reports it.

        None: the broker does not report it, for instance because the client's principal lacks DescribeConfigs.
        """
        return self._connection.run(cluster_facts.offset_limits, doing="reading offsets.retention.minutes")

    def maybe_compacted_topics(self, topics: Collection[str]) -> frozenset[str]:
        """Return which of these topics have ``compact`` in their ``cleanup.policy``, or a policy that can't be read.

        It can't be read if the client's principal lacks DescribeConfigs on the topic, or if the topic does not exist.
        """
        if not topics:
            return frozenset()
        doing = "reading cleanup.policy of topics"
        return self._connection.run(cluster_facts.maybe_compacted_topics(topics), doing=doing)

    def initial_rebalance_delay(self) -> timedelta | None:
        """Return ``group.initial.rebalance.delay.ms``, how long an Empty group waits for more members.

        None: the broker does not report it, for instance because the client's principal lacks DescribeConfigs.
        """
        doing = "reading group.initial.rebalance.delay.ms"
        return self._connection.run(cluster_facts.initial_rebalance_delay, doing=doing)

    def _metadata(self, topics: Iterable[str] | None) -> list[Any]:
        names = None if topics is None else set(topics)
        if names == set():
            return []
        answers = self._connection.run(
            lambda client: wire.topics(client, names, permissions=True), doing="reading the metadata of topics"
        )
        check_visible(self.principal, (answer.name for answer in answers if wire.hides_topic(answer)))
        self._logs.learn(answers)
        return [answer for answer in answers if answer.partitions]
