"""An in-memory cluster for tests. tests/contract checks that it behaves like the real clients on a broker."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, Refused, ShareGroupStarted
from migrate_groups.migration.log_ports import LogReader
from migrate_groups.migration.ports import Clients, GroupReader, GroupWriter, HeldGroup, OffsetsReader
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.apis import ALL_OFFERED, Offers
from migrate_groups.model.groups import GroupDescription, GroupWithOffsets, Member, Wanted, with_offsets
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.partitions import (
    CommittedOffset,
    CommittedOffsets,
    LeaderEpoch,
    LogRange,
    OffsetLimits,
    Timestamps,
    TopicPartition,
    metadata_length,
)
from migrate_groups.model.permissions import EVERYONE, Acls, Operation, Resource, ResourceType
from migrate_groups.model.records import Records
from migrate_groups.model.topics import TopicDescription
from tests.support.in_memory_log import Log

T = TypeVar("T")

_WRITTEN = WriteAnswer(answer=Answer.WRITTEN)
_MOST_METADATA = 4096
_PROBE = CommittedOffset(offset=0, metadata="migrate-groups")
OFFSETS_PARTITIONS = 50
"""The number of partitions of ``__consumer_offsets``: Kafka's default."""


@dataclass
class _Group:
    group_type: str = "classic"
    protocol_type: str = ""
    assignor: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    has_started: bool = False  # whether a share group has had a member


@dataclass
class _Held:
    member_id: str
    lost: str | None = None


def _each(groups: Iterable[str], ask: Callable[[str], T]) -> Mapping[str, T | MigrateGroupsError]:
    """Return the result of ``ask`` for each group. If ``ask`` raises an error, the error is the result."""
    found: dict[str, T | MigrateGroupsError] = {}
    for group in groups:
        try:
            found[group] = ask(group)
        except MigrateGroupsError as error:
            found[group] = error
    return found


