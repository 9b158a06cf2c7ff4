"""A member of a classic group with any protocol type and metadata, such as a Connect worker or a Streams instance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

_MEMBER_ID_REQUIRED = 79


def subscription(*topics: str) -> bytes:
    """Return the metadata of a consumer that subscribes to these topics."""
    return ConsumerProtocolSubscription(topics=list(topics)).encode(version=0)


def join(
    client: KafkaAdminClient,
    group: str,
    *,
    protocol_type: str = "consumer",
    protocol: str = "range",
    metadata: bytes = b"",
    assignment: bytes = b"",
    seconds: int = 60,
) -> str:
    """Make a group Stable with one member, which sends no heartbeats, and return the member id.

    seconds: the member's session timeout.
    """

    def send(request):
        async def to_coordinator():
            node = await client._find_coordinator_id(group)
            return await client._manager.send(request, node_id=node)

        return client._manager.run(to_coordinator)

    def ask_to_join(member_id: str):
        return send(
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=1000 * seconds,
                rebalance_timeout_ms=1000 * seconds,
                member_id=member_id,
                protocol_type=protocol_type,
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=protocol, metadata=metadata)],
                min_version=4,
            )
        )

    first = ask_to_join("")
    assert first.error_code == _MEMBER_ID_REQUIRED, first
    joined = ask_to_join(first.member_id)
    assert joined.error_code == 0, joined
    own = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
    synced = send(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[own],
        )
    )
    assert synced.error_code == 0, synced
    return joined.member_id


@contextmanager
def raw_member(
    bootstrap_servers: str, group: str, *, client_id: str = "raw-app", **given: str | bytes
) -> Iterator[str]:
    """Make a group Stable with one member for the length of a ``with`` block, and yield the member id.

    given: parameters of `join`.
    """
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers, client_id=client_id)) as client:
        member_id = join(client, group, **given)  # type: ignore[arg-type]
        try:
            yield member_id
        finally:
            client.remove_group_members(group, [MemberToRemove(member_id=member_id)])
