"""Read what the brokers offer of the APIs that this tool uses, from their ApiVersions response."""

from __future__ import annotations

from typing import Any, NamedTuple

import kafka.errors as kafka_errors
from kafka.protocol.admin import (
    DeleteGroupsRequest,
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from migrate_groups.kafka.group_requests import DESCRIBE_VERSION, FETCH_OFFSETS_VERSION
from migrate_groups.kafka.group_requests import LAST_PLAIN_VERSION as COMMIT_VERSION
from migrate_groups.kafka.list_offsets import LAST_PLAIN_VERSION as LIST_OFFSETS_VERSION
from migrate_groups.kafka.private import Client
from migrate_groups.kafka.schemas import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupDescribeRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
)
from migrate_groups.model.apis import SHARE_GROUPS, Api, Offers

FETCH_VERSION = 12
"""The highest version of Fetch to send, because later versions name topics only by their id."""
_ANY_VERSION = 2**15 - 1


class _Use(NamedTuple):
    """How this tool uses an API.

    lowest, highest: the versions that it sends. later: it sends the lowest offered version if that is above
    ``highest``.
    """

    request: Any
    lowest: int = 0
    highest: int = _ANY_VERSION
    later: bool = False


_USES = (
    _Use(MetadataRequest),
    _Use(FindCoordinatorRequest),
    _Use(ListGroupsRequest),
    _Use(DescribeGroupsRequest, highest=DESCRIBE_VERSION, later=True),
    _Use(ConsumerGroupDescribeRequest),
    _Use(OffsetFetchRequest, highest=FETCH_OFFSETS_VERSION),
    _Use(OffsetCommitRequest, highest=COMMIT_VERSION, later=True),
    _Use(OffsetDeleteRequest),
    _Use(DeleteGroupsRequest),
    _Use(ListOffsetsRequest, lowest=1, highest=LIST_OFFSETS_VERSION, later=True),
    _Use(OffsetForLeaderEpochRequest, lowest=2),
    _Use(FetchRequest, highest=FETCH_VERSION),
    _Use(DescribeConfigsRequest),
    _Use(DescribeAclsRequest, lowest=1),
    _Use(JoinGroupRequest, lowest=4),
    _Use(SyncGroupRequest),
    _Use(HeartbeatRequest),
    _Use(LeaveGroupRequest),
    _Use(ShareGroupDescribeRequest),
    # Kafka 4.1 offers version 0, and answers UNSUPPORTED_VERSION unless its preview of share groups is switched on.
    _Use(DescribeShareGroupOffsetsRequest, lowest=1),
    _Use(AlterShareGroupOffsetsRequest),
    _Use(DeleteShareGroupOffsetsRequest),
)


async def offers(client: Client) -> Offers:
    """Return what the brokers offer, by their ApiVersions response."""
    apis = [
        Api(
            name=use.request.__name__.removesuffix("Request"),
            key=int(use.request.API_KEY),
            offered=client.offered(use.request),
            used=_version(client, use),
        )
        for use in _USES
    ]
    used = {api.name: -1 if api.used is None else api.used for api in apis}
    return Offers(
        deletes_offsets=used["OffsetDelete"] >= 0,
        tells_pending=used["OffsetFetch"] >= 7,
        alters_share_groups=all(used[name] >= 0 for name in SHARE_GROUPS),
        apis=apis,
    )


def _version(client: Client, use: _Use) -> int | None:
    """Return the version in which the request is sent; None if there is none."""
    try:
        version = client.version(use.request)
    except kafka_errors.IncompatibleBrokerVersion:
        return None
    lowest, _ = client.offered(use.request) or (0, 0)
    sent = min(version, max(use.highest, lowest) if use.later else use.highest)
    return sent if sent >= max(lowest, use.lowest) else None
