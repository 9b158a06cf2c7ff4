"""Hold an Empty group: be its only member, under a protocol type of one's own, so that nobody else can be.

Measured on 4.1.0 while a group is held: classic consumers that join get INCONSISTENT_GROUP_PROTOCOL and KIP-848
consumers a fatal GROUP_ID_NOT_FOUND; commits without membership and altering get UNKNOWN_MEMBER_ID; deleting offsets
or the group gets NON_EMPTY_GROUP. Committed offsets stay, everybody reads them as before, and none expires. Two things
pass: a transactional commit without membership (TxnOffsetCommit), and an administrator who removes the member.

What a hold leaves behind, once it has ended: the committed offsets as they were, and a group that is Empty and that
classic and KIP-848 consumers can join. It is of type classic, also where it was of type consumer before (KIP-848), and
of protocol type ``consumer``: the retention of its offsets counts from the end of the hold, and no longer from each
commit. So where nobody ever joins it again, because only simple consumers commit for it (``protocol_type`` was empty),
it loses even its freshest commits when offsets.retention.minutes have passed since the hold. A holder that is killed
leaves the group after its session timeout, and under the protocol type of the hold: consumers can join it, but Kafka's
tools and confluent-kafka say "is not a consumer group" until one has.
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

# Seconds; a cluster may allow only longer ones or only shorter ones than Kafka's defaults of 6 s to 30 min.
_OTHER_SESSION_TIMEOUTS = (30.0, 60.0, 300.0, 6.0)
_HEARTBEATS_PER_SESSION = 5
_TRIES_PER_SESSION = 3


class Hold:
    """A group that is held: Stable, with one member, of protocol type `HOLD_PROTOCOL_TYPE`.

    group: its name. member_id: who holds it, to tell from others in its description. lost: why it may not be held any
    more, else None. Silence of the coordinator is such a reason once it lasts as long as the session, and none any
    more when the coordinator then answers: nobody else was let in. ``lost`` is final, and true of the whole time, once
    the ``with`` block has ended.
    """

    def __init__(self, member: _Member, session: KafkaConnection) -> None:
        self.group = member.group
        self.member_id = member.member_id
        self.lost: str | None = None
        self._member = member
        self._session = session
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_up, name=f"hold {member.group}", daemon=True)
        self._thread.start()

    def _end(self) -> None:
        """Stop the heartbeats, after a last one that says whether the hold has lasted until now."""
        self._over.set()
        self._thread.join()

    def _keep_up(self) -> None:
        over = False
        while not (self._heartbeat() or over):
            over = self._over.wait(self._member.session_timeout / _HEARTBEATS_PER_SESSION)

    def _heartbeat(self) -> bool:
        """Send a heartbeat, and return whether the group has gone on without this member."""
        tries = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(ClusterUnavailable),
            stop=tenacity.stop_after_attempt(_TRIES_PER_SESSION),
            reraise=True,
        )
        try:
            error = tries(self._session.run, self._member.heartbeat, doing="sending a heartbeat")
        except Exception as silence:  # noqa: BLE001  a thread that ended here would look like a hold that lasts
            self.lost = f"nobody can tell whether group {self.group!r} is still held: {silence}"
            return False
        if error is kafka_errors.NoError:
            self.lost = None
            return False
        self.lost = f"group {self.group!r} is no longer held: its coordinator says {in_kafkas_words(error)}"
        return True


@contextmanager
def hold(config: ClientConfig, group: str, *, session_timeout: float = 10.0) -> Iterator[Hold]:
    """Hold a group for the length of a ``with`` block; at its end, whatever ends it, the group is Empty.

    The group must exist: joining creates one that does not. Entering and leaving take the broker's
    group.initial.rebalance.delay.ms each (3 s by default), and from its beginning nobody else gets in. Heartbeats come
    from a thread of their own; a coordinator that moves keeps the membership, and is looked up again.

    session_timeout: seconds after which the group is free if this process is killed; another one is taken where the
    brokers do not allow it (group.min.session.timeout.ms, group.max.session.timeout.ms).
    Raises `Refused` where somebody is a member or holds the group already, `NotAuthorized` without Read on the group,
    `ClusterUnavailable`.
    """
    # Short enough for a heartbeat to find another coordinator within the session when one hangs.
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
                # Where this fails, the session timeout frees the group; and who joins first sets its type.
                with suppress(MigrateGroupsError):
                    holder.leave(session)
                    _show_as_consumer_group(session, group, holder.session_timeout)


def without_holder(description: GroupDescription, member_id: str | None) -> GroupDescription:
    """Return the description of a group as it is but for its holder: Empty where nobody else is in it."""
    others = tuple(member for member in description.members if member.member_id != member_id)
    if len(others) == len(description.members):
        return description
    state = description.state if others else "Empty"
    return replace(description, members=others, state=state, protocol_type="consumer")


def _show_as_consumer_group(connection: KafkaConnection, group: str, session_timeout: float) -> None:
    """Give an Empty group the protocol type that it keeps from its last member, so that others see it again."""
    last = _Member(group, "consumer")
    try:
        last.join(connection, session_timeout)
    finally:
        last.leave(connection)


class _Member:
    """A classic member (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) that takes no part in any assignment.

    Its protocol has a name of its own, so that no other member, and no other holder, is ever consistent with it.
    """

    def __init__(self, group: str, protocol_type: str) -> None:
        self.group = group
        self.member_id = ""
        self.session_timeout = 0.0
        self._generation = -1
        self._protocol_type = protocol_type
        self._protocol = f"migrate-groups-{uuid.uuid4()}"

    def join(self, connection: KafkaConnection, session_timeout: float) -> None:
        """Become the group's only member. Raises `Refused`, `NotAuthorized`, `ClusterUnavailable`."""
        for self.session_timeout in (session_timeout, *_OTHER_SESSION_TIMEOUTS):
            error = connection.run(
                self._join_and_sync, doing=f"joining group {self.group!r}", needs=f"Read on Group {self.group!r}"
            )
            if error is kafka_errors.NoError:
                return
            if error is not kafka_errors.InvalidSessionTimeoutError:
                break
        raise Refused(
            f"group {self.group!r} can't be held: {in_kafkas_words(error)}; "
            "it has members, or another run holds it: wait until it is Empty"
        )

    def leave(self, connection: KafkaConnection) -> None:
        """Leave the group, if this member got as far as that. Raises `NotAuthorized`, `ClusterUnavailable`."""
        if self.member_id:
            connection.run(
                lambda client: client.remove_member(self.group, self.member_id, "the hold is over"),
                doing=f"leaving group {self.group!r}",
            )

    async def heartbeat(self, client: Client) -> PartitionError:
        """Return what the coordinator says to a heartbeat."""
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
        # No subscription: a KIP-848 group with members does not take a classic member without one.
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
    """Return Kafka's error. Raises it where it is about the coordinator or about permission, for the connection."""
    error: PartitionError = kafka_errors.for_code(error_code)
    if issubclass(error, kafka_errors.RetriableError | kafka_errors.AuthorizationError):
        raise error
    return error
