"""Keep consumers out of an Empty group: join it as its only member, with a protocol type that no consumer has.

During the hold, the coordinator also refuses deletions and other clients' commits, except transactional commits
(docs/kafka-behaviour.md#holding-a-group). After the hold, the group is Empty and classic, even if it was a KIP-848
group before. Its committed offsets expire after offsets.retention.minutes if no consumer joins.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import kafka.errors as kafka_errors
import tenacity

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection, in_kafkas_words
from migrate_groups.kafka.lone_member import LoneMember
from migrate_groups.model.groups import HOLD_PROTOCOL_TYPE, GroupDescription

_HEARTBEATS_PER_SESSION = 5
_TRIES_PER_SESSION = 3
_POLL_SECONDS = 0.01


# During a hold, Kafka 4.1.0 refuses a classic consumer (INCONSISTENT_GROUP_PROTOCOL), a KIP-848 consumer
# (GROUP_ID_NOT_FOUND, which is fatal), a commit without membership (UNKNOWN_MEMBER_ID), and a deletion of the group or
# its offsets (NON_EMPTY_GROUP). An administrator can remove the member that holds the group.
class Hold:
    """A group that this process has joined as its only member, so that no consumer can join it.

    lost: why consumers may be able to join; None if the last heartbeat was accepted. If ``lost`` is None after the
    ``with`` block of `hold`, no consumer could join during the block.
    """

    def __init__(
        self, member: LoneMember, config: ClientConfig, session: KafkaConnection, session_timeout: float
    ) -> None:
        self.group = member.group
        self.lost: str | None = None
        self._member, self._config, self._session, self._timeout = member, config, session, session_timeout
        self._error: Exception | None = None
        self._joined, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._join_and_stay, name=f"hold {member.group}", daemon=True)
        self._thread.start()

    @property
    def member_id(self) -> str:
        """This process's member id in the group."""
        return self._member.member_id

    def _await_membership(self) -> None:
        """Wait until the coordinator lists this process as a member of the group.

        Raises `Refused` if the coordinator refuses the join.
        """
        # The coordinator lists the member, and keeps others out, before it answers the join. The answer takes
        # group.initial.rebalance.delay.ms (3 s by default).
        with closing(KafkaConnection(self._config)) as connection:
            while not (self._joined.wait(_POLL_SECONDS) or self._member.is_listed(connection)):
                pass
        if self._error is not None:
            raise self._error

    def _join_and_stay(self) -> None:
        # If another broker becomes the coordinator after the join was answered, the membership continues there.
        # If before, the membership ends, and `lost` says so.
        try:
            with closing(KafkaConnection(self._config)) as patient:
                self._member.join(patient, self._timeout)
        except Exception as error:  # noqa: BLE001  raised in the thread that waits for the membership
            self._error = error
            self.lost = f"group {self.group!r} is no longer held: {error}"
            if isinstance(error, ClusterUnavailable):
                self.lost = f"it is not known whether group {self.group!r} is still held: {error}"
            return
        finally:
            self._joined.set()
        self._send_heartbeats()

    def _end(self) -> None:
        """Send a last heartbeat, and end the thread that sends heartbeats."""
        # The last heartbeat sets `lost` if the coordinator has removed this member.
        self._over.set()
        self._thread.join()

    def _send_heartbeats(self) -> None:
        over = False
        while not (self._send_heartbeat() or over):
            over = self._over.wait(self._member.session_timeout / _HEARTBEATS_PER_SESSION)

    def _send_heartbeat(self) -> bool:
        """Send a heartbeat, and return whether the coordinator refused it. If so, consumers can join the group again.

        ``lost`` becomes None if the coordinator accepts the heartbeat, else the reason: the coordinator refused the
        heartbeat or did not answer.
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
            self.lost = None  # the coordinator has not removed this member, even if it left heartbeats unanswered
            return False
        self.lost = f"group {self.group!r} is no longer held: its coordinator answered {in_kafkas_words(error)}"
        return True


@contextmanager
def hold(config: ClientConfig, group: str, *, session_timeout: float = 10.0) -> Iterator[Hold]:
    """Join an Empty group as its only member during a ``with`` block, so that no consumer can join the group.

    The group must exist, because joining creates a missing group. The group is Empty again after the block.
    session_timeout: seconds until brokers remove this member if the process is killed; if brokers refuse the value,
    others are tried. Raises `Refused` if the group can't be joined, for instance because it has members;
    `NotAuthorized`.
    """
    # The time-out is short. So if the coordinator hangs, a heartbeat reaches its successor before the session timeout.
    impatient = replace(config, timeout=min(config.timeout, session_timeout / _TRIES_PER_SESSION))
    with closing(KafkaConnection(impatient)) as session:
        holder = LoneMember(group, HOLD_PROTOCOL_TYPE)
        try:
            held = Hold(holder, config, session, session_timeout)
            try:
                held._await_membership()
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
    """Return a group's description without this process's own member, which keeps consumers out of the group.

    member_id: the id of this member. The result has the protocol type ``consumer``, and the state Empty if no other
    member is left. If the group has no member ``member_id``, the description is returned unchanged.
    """
    others = tuple(member for member in description.members if member.member_id != member_id)
    if len(others) == len(description.members):
        return description
    state = description.state if others else "Empty"
    return replace(description, members=others, state=state, protocol_type="consumer")


def _restore_protocol_type(connection: KafkaConnection, group: str, session_timeout: float) -> None:
    """Give an Empty group the protocol type ``consumer``: join the group as a consumer, and leave it.

    Raises `Refused`, `NotAuthorized` or `ClusterUnavailable`.
    """
    # A group keeps the protocol type of its last member. With another type, Kafka's tools and confluent-kafka would say
    # that the group is not a consumer group. Joining takes group.initial.rebalance.delay.ms.
    last = LoneMember(group, "consumer")
    try:
        last.join(connection, session_timeout)
    finally:
        last.leave(connection)
