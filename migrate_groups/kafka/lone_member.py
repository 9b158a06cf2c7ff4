"""A member of a classic group that sends JoinGroup, SyncGroup, Heartbeat and LeaveGroup, to keep other members out."""

from __future__ import annotations

import uuid
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest

from migrate_groups.errors import MigrateGroupsError, Refused
from migrate_groups.kafka.connection import KafkaConnection, in_kafkas_words
from migrate_groups.kafka.groups import describe
from migrate_groups.kafka.private import Client
from migrate_groups.kafka.visible import describe_permissions
from migrate_groups.kafka.wire import KafkaErrorClass

# Session timeouts in seconds, to be tried in turn if the brokers refuse the first one. Kafka allows 6 s to 30 min by
# default; a cluster may allow only longer or only shorter ones.
_OTHER_SESSION_TIMEOUTS = (30.0, 60.0, 300.0, 6.0)


class LoneMember:
    """A member of a classic group, without a subscription and without an assignment.

    Its protocol name in JoinGroup is unique, so that no other member can join the group.
    """

    def __init__(self, group: str, protocol_type: str) -> None:
        self.group = group
        self.member_id = ""
        self.session_timeout = 0.0
        self._listed = False
        self._generation = -1
        self._protocol_type = protocol_type
        self._protocol = f"migrate-groups-{uuid.uuid4()}"

    def join(self, connection: KafkaConnection, session_timeout: float) -> None:
        """Join the group as its only member. session_timeout: in seconds; if it is refused, others are tried.

        Raises `Refused` if the group has other members, if brokers refuse every session timeout, or if the coordinator
        has removed this member; `NotAuthorized`; `ClusterUnavailable`.
        """
        timeouts = (session_timeout, *_OTHER_SESSION_TIMEOUTS)
        for self.session_timeout in timeouts:
            error = connection.run(
                self._join_and_sync, doing=f"joining group {self.group!r}", needs=f"Read on Group {self.group!r}"
            )
            if error is kafka_errors.NoError:
                return
            if error is not kafka_errors.InvalidSessionTimeoutError:
                break
        # The coordinator listed this member, and no longer knows it.
        if self._listed:
            raise Refused(f"its coordinator answered {in_kafkas_words(error)}")
        reason = "it has members, or another run holds it: wait until it is Empty"
        if error is kafka_errors.InvalidSessionTimeoutError:
            reason = (
                f"the brokers allow no session timeout of {', '.join(f'{each:g}' for each in timeouts)} s: change "
                "group.min.session.timeout.ms or group.max.session.timeout.ms, or run without a hold"
            )
        raise Refused(f"group {self.group!r} can't be held: {in_kafkas_words(error)}; {reason}")

    def is_listed(self, connection: KafkaConnection) -> bool:
        """Return whether the coordinator lists this member in the group. If so, no other member can join.

        Raises `NotAuthorized`, `ClusterUnavailable`.
        """
        if not self.member_id:
            return False
        (answer,) = connection.run_of_groups(describe_permissions([self.group]), describe(), "describing").values()
        if isinstance(answer, MigrateGroupsError):
            raise answer
        self._listed = self.member_id in {each.member_id for each in answer.members}
        return self._listed

    def leave(self, connection: KafkaConnection) -> None:
        """Leave the group; do nothing if this member has not joined. Raises `NotAuthorized`, `ClusterUnavailable`."""
        if self.member_id:
            connection.run(
                lambda client: client.remove_member(self.group, self.member_id, "the hold is over"),
                doing=f"leaving group {self.group!r}",
            )

    async def heartbeat(self, client: Client) -> KafkaErrorClass:
        """Send a heartbeat, and return the response's error class; ``NoError`` if the heartbeat was accepted.

        A retriable error, or an error about a permission, is raised.
        """
        request = HeartbeatRequest(group_id=self.group, generation_id=self._generation, member_id=self.member_id)
        return _final((await self._send(client, request)).error_code)

    async def _join_and_sync(self, client: Client) -> KafkaErrorClass:
        joined = await self._join(client)
        if joined.error_code == kafka_errors.MemberIdRequiredError.errno:  # KIP-394
            self.member_id = joined.member_id
            joined = await self._join(client)
        if joined.error_code == kafka_errors.UnknownMemberIdError.errno and not self._listed:
            self.member_id = ""
            raise kafka_errors.CoordinatorNotAvailableError("a new coordinator does not know this member yet")
        error = _final(joined.error_code)
        if error is kafka_errors.NoError:
            self._generation = joined.generation_id
            error = await self._sync(client)
        return error

    async def _join(self, client: Client) -> Any:
        milliseconds = int(self.session_timeout * 1000)
        # No subscription, because a KIP-848 group with members then refuses this member.
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=self._protocol, metadata=b"")
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=milliseconds,
            rebalance_timeout_ms=milliseconds,
            member_id=self.member_id,
            protocol_type=self._protocol_type,
            protocols=[protocol],
            min_version=4,
        )
        return await self._send(client, request)

    async def _sync(self, client: Client) -> KafkaErrorClass:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self._generation,
            member_id=self.member_id,
            protocol_type=self._protocol_type,
            protocol_name=self._protocol,
            assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"")],
        )
        return _final((await self._send(client, request)).error_code)

    async def _send(self, client: Client, request: Any) -> Any:
        coordinator = await client.coordinator(self.group)
        return await client.send(request, coordinator)


def _final(error_code: int) -> KafkaErrorClass:
    """Return kafka-python's error class for an error code of a response; ``NoError`` for 0.

    A retriable error, or an error about a permission, is raised.
    """
    error: KafkaErrorClass = kafka_errors.for_code(error_code)
    # `KafkaConnection.run` retries the former, and explains the latter.
    if issubclass(error, kafka_errors.RetriableError | kafka_errors.AuthorizationError):
        raise error
    return error
