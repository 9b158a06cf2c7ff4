"""Hold an Empty group: join it as its only member, with a protocol type that no consumer has, so that none can join.

While a group is held, Kafka 4.1.0 refuses these requests (docs/kafka-behaviour.md#holding-a-group):

- A classic consumer that joins gets INCONSISTENT_GROUP_PROTOCOL.
- A KIP-848 consumer that joins gets GROUP_ID_NOT_FOUND, which is fatal.
- A commit without membership, such as altering offsets, gets UNKNOWN_MEMBER_ID.
- Deleting the group or its offsets fails with NON_EMPTY_GROUP.

The committed offsets stay readable, and none expires. A hold does not prevent a transactional commit without membership
(TxnOffsetCommit), nor an administrator from removing the member that holds the group.

After a hold the committed offsets are as before. The group is Empty, and classic and KIP-848 consumers can join it. Its
type is classic, even if it was consumer (KIP-848) before, and its protocol type is ``consumer``. As with every classic
group that has had members, offsets.retention.minutes now counts from the end of the hold, no longer from each commit.
If only consumers without membership (``assign()``) commit for the group, no member joins it again. Then even their
latest commits expire offsets.retention.minutes after the hold.

If the holding process is killed, its membership ends after the session timeout, and consumers can join the group. Until
one does, the group keeps the hold's protocol type, so that Kafka's tools and confluent-kafka say "is not a consumer
group".
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import Any

import kafka.errors as kafka_errors
import tenacity
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, Refused
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection, in_kafkas_words
from migrate_groups.kafka.private import Client
from migrate_groups.kafka.wire import PartitionError
from migrate_groups.model.groups import HOLD_PROTOCOL_TYPE, GroupDescription

# Session timeouts in seconds that are tried in turn if the brokers refuse the requested one. By default Kafka allows
# 6 s to 30 min; a cluster may allow only longer or only shorter timeouts.
_OTHER_SESSION_TIMEOUTS = (30.0, 60.0, 300.0, 6.0)
_HEARTBEATS_PER_SESSION = 5
_TRIES_PER_SESSION = 3


class Hold:
    """A group that this process has joined as its only member, so that no consumer can join it.

    The group is Stable, and its protocol type is `HOLD_PROTOCOL_TYPE`. group: the group's name. member_id: this
    process's member id. lost: the reason why the group may no longer be held; None while it is held.

    ``lost`` is set when the coordinator refuses a heartbeat, or has not answered for about the session timeout. If the
    coordinator answers again and accepts a heartbeat, ``lost`` is reset to None, because no other member has joined.
    ``lost`` no longer changes after the ``with`` block of `hold`. If it is None then, the group was held for the whole
    block.
    """

    def __init__(self, member: _Member, session: KafkaConnection) -> None:
        self.group = member.group
        self.member_id = member.member_id
        self.lost: str | None = None
        self._member = member
        self._session = session
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send_heartbeats, name=f"hold {member.group}", daemon=True)
        self._thread.start()

    def _end(self) -> None:
        """Stop the thread that sends heartbeats, after a last heartbeat that shows whether the group is still held."""
        self._over.set()
        self._thread.join()

    def _send_heartbeats(self) -> None:
        over = False
        while not (self._send_heartbeat() or over):
            over = self._over.wait(self._member.session_timeout / _HEARTBEATS_PER_SESSION)

    def _send_heartbeat(self) -> bool:
        """Send a heartbeat, set ``lost``, and return whether the coordinator refused the heartbeat.

        After a refusal the group is no longer held. If the coordinator does not answer, the result is False.
        """
        tries = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(ClusterUnavailable),
            stop=tenacity.stop_after_attempt(_TRIES_PER_SESSION),
            reraise=True,
        )
        try:
            error = tries(self._session.run, self._member.heartbeat, doing="sending a heartbeat")
        except Exception as silence:  # noqa: BLE001  otherwise the thread would end with `lost` unset
            self.lost = f"it is not known whether group {self.group!r} is still held: {silence}"
            return False
        if error is kafka_errors.NoError:
            self.lost = None
            return False
        self.lost = f"group {self.group!r} is no longer held: its coordinator answered {in_kafkas_words(error)}"
        return True


@contextmanager
def hold(config: ClientConfig, group: str, *, session_timeout: float = 10.0) -> Iterator[Hold]:
    """Hold an Empty group for the length of a ``with`` block: join it as its only member, so that no consumer can join.

    When the block ends, also by an error, this member leaves, so that the group is Empty again.

    The group must exist, because joining would create it. Entering and leaving the block each take the broker's
    group.initial.rebalance.delay.ms (3 s by default). Other members are kept out from the beginning of that delay on. A
    thread sends heartbeats. If the coordinator changes, the membership continues at the new coordinator.

    session_timeout: seconds until the brokers remove this member if this process is killed. If the brokers do not allow
    the value (group.min.session.timeout.ms, group.max.session.timeout.ms), 30, 60, 300 and 6 seconds are tried.

    Raises `Refused` if the group has members, if another run holds it, or if the brokers allow none of these session
    timeouts; `NotAuthorized` without Read on the group; `ClusterUnavailable`.
    """
    # The time-out is short. So if the coordinator hangs, a heartbeat reaches its successor before the session timeout.
    impatient = replace(config, timeout=min(config.timeout, session_timeout / _TRIES_PER_SESSION))
    with closing(KafkaConnection(impatient)) as session:
        holder = _Member(group, HOLD_PROTOCOL_TYPE)
        try:
            with closing(KafkaConnection(config)) as patient:
                holder.join(patient, session_timeout)
            held = Hold(holder, session)
            try:
                yield held
            finally:
                held._end()
        finally:
            if holder.member_id:
                # After an error the session timeout removes the member, and the next member sets the protocol type.
                with suppress(MigrateGroupsError):
                    holder.leave(session)
                    _restore_protocol_type(session, group, holder.session_timeout)


def without_holder(description: GroupDescription, member_id: str | None) -> GroupDescription:
    """Return a group's description without the member that holds the group (`Hold`), and with protocol type consumer.

    If the group has no other member, its state is Empty. member_id: the id of the member that holds the group. If it is
    None, or no member has this id, the description is returned unchanged.
    """
    others = tuple(member for member in description.members if member.member_id != member_id)
    if len(others) == len(description.members):
        return description
    state = description.state if others else "Empty"
    return replace(description, members=others, state=state, protocol_type="consumer")


def _restore_protocol_type(connection: KafkaConnection, group: str, session_timeout: float) -> None:
    """Give an Empty group the protocol type ``consumer``: join it as a consumer, and leave it.

    A group keeps the protocol type of its last member. With the protocol type of a hold, Kafka's tools and
    confluent-kafka would say that it is not a consumer group. Raises `Refused`, `NotAuthorized`, `ClusterUnavailable`.
    """
    last = _Member(group, "consumer")
    try:
        last.join(connection, session_timeout)
    finally:
        last.leave(connection)


class _Member:
    """A member of a classic group, without a subscription and without an assignment.

    It sends JoinGroup, SyncGroup, Heartbeat and LeaveGroup itself. Its protocol name in JoinGroup is unique, so that no
    consumer and no other run of this tool can join the group beside it.
    """

    def __init__(self, group: str, protocol_type: str) -> None:
        self.group = group
        self.member_id = ""
        self.session_timeout = 0.0
        self._generation = -1
        self._protocol_type = protocol_type
        self._protocol = f"migrate-groups-{uuid.uuid4()}"

    def join(self, connection: KafkaConnection, session_timeout: float) -> None:
        """Join the group as its only member. session_timeout: in seconds; others are tried if the brokers refuse it.

        Raises `Refused` if the group has other members, or the brokers refuse every session timeout; `NotAuthorized`;
        `ClusterUnavailable`.
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
        reason = "it has members, or another run holds it: wait until it is Empty"
        if error is kafka_errors.InvalidSessionTimeoutError:
            reason = (
                f"the brokers allow no session timeout of {', '.join(f'{each:g}' for each in timeouts)} s: change "
                "group.min.session.timeout.ms or group.max.session.timeout.ms, or run without a hold"
            )
        raise Refused(f"group {self.group!r} can't be held: {in_kafkas_words(error)}; {reason}")

    def leave(self, connection: KafkaConnection) -> None:
        """Leave the group; do nothing if this member has not joined. Raises `NotAuthorized`, `ClusterUnavailable`."""
        if self.member_id:
            connection.run(
                lambda client: client.remove_member(self.group, self.member_id, "the hold is over"),
                doing=f"leaving group {self.group!r}",
            )

    async def heartbeat(self, client: Client) -> PartitionError:
        """Send a heartbeat, and return the response's error class; ``NoError`` if the coordinator accepted it.

        A retriable error, and an error about a permission, is raised.
        """
        request = HeartbeatRequest(group_id=self.group, generation_id=self._generation, member_id=self.member_id)
        return _final((await self._send(client, request)).error_code)

    async def _join_and_sync(self, client: Client) -> PartitionError:
        joined = await self._join(client)
        if joined.error_code == kafka_errors.MemberIdRequiredError.errno:  # KIP-394
            self.member_id = joined.member_id
            joined = await self._join(client)
        if joined.error_code == kafka_errors.UnknownMemberIdError.errno:
            self.member_id = ""
            raise kafka_errors.CoordinatorNotAvailableError("a new coordinator does not know this member yet")
        error = _final(joined.error_code)
        if error is kafka_errors.NoError:
            self._generation = joined.generation_id
            error = await self._sync(client)
        return error

    async def _join(self, client: Client) -> Any:
        milliseconds = int(self.session_timeout * 1000)
        # Without a subscription, because a KIP-848 group with members then refuses this member.
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

    async def _sync(self, client: Client) -> PartitionError:
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


def _final(error_code: int) -> PartitionError:
    """Return kafka-python's error class for an error code of a response; ``NoError`` for 0.

    A retriable error, and an error about a permission, is raised, because `KafkaConnection.run` handles these two.
    """
    error: PartitionError = kafka_errors.for_code(error_code)
    if issubclass(error, kafka_errors.RetriableError | kafka_errors.AuthorizationError):
        raise error
    return error
