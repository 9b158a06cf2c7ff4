"""Hold an Empty group: join it as its only member, with a protocol type that no consumer has, so that none can join.

While a group is held, Kafka 4.1.0 refuses these requests (docs/kafka-behaviour.md#holding-a-group):

- A classic consumer that joins gets INCONSISTENT_GROUP_PROTOCOL.
- A KIP-848 consumer that joins gets GROUP_ID_NOT_FOUND, which is fatal.
- A commit without membership, such as altering offsets, gets UNKNOWN_MEMBER_ID.
- Deleting the group or its offsets fails with NON_EMPTY_GROUP.

The committed offsets stay readable, and none expires. A hold does not prevent a transactional commit without membership
(TxnOffsetCommit), nor an administrator from removing the member that holds the group.

After a hold the committed offsets are as before. The group is Empty, and classic and KIP-848 consumers can join it. Its
type is classic, even if it was consumer (KIP-848) before, and its protocol type is ``consumer``. As in every Empty
classic group that has had members, committed offsets expire once offsets.retention.minutes have passed since the last
member left. So after a hold, even later commits of consumers without membership (``assign()``) expire at this time,
unless a member joins the group.

If the holding process is killed, its membership ends after the session timeout, and consumers can join the group. Until
one does, the group keeps the hold's protocol type, so that Kafka's tools and confluent-kafka say "is not a consumer
group".
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


class Hold:
    """A group that this process has joined as its only member, so that no consumer can join it.

    The group's protocol type is `HOLD_PROTOCOL_TYPE`. The group is Stable once the coordinator has answered the join.
    group: its name. member_id: the id of the member that holds the group. lost: why the group may no longer be held;
    None while it is held.

    The hold begins when the coordinator lists the member, which is before it answers the join. ``lost`` is set if the
    join then fails, if the coordinator refuses a heartbeat, or if it has not answered for about the session timeout. If
    it answers again and accepts a heartbeat, ``lost`` is reset to None, because the member was never removed. After the
    ``with`` block of `hold`, ``lost`` no longer changes. It is then None if the group was held for the whole block.
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
        """The id of the member as which this process has joined the group, to keep all consumers out."""
        return self._member.member_id

    def _await_membership(self) -> None:
        """Return as soon as the coordinator lists this member, even if it has not answered the join yet.

        Raises `Refused` if the coordinator refuses the join; `NotAuthorized`; `ClusterUnavailable`.
        """
        with closing(KafkaConnection(self._config)) as connection:
            while not (self._joined.wait(_POLL_SECONDS) or self._member.is_listed(connection)):
                pass
        if self._error is not None:
            raise self._error

    def _join_and_stay(self) -> None:
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
        """End the thread that sends heartbeats, after a last one, which sets ``lost`` if this member was removed."""
        self._over.set()
        self._thread.join()

    def _send_heartbeats(self) -> None:
        over = False
        while not (self._send_heartbeat() or over):
            over = self._over.wait(self._member.session_timeout / _HEARTBEATS_PER_SESSION)

    def _send_heartbeat(self) -> bool:
        """Send a heartbeat, and return whether the coordinator refused it. Then the hold is over: consumers can join.

        ``lost`` becomes None if the coordinator accepts the heartbeat, and a reason if it refuses the heartbeat or does
        not answer. If it does not answer, the result is False.
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
    """Hold an Empty group for the length of a ``with`` block: join it as its only member, to keep all consumers out.

    When the block ends, also by an error, this member leaves, so that the group is Empty again.

    The group must exist, because joining creates a missing group. The coordinator answers a join only after
    group.initial.rebalance.delay.ms (3 s by default). But it lists the member, and keeps others out, as soon as it gets
    the join. So the block begins when the member is listed. A thread waits for the answer, and sends the heartbeats. If
    another broker becomes the coordinator after the answer, the membership continues there; if before, it ends, and
    ``lost`` of the `Hold` says so.

    This member's protocol type is not ``consumer``, and a group keeps the type of its last member. So at the end
    another member joins the group with the type ``consumer`` and leaves it, which takes that delay once more.

    session_timeout: seconds until the brokers remove this member if this process is killed. If the brokers do not allow
    the value (group.min.session.timeout.ms, group.max.session.timeout.ms), 30, 60, 300 and 6 seconds are tried.

    Raises `Refused` if the group has members, if another run holds it, or if the brokers allow none of these session
    timeouts; `NotAuthorized` without Read on the group; `ClusterUnavailable`.
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
    """Return a group's description without this tool's own member, and with the protocol type ``consumer``.

    This tool joins a group with another protocol type, to keep consumers out (`hold`). If the group has no other
    member, the state in the result is Empty. If no member of the group has the id ``member_id``, the description is
    returned unchanged.

    member_id: the id of this tool's member; None if it has none.
    """
    others = tuple(member for member in description.members if member.member_id != member_id)
    if len(others) == len(description.members):
        return description
    state = description.state if others else "Empty"
    return replace(description, members=others, state=state, protocol_type="consumer")


def _restore_protocol_type(connection: KafkaConnection, group: str, session_timeout: float) -> None:
    """Give an Empty group the protocol type ``consumer``: join it as a consumer, and leave it.

    A group keeps the protocol type of its last member. Here that was `HOLD_PROTOCOL_TYPE`, which kept consumers out.
    With it, Kafka's tools and confluent-kafka would say that the group is not a consumer group. Raises `Refused`,
    `NotAuthorized`, `ClusterUnavailable`.
    """
    last = LoneMember(group, "consumer")
    try:
        last.join(connection, session_timeout)
    finally:
        last.leave(connection)
