"""A member of a classic group that sends JoinGroup, SyncGroup, Heartbeat and LeaveGroup, and gives up no partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from migrate_groups.applications import HOLD_REBALANCE_TIMEOUT
from migrate_groups.errors import MigrateGroupsError, Refused
from migrate_groups.kafka.connection import KafkaConnection, in_kafkas_words
from migrate_groups.kafka.group_requests import describe
from migrate_groups.kafka.private import Client
from migrate_groups.kafka.wire import KafkaErrorClass
from migrate_groups.model.partitions import TopicPartition

# Session timeouts in seconds, to be tried in turn if the brokers refuse the first one. Kafka allows 6 s to 30 min by
# default; a cluster may allow only longer or only shorter ones.
_OTHER_SESSION_TIMEOUTS = (30.0, 60.0, 300.0, 6.0)


# The names of the assignors of Kafka's clients. A consumer can join only if it shares one with every member.
_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
# Kafka's consumer protocol has no such subscription. With it, the coordinator refuses this member if the group is a
# KIP-848 group with members, and refuses KIP-848 consumers while this member has no assignment yet.
_NO_SUBSCRIPTION = b""
REFUSED = "it has members, or another run holds it: wait until it is Empty"


class PlaceholderMember:
    """The first member of a classic group. It is assigned all partitions, and never rejoins to give them up.

    Consumers that join later wait for it, without an error: a classic one for the answer to its JoinGroup, a KIP-848
    one for partitions. assignor: the group's own, if it is not one of Kafka's.
    """

    def __init__(self, group: str, partitions: Collection[TopicPartition], assignor: str = "") -> None:
        self.group = group
        self.member_id = ""
        self.session_timeout = 0.0
        self.others: frozenset[str] = frozenset()
        """The ids of the other members, when the coordinator first listed this one."""
        self.generation = -1
        """The generation of the group in which this process is a member; -1 before the join was answered."""
        self._listed = False
        self._assignors = tuple(dict.fromkeys([*_ASSIGNORS, *filter(None, [assignor])]))
        numbers: dict[str, list[int]] = defaultdict(list)
        for partition in sorted(partitions):
            numbers[partition.topic].append(partition.partition)
        self._has_partitions = bool(numbers)
        self._subscription = ConsumerProtocolSubscription(topics=[*numbers]).encode(version=0)
        self._assignment = _assignment(numbers)

    def join(self, connection: KafkaConnection, session_timeout: float) -> None:
        """Join the group as its first member. session_timeout: in seconds; if it is refused, others are tried.

        Raises `Refused` if the group has members of another kind, if brokers refuse every session timeout, or if the
        coordinator has removed this member; `NotAuthorized`; `ClusterUnavailable`.
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
        reason = REFUSED
        if error is kafka_errors.InvalidSessionTimeoutError:
            reason = (
                f"the brokers allow no session timeout of {', '.join(f'{each:g}' for each in timeouts)} s: change "
                "group.min.session.timeout.ms or group.max.session.timeout.ms, or run without a hold"
            )
        raise Refused(f"group {self.group!r} can't be held: {in_kafkas_words(error)}; {reason}")

    def is_listed(self, connection: KafkaConnection) -> bool:
        """Return whether the coordinator lists this member in the group. If so, consumers that join wait.

        Raises `NotAuthorized`, `ClusterUnavailable`.
        """
        if not self.member_id:
            return False
        members = self.members(connection)
        if self.member_id in members and not self._listed:
            self.others, self._listed = frozenset(members) - {self.member_id}, True
        return self.member_id in members

    def members(self, connection: KafkaConnection) -> Mapping[str, str]:
        """Return the client id of each member of a classic group, by member id; of a KIP-848 group none.

        Raises `NotAuthorized`, `ClusterUnavailable`.
        """
        (answer,) = connection.run_of_groups([self.group], describe(), "describing").values()
        if isinstance(answer, MigrateGroupsError):
            raise answer
        return {each.member_id: each.client_id for each in answer.members}

    def remove(self, connection: KafkaConnection, member_id: str) -> None:
        """Remove a member from the group. Raises `NotAuthorized`, `ClusterUnavailable`."""
        connection.run(
            lambda client: client.remove_member(self.group, member_id, "the hold is over"),
            doing=f"leaving group {self.group!r}",
        )

    def leave(self, connection: KafkaConnection) -> None:
        """Leave the group; do nothing if this member has not joined. Raises `NotAuthorized`, `ClusterUnavailable`."""
        if self.member_id:
            self.remove(connection, self.member_id)

    async def heartbeat(self, client: Client) -> KafkaErrorClass:
        """Send a heartbeat, and return the response's error class; ``NoError`` if the heartbeat was accepted.

        It is also accepted if another member waits for this one to rejoin.
        A retriable error, or an error about a permission, is raised.
        """
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
        return _accepted((await self._send(client, request)).error_code)

    async def _join_and_sync(self, client: Client) -> KafkaErrorClass:
        joined = await self._join(client, _NO_SUBSCRIPTION)
        if joined.error_code == kafka_errors.MemberIdRequiredError.errno:  # KIP-394
            self.member_id = joined.member_id
            joined = await self._join(client, _NO_SUBSCRIPTION)
        if joined.error_code == kafka_errors.UnknownMemberIdError.errno and not self._listed:
            self.member_id = ""
            raise kafka_errors.CoordinatorNotAvailableError("a new coordinator does not know this member yet")
        error = await self._sync(client, joined)
        if error is kafka_errors.NoError and len(joined.members) == 1 and self._has_partitions:
            # With a subscription and an assignment, the coordinator also lets KIP-848 consumers wait.
            error = await self._sync(client, await self._join(client, self._subscription))
        return error

    async def _join(self, client: Client, subscription: bytes) -> Any:
        protocols = [
            JoinGroupRequest.JoinGroupRequestProtocol(name=assignor, metadata=subscription)
            for assignor in self._assignors
        ]
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=int(self.session_timeout * 1000),
            rebalance_timeout_ms=int(HOLD_REBALANCE_TIMEOUT * 1000),
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=protocols,
            min_version=4,
        )
        return await self._send(client, request)

    async def _sync(self, client: Client, joined: Any) -> KafkaErrorClass:
        """Send the assignments of all members, if the answer to JoinGroup is no error; return the error class."""
        error = _final(joined.error_code)
        if error is not kafka_errors.NoError:
            return error
        self.generation = joined.generation_id
        # A consumer that joined at the same time gets no partition. Java takes an assignment without bytes as a bug.
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=each.member_id,
                assignment=self._assignment if each.member_id == self.member_id else _assignment({}),
            )
            for each in joined.members
        ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        return _accepted((await self._send(client, request)).error_code)

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


def _accepted(error_code: int) -> KafkaErrorClass:
    """Return what `_final` returns, but ``NoError`` if the group rebalances: this member is a member all the same."""
    error = _final(error_code)
    return kafka_errors.NoError if error is kafka_errors.RebalanceInProgressError else error


def _assignment(numbers: Mapping[str, Sequence[int]]) -> bytes:
    """Return partitions, by topic, as the assignment of a member in Kafka's consumer protocol."""
    parts = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=[*of_topic])
        for topic, of_topic in numbers.items()
    ]
    return bytes(ConsumerProtocolAssignment(assigned_partitions=parts, user_data=b"").encode(version=0))
