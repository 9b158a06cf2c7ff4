"""Keep consumers out of an Empty group: join it as its first member, and give up no partition.

A consumer that joins meanwhile waits, without an error, until this member leaves. The coordinator also refuses
deletions and other clients' commits, except transactional commits (docs/kafka-behaviour.md#holding-a-group). After the
hold, the group is Empty and classic, even if it was a KIP-848 group before. Its committed offsets expire after
offsets.retention.minutes if no consumer joins.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import kafka.errors as kafka_errors

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, Refused
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection, OfGroups, in_kafkas_words
from migrate_groups.kafka.group_requests import Membership
from migrate_groups.kafka.placeholder_member import REFUSED, PlaceholderMember
from migrate_groups.kafka.private import Client
from migrate_groups.kafka.wire import KafkaErrorClass
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import TopicPartition

_HEARTBEATS_PER_SESSION = 5
_TRIES_PER_SESSION = 3
_POLL_SECONDS = 0.01


class Holds:
    """The groups that one client holds. They share its connections, and one thread that sends their heartbeats.

    session_timeout: seconds until brokers remove the members of this process if it is killed; if brokers refuse the
    value, others are tried.
    """

    def __init__(self, config: ClientConfig, usual: KafkaConnection, session_timeout: float = 10.0) -> None:
        """config: the settings for the connection over which each hold joins its group. usual: describes groups."""
        self.config, self.usual, self.session_timeout = config, usual, session_timeout
        # If a coordinator hangs, a heartbeat reaches its successor before the session timeout.
        impatient = replace(config, timeout=min(config.timeout, session_timeout / _TRIES_PER_SESSION))
        self.session = KafkaConnection(impatient)
        self._held: dict[str, Hold] = {}
        self._lock = threading.Lock()
        self._is_sending = False

    def close(self) -> None:
        """Close the connection for heartbeats."""
        self.session.close()

    def add(self, hold: Hold) -> None:
        """Send heartbeats for a group from now on."""
        with self._lock:
            self._held[hold.group] = hold
            if not self._is_sending:
                self._is_sending = True
                threading.Thread(target=self._send_heartbeats, name="heartbeats", daemon=True).start()

    def remove(self, hold: Hold) -> None:
        """Send no further heartbeats for a group."""
        with self._lock:
            self._held.pop(hold.group, None)

    def beat(self, holds: Collection[Hold]) -> None:
        """Send a heartbeat for each of these groups, and note what the coordinators answer."""
        members = {hold.group: hold for hold in holds}

        async def send(client: Client, groups: Collection[str], into: OfGroups[KafkaErrorClass]) -> None:
            with suppress(kafka_errors.BrokerResponseError):
                await client.coordinators(groups)  # one request, after which the coordinator of each is known
            begun = {group: client.begin(members[group].heartbeat, client) for group in groups}
            for group, answer in begun.items():
                try:
                    into.found[group] = await answer
                except (kafka_errors.KafkaError, OSError) as error:
                    into.failed[group] = error

        for group, answer in self.session.run_of_groups(members, send, "sending a heartbeat for").items():
            members[group].note(answer)

    def _send_heartbeats(self) -> None:
        while True:
            with self._lock:
                holds = [*self._held.values()]
                self._is_sending = bool(holds)
            if not holds:
                return
            began = time.monotonic()
            try:
                self.beat(holds)
            except Exception as error:  # noqa: BLE001  otherwise the thread would end with `lost` unset
                for hold in holds:
                    hold.note(ClusterUnavailable(str(error)))
            shortest = min(hold.session_timeout for hold in holds)
            time.sleep(max(0.0, began + shortest / _HEARTBEATS_PER_SESSION - time.monotonic()))


# During a hold, a classic consumer waits for the answer to its JoinGroup, and a KIP-848 consumer for its partitions. A
# commit without membership is refused (UNKNOWN_MEMBER_ID), and so is a deletion of the group or its offsets
# (NON_EMPTY_GROUP). An administrator can remove the member that holds the group.
class Hold:
    """A group that this process has joined as its first member, so that no consumer gets a partition of it.

    lost: why consumers may get partitions; None if the last heartbeat was accepted. If ``lost`` is None after the
    ``with`` block of `hold`, no consumer got one during the block.
    """

    def __init__(self, member: PlaceholderMember, holds: Holds, holder: str) -> None:
        self.group = member.group
        self.lost: str | None = None
        self.heartbeat = member.heartbeat
        self._member, self._holds, self._holder = member, holds, holder
        self._error: Exception | None = None
        self._joined = threading.Event()
        self._is_over = False
        threading.Thread(target=self._join, name=f"hold {member.group}", daemon=True).start()

    @property
    def session_timeout(self) -> float:
        """Seconds after which the coordinator removes this process's member if no heartbeat arrives."""
        return self._member.session_timeout

    @property
    def member_id(self) -> str:
        """This process's member id in the group."""
        return self._member.member_id

    def membership(self) -> Membership:
        """Return the membership with which this process may commit offsets of the group.

        Before the coordinator has answered the join, it accepts only generation 0: that of a group without an earlier
        generation. If the join failed, it refuses every commit.
        """
        # With generation -1, the coordinator of an Empty group would take the commit as that of a client without
        # membership, and accept it.
        return max(0, self._member.generation), self._member.member_id

    @property
    def has_joined(self) -> bool:
        """Whether the coordinator has answered the join."""
        return self._joined.is_set()

    def await_join(self) -> None:
        """Wait until the coordinator has answered the join."""
        self._joined.wait()

    def _await_membership(self) -> None:
        """Wait until the coordinator lists this process as a member of the group.

        Raises `Refused` if the coordinator refuses the join, or if another member is there, perhaps before this one.
        """
        # The coordinator lists the member, and lets others wait, before it answers the join. The answer takes
        # group.initial.rebalance.delay.ms (3 s by default).
        connection = self._holds.usual
        while not (self._member.is_listed(connection) or self._joined.wait(_POLL_SECONDS)):
            pass
        if self._error is not None:
            raise self._error
        if self._member.others:
            self._member.leave(connection)  # otherwise the join may wait for the others
            raise Refused(f"group {self.group!r} can't be held: {REFUSED}")

    def _join(self) -> None:
        # If another broker becomes the coordinator after the join was answered, the membership continues there.
        # If before, the membership ends, and `lost` says so.
        # A connection of its own, because brokers answer a join late, and take the member's client id from it.
        config = self._holds.config
        config = replace(config, client_id=self._holder or config.client_id)
        try:
            with closing(KafkaConnection(config)) as patient:
                self._member.join(patient, self._holds.session_timeout)
            self._holds.add(self)
            if self._is_over:
                self._holds.remove(self)
        except Exception as error:  # noqa: BLE001  raised in the thread that waits for the membership
            if self._is_over:
                return  # the answer to a join that nothing waits for any more
            self._error = error
            self.lost = f"group {self.group!r} is no longer held: {error}"
            if isinstance(error, ClusterUnavailable):
                self.lost = f"it is not known whether group {self.group!r} is still held: {error}"
        finally:
            self._joined.set()

    def _end(self) -> None:
        """Send a last heartbeat, which sets `lost` if the coordinator has removed this member, and no further one.

        If the coordinator has not answered the join, but still lists this member, nothing waits for the answer.
        """
        with suppress(MigrateGroupsError):
            if not self.has_joined and self._member.is_listed(self._holds.usual):
                self._is_over = True
                self._holds.remove(self)
                return
        self._joined.wait()
        if self._error is None:
            self._holds.remove(self)
            self._holds.beat([self])
        self._is_over = True

    def note(self, answer: KafkaErrorClass | MigrateGroupsError) -> None:
        """Note the answer to a heartbeat: an error class of the response, or why there is none.

        ``lost`` becomes None if the coordinator accepted the heartbeat, because it has not removed this member, even if
        it left heartbeats unanswered. Otherwise it is the reason why consumers may get partitions again.
        """
        if self._is_over:
            return  # an answer to an earlier heartbeat, or the coordinator has removed this member
        if answer is kafka_errors.NoError:
            self.lost = None
        elif isinstance(answer, MigrateGroupsError):
            self.lost = f"it is not known whether group {self.group!r} is still held: {answer}"
        else:
            self._is_over = True
            self.lost = f"group {self.group!r} is no longer held: its coordinator answered {in_kafkas_words(answer)}"


