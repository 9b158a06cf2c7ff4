"""Read Kafka's ACLs of principals with kafka-python."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import kafka.errors as kafka_errors
from kafka.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType
from kafka.admin import ResourceType as AclResourceType
from kafka.protocol.admin import DescribeAclsRequest

from migrate_groups.kafka import wire
from migrate_groups.kafka.private import Client
from migrate_groups.model.permissions import EVERYONE, Acl, Acls, ResourceType

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
