"""Read groups, topics and offsets with kafka-python."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from migrate_groups.errors import MigrateGroupsError, raise_first
from migrate_groups.kafka import apis, cluster_facts, wire
from migrate_groups.kafka import group_requests as of_groups
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.commits import Commits
from migrate_groups.kafka.connection import KafkaConnection, check_visible
from migrate_groups.kafka.descriptions import ByGroup, Descriptions
from migrate_groups.kafka.first_records import first_records
from migrate_groups.kafka.log import Logs
from migrate_groups.kafka.together import Together
from migrate_groups.model.apis import Offers
from migrate_groups.model.groups import GroupDescription, GroupWithOffsets, Wanted
from migrate_groups.model.partitions import (
    CommittedOffsets,
    OffsetLimits,
    Timestamps,
    TopicPartition,
)
from migrate_groups.model.permissions import Acls, Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription


# kafka-python, because confluent-kafka does not return the metadata of committed offsets unchanged.
class KafkaPythonReader(Logs):
    """Reads groups, topics and offsets with kafka-python (implements `GroupReader`)."""

    def __init__(self, config: ClientConfig) -> None:
        self.principal = config.principal
        self.second_client_lacks = config.security.second_client_lacks
        super().__init__(KafkaConnection(config))
        self._commits = Commits(self._connection, self.principal)
        self._descriptions = Descriptions(self._connection, self._commits)
        self._config = config
        self._described = Together[None, GroupDescription | MigrateGroupsError](self._descriptions.by_group)
        self._observed = Together(self._descriptions.with_offsets)
        self._committed_now = Together(partial(self._commits.read, wait=False))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def cluster_id(self) -> str:
        """Send Metadata, without topics."""
        return self._connection.run(cluster_facts.cluster_id, doing="reading the cluster id")

    def list_groups(self) -> Sequence[GroupDescription]:
        """Send ListGroups."""
        return sorted(self._descriptions.listed().values(), key=lambda listing: listing.group)

    def describe_groups(self, groups: Collection[str]) -> ByGroup:
        """Send DescribeGroups; and ConsumerGroupDescribe for KIP-848 groups, after ListGroups has named them."""
        return self._described(dict.fromkeys(groups))

    def describe_with_offsets(self, wanted: Wanted) -> Mapping[str, GroupWithOffsets | MigrateGroupsError]:
        """Send DescribeGroups, ConsumerGroupDescribe for KIP-848 groups, and OffsetFetch without waiting in between."""
        return self._observed(wanted)

    def describe_after_ends(
        self, partitions: Collection[TopicPartition], group: str
    ) -> tuple[Mapping[TopicPartition, int], GroupWithOffsets | MigrateGroupsError]:
        """Send ListOffsets and the requests of `describe_with_offsets` without waiting, if the leaders are known."""
        ends = self.coordinators_ends()
        found = self._descriptions.with_offsets({group: None}, ends.send)[group]
        if ends.ends.keys() == {*partitions}:
            return ends.ends, found
        ranges = self.log_ranges(partitions)
        return {each: log.end for each, log in ranges.items()}, self.describe_with_offsets({group: None})[group]

    def at_once(self, *calls: Callable[[], object]) -> list[Any]:
        """Call each in a thread of its own."""
        return self._connection.at_once(*calls)

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Send Metadata, without the creation of topics. Leaders in the answer are used by later requests."""
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
        """Send OffsetFetch with ``require_stable``."""
        return self._commits.read(wanted, wait=True) if wait else self._committed_now(wanted)

    def round_trip(self) -> float:
        """Send nothing."""
        return self._connection.round_trip()

    def make_ready(self, wanted: Mapping[str, Collection[TopicPartition]]) -> None:
        """Send DescribeGroups for each group, over as many connections as a commit for each of them takes."""
        self._connection.run_of_groups(wanted, of_groups.connect(), "finding the coordinator of")

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Send Fetch as a consumer that has no group."""
        return first_records(self._config, spans)

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Send Metadata for topics, and DescribeGroups for groups."""
        doing = "reading the permissions of this principal"
        topics = [resource.name for resource in resources if resource.type is ResourceType.TOPIC]
        of_topics = self._connection.run(cluster_facts.topic_permissions(topics), doing=doing) if topics else {}
        groups = [resource.name for resource in resources if resource.type is ResourceType.GROUP]
        answers = self._connection.run_of_groups(groups, cluster_facts.group_permissions, f"{doing} on")
        permitted = raise_first(answers)
        return {
            resource: (of_topics if resource.type is ResourceType.TOPIC else permitted).get(resource.name)
            for resource in resources
        }

    def acls(self, principals: Collection[str]) -> Acls:
        """Send DescribeAcls for each principal."""
        return self._connection.run(cluster_facts.acls(principals), doing="reading ACLs")

    def brokers(self) -> Sequence[int]:
        """Send Metadata, without topics."""
        return self._connection.run(cluster_facts.brokers, doing="reading the brokers")

    def offers(self) -> Offers:
        """Look at the ApiVersions response of the connection."""
        return self._connection.run(apis.offers, doing="reading what the brokers offer")

    def offset_limits(self) -> OffsetLimits:
        """Send DescribeConfigs to one broker."""
        return self._connection.run(cluster_facts.offset_limits, doing="reading offsets.retention.minutes")

    def maybe_compacted_topics(self, topics: Collection[str]) -> frozenset[str]:
        """Send DescribeConfigs for the topics."""
        if not topics:
            return frozenset()
        doing = "reading cleanup.policy of topics"
        return self._connection.run(cluster_facts.maybe_compacted_topics(topics), doing=doing)

    def initial_rebalance_delay(self) -> timedelta | None:
        """Send DescribeConfigs to one broker."""
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
        self.learn(answers)
        return [answer for answer in answers if answer.partitions]