class InMemoryCluster:
    """An in-memory Kafka cluster, which the code under test reads and writes as a `GroupWriter`.

    It also has methods for what producers, consumers and administrators do.
    """

    def __init__(self, cluster_id: str = "in-memory") -> None:
        self.principal = "User:ANONYMOUS"
        self.second_client_lacks = ""
        self.offered = ALL_OFFERED
        self._cluster_id = cluster_id
        logs = {number: Log() for number in range(OFFSETS_PARTITIONS)}
        self._topics: dict[str, tuple[str, dict[int, Log]]] = {OFFSETS_TOPIC: ("id-of-offsets", logs)}
        self._compacted: set[str] = set()
        self._groups: dict[str, _Group] = {}
        self._denied: set[tuple[Resource, Operation]] = set()
        self.all_acls = Acls(unknown="the brokers keep no ACLs")
        self._retention: timedelta | None = timedelta(days=7)
        self._metadata_limit: int | None = _MOST_METADATA
        self.rebalance_delay = timedelta(0)
        self.hide_policies = False  # whether nobody may read cleanup.policy of topics
        self._created = 0
        self._waiting: list[tuple[str, TopicPartition, CommittedOffset]] = []  # commits that are not replicated yet
        self._hung: bool | None = None
        self._ends_told: dict[TopicPartition, tuple[int, int]] = {}  # leader epoch, last returned log end offset
        self._holds: dict[str, _Held] = {}  # of this client, by group
        self._joined = itertools.count()

    @property
    def clients(self) -> Clients:
        """The clients of a command that writes, of which this one is the second client, too."""
        return Clients(self, self)

    def other_client(self) -> InMemoryCluster:
        """Return another client of this cluster: it holds no group, and is refused where this one holds a group."""
        other = copy.copy(self)
        other._holds = {}
        return other

    # Requests of producers, consumers and administrators.

    def create_topic(self, topic: str, partitions: int, *, compacted: bool = False) -> None:
        """Create a topic with empty partitions. A topic that is created again gets another topic id."""
        self._created += 1
        self._compacted = self._compacted - {topic} | ({topic} if compacted else set())
        logs = {number: Log() for number in range(partitions)}
        self._topics[topic] = (f"topic-id-{self._created}", logs)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and every group's committed offsets for it."""
        del self._topics[topic]
        for group in self._groups.values():
            group.committed = {tp: offset for tp, offset in group.committed.items() if tp.topic != topic}

    def add_partitions(self, topic: str, total: int) -> None:
        """Add empty partitions to a topic, until it has ``total`` partitions."""
        logs = self._topics[topic][1]
        logs.update({number: Log() for number in range(len(logs), total)})

    def produce(self, topic: str, partition: int, records: int, *, timestamp: int = 0) -> None:
        """Append records to a partition. timestamp: in milliseconds since 1970."""
        self._topics[topic][1][partition].append(records, timestamp)

    def transact(self, topic: str, partition: int, records: int, *, timestamp: int = 0, commit: bool = True) -> None:
        """Append records in a transaction, and its control record. commit: whether the transaction is committed."""
        with self.transaction(topic, partition, records, timestamp=timestamp, commit=commit):
            pass

    @contextmanager
    def transaction(
        self, topic: str, partition: int, records: int, *, timestamp: int = 0, commit: bool = True
    ) -> Iterator[None]:
        """Append records in a transaction that is open for the length of a ``with`` block.

        commit: whether the transaction is then committed, and not aborted. timestamp: in milliseconds since 1970.
        """
        log = self._topics[topic][1][partition]
        first = log.open_from = log.end
        log.append(records, timestamp)
        yield
        log.open_from = None
        log.append(1, timestamp)
        log.markers.add(log.end - 1)
        log.unseen |= {log.end - 1, *(() if commit else range(first, first + records))}

    def append_copies(self, topic: str, partition: int, copied: Records) -> None:
        """Append copies of records to a partition, as a mirror does."""
        self._topics[topic][1][partition].append_copies(copied)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete the records below an offset."""
        log = self._topics[topic][1][partition]
        log.keep(range(before, log.end))

    def log(self, partition: TopicPartition) -> Log:
        """Return the log of a partition, which the caller may change."""
        return self._topics[partition.topic][1][partition.partition]

    def compact(self, topic: str, partition: int, removed: Collection[int]) -> None:
        """Remove the records at these offsets, as compaction does."""
        self._topics[topic][1][partition].remove(removed)

    def lose_leader(self, topic: str, partition: int) -> None:
        """Leave a partition without a leader."""
        self._topics[topic][1][partition].has_leader = False

    def elect(self, topic: str, partition: int, end: int) -> None:
        """Elect a leader whose log ends at ``end``. Later records are lost, as in an unclean leader election."""
        self._topics[topic][1][partition].elect(end)

    def join(
        self,
        group: str,
        member: Member,
        *,
        group_type: str = "classic",
        protocol_type: str = "consumer",
        assignor: str = "range",
    ) -> None:
        """Add a member to a group, a classic consumer by default. The group is Stable at once.

        A KIP-848 group that a classic member joins stays one.
        """
        joined = self._groups.setdefault(group, _Group())
        if protocol_type == "consumer":
            member = replace(member, group_protocol=group_type)
        is_kip_848 = group_type == "consumer" or (joined.members and joined.group_type == "consumer")
        joined.group_type = "consumer" if is_kip_848 else group_type
        joined.protocol_type, joined.assignor = protocol_type, assignor
        joined.members[member.member_id] = member
        joined.has_started |= group_type == "share"

    def leave(self, group: str, member_id: str) -> None:
        """Remove a member from its group, also the member of a client that holds the group."""
        del self._groups[group].members[member_id]

    def commit(self, group: str, partition: TopicPartition, offset: int, metadata: str = "") -> None:
        """Commit an offset, as a member or a consumer without membership does."""
        committed = CommittedOffset(offset=offset, leader_epoch=0, metadata=metadata)
        self._append(group, partition, committed)

    def hang_follower(self, *, past_timeout: bool = False) -> None:
        """Let a follower hang: from now on commits are accepted, and not readable before they are replicated.

        The follower goes on when the next probe is committed, or only with `follower_goes_on` if ``past_timeout``.
        """
        self._hung = past_timeout

    def follower_goes_on(self) -> None:
        """Replicate the commits that have waited, so that they are readable."""
        self._hung, waiting, self._waiting = None, self._waiting, []
        for group, partition, committed in waiting:
            self._append(group, partition, committed)

    def _append(self, group: str, partition: TopicPartition, committed: CommittedOffset) -> None:
        if self._hung is None:
            self._groups.setdefault(group, _Group()).committed[partition] = committed
        else:
            self._waiting.append((group, partition, committed))

    def deny(self, resource: Resource, *operations: Operation) -> None:
        """Make `permissions` omit these operations on a resource. Requests are not refused because of this."""
        self._denied |= {(resource, operation) for operation in operations}

    def keep_offsets(self, retention: timedelta | None, metadata: int | None = _MOST_METADATA) -> None:
        """Set the result of `offset_limits`; None: the principal may not read it."""
        self._retention, self._metadata_limit = retention, metadata

    def description(self, group: str) -> GroupDescription:
        """Return the description of a group; the state of a group that does not exist is Dead."""
        found = self._groups.get(group)
        if found is None:
            return GroupDescription(group=group, state="Dead", group_type="")
        return GroupDescription(
            group=group,
            state="Stable" if found.members else "Empty",
            group_type=found.group_type,
            protocol_type=found.protocol_type,
            assignor=found.assignor if found.members and found.group_type == "classic" else "",
            members=() if found.group_type == "share" else tuple(found.members.values()),
        )

    def offsets(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return all committed offsets of a group."""
        found = self._groups.get(group)
        return dict(found.committed) if found else {}

    def alter(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """Commit these offsets, and return the answer for each partition: a refusal if the group has members."""
        return self._set(group, offsets, _Group())

    def _set(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset], new: _Group
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """Set these offsets of a group, and return the answers. new: the group, if it does not exist yet."""
        if not group:
            raise ValueError("a group name is empty")
        if (refusal := self._of_another_type(group, is_share=new.group_type == "share")) is not None:
            return dict.fromkeys(offsets, refusal)
        answers = {partition: self._answer(group, partition, committed) for partition, committed in offsets.items()}
        for partition, answer in answers.items():
            if answer is _WRITTEN:
                self._groups.setdefault(group, new).committed[partition] = offsets[partition]
        return answers

    def _of_another_type(self, group: str, *, is_share: bool) -> WriteAnswer | None:
        """Return the refusal of a write to a share group that is none, or the other way round; None: it is not."""
        found = self._groups.get(group)
        if found is None or (found.group_type == "share") is is_share:
            return None
        return WriteAnswer(answer=Answer.REFUSED, error="GROUP_ID_NOT_FOUND")

    # GroupReader: a request about several groups asks about one after the other.

    def cluster_id(self) -> str:
        return self._cluster_id

    def list_groups(self) -> Sequence[GroupDescription]:
        return [replace(self.description(group), members=(), assignor="") for group in sorted(self._groups)]

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription | MigrateGroupsError]:
        return _each(groups, self._described)

    def describe_with_offsets(self, wanted: Wanted) -> Mapping[str, GroupWithOffsets | MigrateGroupsError]:
        return with_offsets(wanted, self.describe_groups(wanted), lambda left: self.committed(left, wait=False))

    def make_ready(self, wanted: Mapping[str, Collection[TopicPartition]]) -> None:
        pass

    def describe_after_ends(
        self, partitions: Collection[TopicPartition], group: str
    ) -> tuple[Mapping[TopicPartition, int], GroupWithOffsets | MigrateGroupsError]:
        ends = {partition: log.end for partition, log in self.log_ranges(partitions).items()}
        return ends, self.describe_with_offsets({group: None})[group]

    def round_trip(self) -> float:
        return 0.0

    def at_once(self, *calls: Callable[[], object]) -> list[Any]:
        return [call() for call in calls]

    def _described(self, group: str) -> GroupDescription:
        """Return the description of a group, without this client's own member: as Empty if this client holds it."""
        found, held = self.description(group), self._holds.get(group)
        if held is None or held.member_id not in {member.member_id for member in found.members}:
            return found
        return replace(found, state="Empty", members=(), assignor="")

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        there = self._topics
        return {
            topic: TopicDescription(topic=topic, topic_id=topic_id, partitions=tuple(logs), permitted=permitted)
            for topic in sorted(there if topics is None else set(topics) & there.keys())
            for (topic_id, logs), permitted in [(there[topic], self._permitted(Resource(ResourceType.TOPIC, topic)))]
            if topics is not None or Operation.DESCRIBE in permitted
        }

    def committed(
        self, wanted: Mapping[str, Collection[TopicPartition] | None], *, wait: bool = True
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        return _each(wanted, lambda group: self.fetched(group, wanted[group], wait=wait))

    def fetched(self, group: str, partitions: Collection[TopicPartition] | None, *, wait: bool) -> CommittedOffsets:
        """Return the answer of `committed` for one group: no commit here is part of an open transaction."""
        offsets, found = self.offsets(group), self._groups.get(group)
        if found is not None and found.group_type == "share" and (partitions is None or found.has_started):
            if partitions:
                raise ShareGroupStarted(group)
            return {}
        if partitions is None:
            return offsets
        return {each: offsets.get(each) for each in partitions if wait or each in offsets}

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        starts, ends = starts or {}, ends or {}
        found = {}
        for partition, log in self._led(partitions):
            epoch, told = self._ends_told.get(partition, (log.epoch, -1))
            stands = partition in ends and (partition in starts or (epoch == log.epoch and ends[partition] <= told))
            if not stands:
                self._ends_told[partition] = log.epoch, log.end
            end = ends[partition] if stands else log.end
            found[partition] = LogRange(start=starts.get(partition, log.start), end=end)
        return found

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {partition: log.last_stable_offset for partition, log in self._led(partitions)}

    def epoch_ends(self, epochs: Collection[LeaderEpoch]) -> Mapping[LeaderEpoch, int]:
        found = {}
        for each in epochs:
            for _, log in self._led([each.partition]):
                if (end := log.end_of(each.epoch)) is not None:
                    found[each] = end
        return found

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        if negative := [timestamp for timestamp in timestamps.values() if timestamp < 0]:
            raise ValueError(f"a negative timestamp: {negative[0]}")
        return {partition: log.first_since(timestamps[partition]) for partition, log in self._led(timestamps)}

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        return {partition: log.first_in(spans[partition]) for partition, log in self._led(spans)}

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return all operations on each resource, except those that `deny` has removed; never None."""
        return {resource: self._permitted(resource) for resource in resources}

    def _permitted(self, resource: Resource) -> frozenset[Operation]:
        return frozenset(operation for operation in Operation if (resource, operation) not in self._denied)

    def acls(self, principals: Collection[str]) -> Acls:
        """Return the ACLs in ``all_acls`` of these principals and of every user; by default the brokers keep none."""
        of_them = tuple(each for each in self.all_acls.entries if each.principal in (*principals, EVERYONE))
        return self.all_acls._replace(entries=of_them)

    def brokers(self) -> Sequence[int]:
        """Return one broker, with id 1."""
        return [1]

    def offers(self) -> Offers:
        return self.offered

    def offset_limits(self) -> OffsetLimits:
        """Return the limits that `keep_offsets` has set, by default 7 days and 4,096 characters.

        None: the principal may not read it.
        """
        return OffsetLimits(self._retention, self._metadata_limit)

    def maybe_compacted_topics(self, topics: Collection[str]) -> frozenset[str]:
        """Return which of these topics were created as compacted, or do not exist, or have a policy that is hidden."""
        known = self._topics.keys() - self._compacted if not self.hide_policies else frozenset[str]()
        return frozenset(topics) - known

    def initial_rebalance_delay(self) -> timedelta | None:
        """Return the initial rebalance delay: 0 as on a sandbox broker, unless a test sets ``rebalance_delay``."""
        return self.rebalance_delay

    def records(self, partition: TopicPartition, span: range, *, committed_only: bool) -> Records:
        """Return the records in a span of offsets. Raises `ClusterUnavailable` if the partition has no leader."""
        for _, log in self._led([partition]):
            return log.records(span, committed_only=committed_only)
        raise ClusterUnavailable(f"no answer for {partition}")

    # GroupWriter

    def alter_offsets(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        return {group: self.alter(group, of_group) for group, of_group in offsets.items()}

    def alter_share_offsets(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        return {
            group: self._set(
                group,
                {partition: CommittedOffset(offset=each.offset) for partition, each in of_group.items()},
                _Group(group_type="share", protocol_type="share"),
            )
            for group, of_group in offsets.items()
        }

    def commit_probes(self, probes: Collection[str], partition: TopicPartition) -> Mapping[str, WriteAnswer]:
        """Commit offset 0 for each probe group. A commit that waits for replication is answered as a time-out."""
        answers = {probe: self._answer(probe, partition, _PROBE) for probe in probes}
        for probe in probes:
            if answers[probe] is _WRITTEN:
                self._append(probe, partition, _PROBE)
        if self._hung:
            return dict.fromkeys(probes, WriteAnswer(answer=Answer.UNKNOWN, error="COORDINATOR_NOT_AVAILABLE"))
        self.follower_goes_on()
        return answers

    def delete_offsets(
        self, partitions: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        return {group: self.delete(group, of_group) for group, of_group in partitions.items()}

    def delete_share_offsets(
        self, partitions: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        return {group: self._delete_share(group, of_group) for group, of_group in partitions.items()}

    def _delete_share(self, group: str, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, WriteAnswer]:
        """Delete the start offsets of a share group for the topics of these partitions."""
        if self._of_another_type(group, is_share=True) is not None or group not in self._groups:
            return dict.fromkeys(partitions, WriteAnswer(answer=Answer.REFUSED, error="GROUP_ID_NOT_FOUND"))
        found, topics = self._groups[group], {each.topic for each in partitions}
        if found.members:
            return dict.fromkeys(partitions, WriteAnswer(answer=Answer.REFUSED, error="NON_EMPTY_GROUP"))
        found.committed = {each: at for each, at in found.committed.items() if each.topic not in topics}
        return dict.fromkeys(partitions, _WRITTEN)

    def delete(self, group: str, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, WriteAnswer]:
        """Delete a group's committed offsets, as another client may at any time."""
        found = self._groups.get(group)
        if found is None or found.group_type == "share":
            return dict.fromkeys(partitions, WriteAnswer(answer=Answer.REFUSED, error="GROUP_ID_NOT_FOUND"))
        subscribed = frozenset[str]().union(*(member.topics for member in found.members.values()))
        answers = {}
        for partition in partitions:
            if partition.topic in subscribed:
                answers[partition] = WriteAnswer(answer=Answer.REFUSED, error="GROUP_SUBSCRIBED_TO_TOPIC")
            else:
                found.committed.pop(partition, None)
                answers[partition] = _WRITTEN
        return answers

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, WriteAnswer]:
        return {group: self.delete_group(group) for group in groups}

    def delete_group(self, group: str) -> WriteAnswer:
        found = self._groups.get(group)
        if found is None:
            return WriteAnswer(answer=Answer.REFUSED, error="GROUP_ID_NOT_FOUND")
        if found.members:
            return WriteAnswer(answer=Answer.REFUSED, error="NON_EMPTY_GROUP")
        del self._groups[group]
        return _WRITTEN

    @contextmanager
    def held(
        self, group: str, partitions: Collection[TopicPartition], assignor: str = "", holder: str = ""
    ) -> Iterator[HeldGroup]:
        """Join the group, and yield a `HeldGroup`; raise `Refused` if the group has members.

        The hold need not keep consumers out, because no consumer joins by itself in this cluster.
        """
        members = self._groups.get(group, _Group()).members
        for member in [each for each in members.values() if holder and each.client_id == holder]:
            del members[member.member_id]
        if members:
            raise Refused(f"group {group!r} can't be held: somebody is in it")
        held = _Held(f"migrate-groups-{next(self._joined)}")
        self.join(group, Member(member_id=held.member_id, client_id=holder or "migrate-groups", host="/127.0.0.1"))
        self._holds[group] = held
        try:
            yield held
        finally:
            del self._holds[group]
            if group in self._groups:
                self._groups[group].members.pop(held.member_id, None)

    def _log(self, partition: TopicPartition) -> Log | None:
        _, logs = self._topics.get(partition.topic, ("", {}))
        return logs.get(partition.partition)

    def _led(self, partitions: Iterable[TopicPartition]) -> Iterator[tuple[TopicPartition, Log]]:
        for partition in partitions:
            log = self._log(partition)
            if log is not None and log.has_leader:
                yield partition, log

    def _answer(self, group: str, partition: TopicPartition, committed: CommittedOffset) -> WriteAnswer:
        found, held = self._groups.get(group), self._holds.get(group)
        is_refused = held.member_id not in (found.members if found else {}) if held else found and found.members
        if is_refused:
            error = "NON_EMPTY_GROUP" if found and found.group_type == "share" else "UNKNOWN_MEMBER_ID"
            return WriteAnswer(answer=Answer.REFUSED, error=error)
        if self._log(partition) is None:
            return WriteAnswer(answer=Answer.REFUSED, error="UNKNOWN_TOPIC_OR_PARTITION")
        if metadata_length(committed.metadata) > _MOST_METADATA:
            return WriteAnswer(answer=Answer.REFUSED, error="OFFSET_METADATA_TOO_LARGE")
        return _WRITTEN


@dataclass(frozen=True)
class InMemoryRecords:
    """Reads the records of an in-memory cluster as a `RecordReader`."""

    cluster: InMemoryCluster

    def read(self, spans: Mapping[TopicPartition, range], *, committed_only: bool) -> Mapping[TopicPartition, Records]:
        return {each: self.cluster.records(each, span, committed_only=committed_only) for each, span in spans.items()}


PORT = {
    name: method
    for port in (OffsetsReader, LogReader, GroupReader, GroupWriter)
    for name, method in vars(port).items()
    if inspect.isfunction(method) and not name.startswith("_")
}
"""The requests of a `GroupWriter`."""


class Asked(InMemoryCluster):
    """A cluster that calls ``before_request`` right before each request, with the name of the request."""

    def before_request(self, name: str) -> None:
        """Do nothing."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in PORT:
            return found

        def asked(*arguments: object, **named: object) -> Any:
            self.before_request(name)
            return found(*arguments, **named)

        return asked
