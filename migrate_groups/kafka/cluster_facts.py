"""Read the cluster id, permissions and ACLs, and settings of brokers and topics with kafka-python."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import kafka.errors as kafka_errors
from kafka.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType, ConfigResource, ConfigResourceType
from kafka.admin import ResourceType as AclResourceType
from kafka.protocol.admin import DescribeAclsRequest, DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from migrate_groups.kafka import wire as wire
from migrate_groups.kafka.connection import OfGroups
from migrate_groups.kafka.group_requests import describe
from migrate_groups.kafka.private import Client
from migrate_groups.model.partitions import OffsetLimits
from migrate_groups.model.permissions import EVERYONE, Acl, Acls, Operation, ResourceType

_OPERATIONS = {
    ACLOperation.DELETE: Operation.DELETE,
    ACLOperation.DESCRIBE: Operation.DESCRIBE,
    ACLOperation.READ: Operation.READ,
}
_RETENTION = "offsets.retention.minutes"
_METADATA = "offset.metadata.max.bytes"
_POLICY = "cleanup.policy"
_DELAY = "group.initial.rebalance.delay.ms"

Permissions = frozenset[Operation] | None


async def group_permissions(client: Client, names: Collection[str], into: OfGroups[Permissions]) -> None:
    """Store in ``into`` which operations the client's principal may perform on each group.

    An empty set: the principal lacks Describe on the group. None: the broker does not report operations (KIP-430).
    """
    described: OfGroups[Any] = OfGroups()
    await describe(permissions=True)(client, names, described)
    into.found.update({group: permitted(answer.authorized_operations) for group, answer in described.found.items()})
    for group, error in described.failed.items():
        if isinstance(error, kafka_errors.GroupAuthorizationFailedError):
            into.found[group] = frozenset()
        else:
            into.failed[group] = error


def topic_permissions(topics: Collection[str]) -> wire.Request[Mapping[str, Permissions]]:
    """Return a coroutine function that reads, by topic, which operations the client's principal may perform.

    An empty set: the principal lacks Describe on the topic. None: the broker does not report operations (KIP-430).
    """

    async def request(client: Client) -> Mapping[str, Permissions]:
        answers = await wire.topics(client, topics, permissions=True)
        return {
            answer.name: frozenset() if wire.hides_topic(answer) else permitted(answer.authorized_operations)
            for answer in answers
        }

    return request


def permitted(bits: Collection[int] | None) -> Permissions:
    """Return which of Describe, Read and Delete are among the authorized operations in a response (KIP-430).

    bits: the codes of the authorized operations. The result is None if the broker does not report operations.
    """
    found = frozenset(operation for bit, operation in _OPERATIONS.items() if bit in (bits or ()))
    # A principal that gets a response has Describe. So if Describe is missing, the broker does not report operations.
    return found if Operation.DESCRIBE in found else None


async def cluster_id(client: Client) -> str:
    """Return the cluster id from a Metadata response."""
    # kafka-python's `describe_cluster` fails on Kafka 2.8 (docs/kafka-behaviour.md#kafka-python).
    answer = await client.send(MetadataRequest(topics=[], allow_auto_topic_creation=False))
    return str(answer.cluster_id)


async def brokers(client: Client) -> Sequence[int]:
    """Return the ids of the brokers, as a new Metadata response names them."""
    answer = await client.send(MetadataRequest(topics=[], allow_auto_topic_creation=False))
    return sorted(int(broker.node_id) for broker in answer.brokers)


async def offset_limits(client: Client) -> OffsetLimits:
    """Return ``offsets.retention.minutes`` and ``offset.metadata.max.bytes`` of the broker with the lowest id.

    None: the broker does not report it, for instance because the client's principal lacks DescribeConfigs.
    """
    found = await _settings(client, _RETENTION, _METADATA)
    minutes = found[_RETENTION]
    return OffsetLimits(retention=None if minutes is None else timedelta(minutes=minutes), metadata=found[_METADATA])


async def initial_rebalance_delay(client: Client) -> timedelta | None:
    """Return ``group.initial.rebalance.delay.ms`` of the broker with the lowest id.

    None: the broker does not report it, for instance because the client's principal lacks DescribeConfigs.
    """
    milliseconds = (await _settings(client, _DELAY))[_DELAY]
    return None if milliseconds is None else timedelta(milliseconds=milliseconds)


def maybe_compacted_topics(topics: Collection[str]) -> wire.Request[frozenset[str]]:
    """Return a coroutine function that finds out which of these topics have ``compact`` in their ``cleanup.policy``.

    Topics whose policy can't be read are among them.
    """

    async def request(client: Client) -> frozenset[str]:
        if not client.offers(DescribeConfigsRequest):
            return frozenset(topics)
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, [_POLICY]) for topic in topics]
        try:
            answer = (await client.describe_configs(resources)).get("topic", {})
        except (kafka_errors.TopicAuthorizationFailedError, kafka_errors.UnknownTopicOrPartitionError):
            return frozenset(topics)
        policies = {topic: answer.get(topic, {}).get(_POLICY) for topic in topics}
        return frozenset(
            topic for topic, config in policies.items() if not config or "compact" in config["value"].split(",")
        )

    return request


async def _settings(client: Client, *names: str) -> Mapping[str, int | None]:
    """Return settings of the broker with the lowest id; None if the broker does not report one."""
    if not client.offers(DescribeConfigsRequest):
        return dict.fromkeys(names)
    broker = str(client.brokers()[0])
    answer = await client.describe_configs([ConfigResource(ConfigResourceType.BROKER, broker, [*names])])
    found = answer["broker"][broker]
    return {name: int(found[name]["value"]) if found.get(name) else None for name in names}


_TYPES = {AclResourceType.GROUP: ResourceType.GROUP, AclResourceType.TOPIC: ResourceType.TOPIC}
_LOWEST = 1  # the first version of DescribeAcls with prefixes (KIP-290)


def acls(principals: Collection[str]) -> wire.Request[Acls]:
    """Return a coroutine function that reads the ACLs on groups and topics of these principals, and of everyone."""

    async def request(client: Client) -> Acls:
        if not client.offers(DescribeAclsRequest) or client.version(DescribeAclsRequest) < _LOWEST:
            return Acls(unknown="the brokers do not offer DescribeAcls")
        try:
            found = [each for name in (*principals, EVERYONE) for each in await _entries(client, name)]
            decides = bool(found or await _entries(client, None))
        except kafka_errors.ClusterAuthorizationFailedError:
            return Acls(unknown="ACLs can't be read without Describe on Cluster")
        except kafka_errors.SecurityDisabledError:
            return Acls(unknown="the brokers keep no ACLs")
        return Acls(found) if decides else Acls(unknown="the cluster has no ACL, so something else decides")

    return request


async def _entries(client: Client, principal: str | None) -> Sequence[Acl]:
    """Return the ACLs on groups and topics of a principal; None: of all principals."""
    answer = await client.send(
        DescribeAclsRequest(
            min_version=_LOWEST,
            resource_type_filter=AclResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=ACLResourcePatternType.ANY,
            principal_filter=principal,
            host_filter=None,
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
        )
    )
    if answer.error_code:
        raise kafka_errors.for_code(answer.error_code)(answer.error_message)
    return [
        Acl(
            type=_TYPES[resource.resource_type],
            name=resource.resource_name,
            is_prefix=resource.pattern_type == ACLResourcePatternType.PREFIXED,
            principal=acl.principal,
            host=acl.host,
            operation=ACLOperation(acl.operation).name.title(),
            is_allowed=acl.permission_type == ACLPermissionType.ALLOW,
        )
        for resource in answer.resources
        if resource.resource_type in _TYPES
        for acl in resource.acls
    ]
