"""Faults of ``__consumer_offsets``: a reassignment moves the coordinator, or too few replicas are in sync."""

from __future__ import annotations

from contextlib import closing

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, log_partition
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.three_brokers import ThreeBrokers, persistently

_PARTITIONS = 4  # of the sandbox (migrate_groups/sandbox/properties.py)
_SECONDS = 60.0


def move_coordinator(brokers: ThreeBrokers, group: str) -> None:
    """Make another broker the coordinator of a group.

    The current coordinator loses its replica of the group's partition of the offsets topic.
    """
    number = log_partition(group, _PARTITIONS)
    leader = brokers.leader(TopicPartition(OFFSETS_TOPIC, number))
    _reassign(brokers, number, [node.node_id for node in brokers.sandbox.nodes if node.node_id != leader])


def replicate_again(brokers: ThreeBrokers, group: str) -> None:
    """Give each broker a replica of the group's partition of the offsets topic."""
    number = log_partition(group, _PARTITIONS)
    _reassign(brokers, number, [node.node_id for node in brokers.sandbox.nodes])


def _reassign(brokers: ThreeBrokers, number: int, ids: list[int]) -> None:
    def attempt() -> None:
        with closing(KafkaAdminClient(bootstrap_servers=brokers.bootstrap_servers)) as admin:
            for error in admin.alter_partition_reassignments(
                {KafkaTopicPartition(OFFSETS_TOPIC, number): ids}
            ).values():
                if error is not None:
                    raise error

    persistently(attempt)
    until(lambda: sorted(brokers.replicas(TopicPartition(OFFSETS_TOPIC, number))) == sorted(ids), seconds=_SECONDS)


def need_in_sync(brokers: ThreeBrokers, replicas: int) -> None:
    """Let the brokers refuse commits unless this many replicas of the offsets topic are in sync."""

    def attempt() -> None:
        with closing(KafkaAdminClient(bootstrap_servers=brokers.bootstrap_servers)) as admin:
            admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, OFFSETS_TOPIC, {"min.insync.replicas": str(replicas)})]
            )

    persistently(attempt)