@contextmanager
def hold(
    holds: Holds,
    group: str,
    partitions: Collection[TopicPartition],
    *,
    assignor: str = "",
    holder: str = "",
) -> Iterator[Hold]:
    """Be the first member of an Empty group during a ``with`` block, so that no consumer gets a partition of it.

    The group must exist, because joining creates a missing group. After the block the group is Empty, or its members
    are those that joined meanwhile and waited.

    partitions: all partitions that a consumer of the group may want. assignor: that of the group's consumers, if they
    have one of their own: with another one, a consumer that joins gets INCONSISTENT_GROUP_PROTOCOL. holder: the client
    id of this member; a member with this client id is removed first, because its process was killed.

    Raises `Refused` if the group can't be joined, for instance because it has members; `NotAuthorized`;
    `ClusterUnavailable`.
    """
    member = PlaceholderMember(group, partitions, assignor)
    members = member.members(holds.usual)
    killed = [each for each, client_id in members.items() if holder and client_id == holder]
    for each in killed:
        member.remove(holds.usual, each)
    if len(killed) < len(members):
        raise Refused(f"group {group!r} can't be held: {REFUSED}")
    try:
        held = Hold(member, holds, holder)
        try:
            held._await_membership()
            yield held
        finally:
            held._end()
    finally:
        # After an error the session timeout removes the member.
        with suppress(MigrateGroupsError):
            member.leave(holds.session)


def without_holder(description: GroupDescription, holders: Collection[str]) -> GroupDescription:
    """Return a group's description as Empty if this process's own member keeps consumers out of it.

    Other members only wait for this one, and consume nothing. holders: the ids of this process's members; if the group
    has no such member, the description is returned unchanged.
    """
    if not any(member.member_id in holders for member in description.members):
        return description
    return replace(description, members=(), state="Empty")
