"""Read groups, topics and offsets with kafka-python, the first of the two clients.

Unlike confluent-kafka, it returns the metadata of committed offsets unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from migrate_groups.errors import (
    InvalidInput,
    MigrateGroupsError,
    NotAuthorized,
    PendingCommits,
    Refused,
    raise_first,
)
from migrate_groups.kafka import cluster_facts, wire
from migrate_groups.kafka import groups as of_groups
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import Ask, KafkaConnection
from migrate_groups.kafka.first_records import first_records
from migrate_groups.kafka.hold import without_holder
from migrate_groups.kafka.log import Logs
from migrate_groups.model.groups import GroupDescription, GroupListing
from migrate_groups.model.partitions import (
    CommittedOffset,
    CommittedOffsets,
    LeaderEpoch,
    LogRange,
    Timestamps,
    TopicPartition,
)
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription
from migrate_groups.text import some

K = TypeVar("K")
T = TypeVar("T")

Descriptions = Mapping[str, GroupDescription | MigrateGroupsError]
"""The description of each group, or the error of reading it."""

_LONGEST_NAME = 2**15 - 1  # in bytes, because Kafka's protocol stores the length in 16 bits
_READING = "reading the committed offsets of"


class KafkaPythonReader:
    """Reads groups, topics and offsets with kafka-python (implements `GroupReader`).

    principal: the client's principal as Kafka's ACLs name it, such as ``User:alice``. second_client_lacks: why
    confluent-kafka can't log in with the same settings; empty if it can. Every method that sends a request raises
    `ClusterUnavailable` or `NotAuthorized`.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.principal = config.security.principal
        self.second_client_lacks = config.security.second_client_lacks
        self._connection = KafkaConnection(config)
        self._logs = Logs(self._connection)
        self._config = config
        self._holder: str | None = None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def cluster_id(self) -> str:
        """Return the id that the brokers report for their cluster."""
        return self._connection.run(cluster_facts.cluster_id, doing="reading the cluster id")

    def list_groups(self) -> Sequence[GroupListing]:
        """Return the groups of all types that the client's principal may describe, sorted by name."""
        return sorted(self._listed().values(), key=lambda listing: listing.group)

    def _listed(self) -> Mapping[str, GroupListing]:
        return self._connection.run(wire.list_groups, doing="listing the groups")

    def describe_group(self, group: str) -> GroupDescription:
        """Return the description of a group of any type; the state of a group that does not exist is ``Dead``.

        Raises `Refused` if a member's subscription or assignment is not in Kafka's consumer protocol.
        """
        return self.describe_groups([group])[group]

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription]:
        """Return the description of each group; the state of a group that does not exist is ``Dead``.

        Groups with the same coordinator share a request. Raises the error of the first group that can't be described:
        `Refused` if a member's subscription or assignment is not in Kafka's consumer protocol, `NotAuthorized`, or
        `ClusterUnavailable`.
        """
        return raise_first(self.described_by_group(groups))

    def described_by_group(self, groups: Collection[str]) -> Descriptions:
        """Return the description of each group, or the error of reading it.

        The state of a group that does not exist is ``Dead``. The error is `Refused` if a member's subscription or
        assignment is not in Kafka's consumer protocol; else `NotAuthorized` or `ClusterUnavailable`.
        """
        answers = self._each_of_groups(groups, of_groups.describe(), "describing")
        dead = [group for group, answer in answers.items() if getattr(answer, "group_state", "") == "Dead"]
        every = self._listed() if dead else {}
        listed = {group: every[group] for group in dead if group in every}
        consumers = self._described_consumers([g for g, each in listed.items() if each.group_type == "consumer"])
        # Azure Event Hubs calls a group without members Dead (kafkactl#217); its committed offsets prove it exists.
        commits = self.all_committed_by_group([group for group in dead if group not in listed])
        found: dict[str, GroupDescription | MigrateGroupsError] = {}
        for group, answer in answers.items():
            if group in consumers:
                found[group] = consumers[group]
            elif group in listed:
                found[group] = listed[group].description
            elif group in commits:
                found[group] = _dead_or_empty(group, commits[group])
            else:
                found[group] = self._classic(answer)
        return found

    def _described_consumers(self, groups: Collection[str]) -> Descriptions:
        """Return the description of each of these KIP-848 groups, or the error of reading it."""
        # The answer to DescribeGroups has shown that Describe on the group is granted. Only a topic can be hidden.
        needs = {group: f"{Operation.DESCRIBE} on a topic of group {group!r}" for group in groups}
        answers = self._connection.run_of_groups(
            needs, of_groups.describe_consumer_groups(), "describing the members of"
        )
        return {
            group: answer if isinstance(answer, MigrateGroupsError) else wire.consumer_group(answer)
            for group, answer in answers.items()
        }

    def _classic(self, answer: Any) -> GroupDescription | MigrateGroupsError:
        """Return the description in an answer to DescribeGroups, or the error.

        The member with which this client holds the group is left out. An ``answer`` that is an error is returned
        unchanged. The error is `Refused` if a member's assignment is not in Kafka's consumer protocol.
        """
        if isinstance(answer, MigrateGroupsError):
            return answer
        try:
            return without_holder(wire.classic_group(answer), self._holder)
        except Refused as error:
            return error

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Return the descriptions of topics, by name. A topic that does not exist is left out, and is not created.

        topics: the names; None: all topics that the client's principal may describe. Raises `NotAuthorized` if Describe
        is lacking on one of ``topics``; `ClusterUnavailable`.
        """
        return {
            topic.name: TopicDescription(
                topic=topic.name,
                topic_id=str(topic.topic_id) if topic.topic_id else None,
                partitions=tuple(sorted(partition.partition_index for partition in topic.partitions)),
                permitted=cluster_facts.permitted(topic.authorized_operations),
            )
            for topic in self._metadata(topics)
        }

    def all_committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset | None]:
        """Return all committed offsets of a group, by partition; None: a transactional commit is pending.

        Partitions of topics that the client's principal may not describe are left out without an error. So are
        partitions whose first commit is still pending.
        """
        return raise_first(self.all_committed_by_group([group]))[group]

    def all_committed_by_group(self, groups: Collection[str]) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return all committed offsets of each group, or the error of reading them.

        An offset is None if a transactional commit is pending for its partition. Partitions of topics that the client's
        principal may not describe are left out without an error. So are partitions whose first commit is still pending.
        """
        answers = self._each_of_groups(groups, of_groups.fetch_offsets(dict.fromkeys(groups)), _READING)
        return {group: _all_committed(answer) for group, answer in answers.items()}

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        """Return the group's committed offset for each of these partitions; None if the group has none.

        Waits for pending transactional commits. Raises `PendingCommits` if one is still pending at the time-out;
        `NotAuthorized`; `ClusterUnavailable`.
        """
        return raise_first(self.committed_by_group({group: partitions}))[group]

    def committed_by_group(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the committed offsets of each group for its partitions in ``wanted``, or the error of reading them.

        An offset is None if the group has no committed offset for the partition. Waits for pending transactional
        commits. The error is `PendingCommits` if one is still pending at the time-out.
        """
        found: dict[str, CommittedOffsets | MigrateGroupsError] = {group: {} for group in wanted}

        def read_what_is_still_pending() -> bool:
            left = {
                group: pending
                for group, partitions in wanted.items()
                if (pending := _without_answer(partitions, found[group]))
            }
            for group, answer in self.committed_now(left).items():
                known = found[group]
                if isinstance(known, MigrateGroupsError) or isinstance(answer, MigrateGroupsError):
                    found[group] = answer
                else:
                    found[group] = {**known, **answer}
            return any(_without_answer(partitions, found[group]) for group, partitions in left.items())

        self._connection.repeat_while(read_what_is_still_pending)
        for group, partitions in wanted.items():
            if pending := _without_answer(partitions, found[group]):
                found[group] = PendingCommits(
                    f"group {group!r} has pending transactional commits on {some(pending)}; "
                    "wait until the transactions end, or abort them"
                )
        return found

    def committed_now(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the committed offsets of each group for its partitions in ``wanted``, or the error of reading them.

        An offset is None if the group has no committed offset for the partition. A partition with a pending
        transactional commit is left out; unlike `committed_by_group`, this method does not wait for it.
        """
        answers = self._each_of_groups(wanted, of_groups.fetch_offsets(wanted), _READING)
        return {
            group: answer if isinstance(answer, MigrateGroupsError) else self._stable(answer)
            for group, answer in answers.items()
        }

    def _stable(self, answers: Mapping[TopicPartition, Any]) -> CommittedOffsets | MigrateGroupsError:
        stable = {partition: each for partition, each in answers.items() if each.error_code != wire.UNSTABLE}
        try:
            self._check_visible({partition.topic for partition, each in stable.items() if wire.hides_topic(each)})
            return {partition: wire.committed_offset(partition, each) for partition, each in stable.items()}
        except MigrateGroupsError as error:
            return error

    def _of_groups(self, groups: Collection[str], ask: Ask[T], doing: str) -> Mapping[str, T]:
        """Send the request ``ask`` about these groups, and return each group's answer.

        Raises the error of the first group without an answer. doing: what stands before "group 'g'" in its message.
        """
        answers = self._each_of_groups(groups, ask, doing)
        return raise_first(answers)

    def _each_of_groups(self, groups: Collection[str], ask: Ask[T], doing: str) -> Mapping[str, T | MigrateGroupsError]:
        """Send the request ``ask`` about these groups, and return each group's answer or error.

        doing: what stands before "group 'g'" in an error message. Raises `InvalidInput` if a group's name is too long.
        """
        return self._connection.run_of_groups({group: _describe_permission(group) for group in groups}, ask, doing)

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """Return the log start and log end offset of each partition.

        A partition that does not exist or has no leader is left out.

        ends, starts: log end and log start offsets that were read before, and are not read again. There is one
        exception: if only the log end offset of a partition is given, it is read again, unless the current leader has
        reported to this reader that the log reaches it.
        """
        return self._logs.bounds(partitions, starts or {}, ends or {})

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's last stable offset, at which ``read_committed`` consumers stop.

        A partition that does not exist or has no leader is left out.
        """
        return self._logs.last_stable_offsets(partitions)

    def epoch_ends(self, epochs: Collection[LeaderEpoch]) -> Mapping[LeaderEpoch, int]:
        """Return the offset at which each of these leader epochs ended, and a later epoch of the partition began.

        A leader epoch is left out if it is the partition's current one or a higher one, if the leader does not know it,
        or if the partition does not exist or has no leader.
        """
        return self._logs.epoch_ends(epochs)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Return the offset and timestamp of each partition's first record at or after a timestamp.

        timestamps: in milliseconds since 1970, by partition. None: the partition has no such record. A partition that
        does not exist or has no leader is left out. Raises ``ValueError`` for a negative timestamp.
        """
        return self._logs.offsets_at(timestamps)

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Return, for each partition, the first record in a span of offsets that a ``read_committed`` consumer gets.

        The result has the record's offset and timestamp; None: the span has no such record. A partition that does not
        answer within 5 s is left out, because it is not known whether its span has a record.
        """
        return first_records(self._config, spans)

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return the operations that the client's principal may perform on each of these groups and topics.

        An empty set: the principal lacks Describe on the group or topic. None: the broker does not report operations
        (KIP-430).
        """
        doing = "reading the permissions of this principal"
        topics = [resource.name for resource in resources if resource.type is ResourceType.TOPIC]
        of_topics = self._connection.run(cluster_facts.topic_permissions(topics), doing=doing) if topics else {}
        groups = [resource.name for resource in resources if resource.type is ResourceType.GROUP]
        permitted = self._of_groups(
            groups, cluster_facts.group_permissions, "reading the permissions of this principal on"
        )
        return {
            resource: (of_topics if resource.type is ResourceType.TOPIC else permitted).get(resource.name)
            for resource in resources
        }

    def offsets_retention(self) -> timedelta | None:
        """Return a broker's ``offsets.retention.minutes``, for which it keeps committed offsets.

        None if the broker does not report it, for instance because the client's principal lacks DescribeConfigs.
        """
        return self._connection.run(cluster_facts.offsets_retention, doing="reading offsets.retention.minutes")

    def compacted_topics(self, topics: Collection[str]) -> frozenset[str]:
        """Return those of the topics whose ``cleanup.policy`` contains ``compact``.

        A topic is left out if the client's principal lacks DescribeConfigs on it, or if it does not exist.
        """
        if not topics:
            return frozenset()
        return self._connection.run(cluster_facts.compacted_topics(topics), doing="reading cleanup.policy of topics")

    def initial_rebalance_delay(self) -> timedelta | None:
        """Return a broker's ``group.initial.rebalance.delay.ms``, for which an Empty group waits for more members.

        None if the broker does not report it, for instance because the client's principal lacks DescribeConfigs.
        """
        doing = "reading group.initial.rebalance.delay.ms"
        return self._connection.run(cluster_facts.initial_rebalance_delay, doing=doing)

    def _metadata(self, topics: Iterable[str] | None) -> list[Any]:
        names = None if topics is None else set(topics)
        if names == set():
            return []
        answers = self._connection.run(
            lambda client: wire.topics(client, names, permissions=True), doing="reading the metadata of topics"
        )
        self._check_visible(answer.name for answer in answers if wire.hides_topic(answer))
        self._logs.learn(answers)
        return [answer for answer in answers if answer.partitions]

    def _check_visible(self, hidden: Iterable[str]) -> None:
        """Raise `NotAuthorized` if ``hidden`` is not empty. hidden: topics on which the principal lacks Describe."""
        lacking = [f"{Operation.DESCRIBE} on {Resource(ResourceType.TOPIC, topic)}" for topic in hidden]
        if lacking:
            these = "this permission" if len(lacking) == 1 else "these permissions"
            raise NotAuthorized(f"not authorized: {self.principal} lacks {some(lacking, most=20)}; grant it {these}")


def _without_answer(
    partitions: Collection[TopicPartition], found: CommittedOffsets | MigrateGroupsError
) -> list[TopicPartition]:
    if isinstance(found, MigrateGroupsError):
        return []
    return [partition for partition in partitions if partition not in found]


def _dead_or_empty(group: str, commits: CommittedOffsets | MigrateGroupsError) -> GroupDescription | MigrateGroupsError:
    """Return the description of a group that the coordinator calls Dead and ListGroups does not list.

    commits: its committed offsets, or the error of reading them. The group is Empty if it has committed offsets, else
    Dead. An error is returned unchanged.
    """
    if isinstance(commits, MigrateGroupsError):
        return commits
    state, group_type = ("Empty", "classic") if commits else ("Dead", "")
    return GroupDescription(group=group, state=state, group_type=group_type)


def _all_committed(
    answers: Mapping[TopicPartition, Any] | MigrateGroupsError,
) -> CommittedOffsets | MigrateGroupsError:
    """Return the committed offsets in a group's answer to OffsetFetch, or the error.

    An offset is None if a transactional commit is pending for the partition. ``answers`` that are an error are returned
    unchanged. If the answer about a partition has any other error code, the result is `Refused`.
    """
    if isinstance(answers, MigrateGroupsError):
        return answers
    try:
        return {
            partition: None if answer.error_code == wire.UNSTABLE else wire.committed_offset(partition, answer)
            for partition, answer in answers.items()
        }
    except Refused as error:
        return error


def _describe_permission(group: str) -> str:
    """Return the permission that reading a group requires, such as ``Describe on Group 'g'``.

    Raises `InvalidInput` if the group's name is too long for Kafka's protocol.
    """
    size = len(group.encode(errors="replace"))
    if size > _LONGEST_NAME:
        raise InvalidInput(
            f"group {group[:40]!r}… has a name of {size:,} bytes: pass a name of at most {_LONGEST_NAME:,} bytes"
        )
    return f"{Operation.DESCRIBE} on {Resource(ResourceType.GROUP, group)}"
