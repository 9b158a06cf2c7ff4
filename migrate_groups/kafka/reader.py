"""Read with the first of the two clients, kafka-python, which keeps offset, leader epoch and metadata without loss."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from migrate_groups.errors import InvalidInput, MigrateGroupsError, NotAuthorized, PendingCommits, raise_first
from migrate_groups.kafka import cluster_facts, wire
from migrate_groups.kafka import groups as of_groups
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import Ask, KafkaConnection
from migrate_groups.kafka.hold import without_holder
from migrate_groups.kafka.log import Logs, first_records
from migrate_groups.model.groups import GroupDescription, GroupListing
from migrate_groups.model.partitions import (
    CommittedOffset,
    CommittedOffsets,
    LogRange,
    Timestamps,
    TopicPartition,
)
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription
from migrate_groups.text import some

K = TypeVar("K")
T = TypeVar("T")

_LONGEST_NAME = 2**15 - 1  # in bytes, because Kafka's protocol stores the length in 16 bits
_READING = "reading the committed offsets of"


class KafkaPythonReader:
    """Implements `GroupReader` with kafka-python.

    describe_members: returns the description of a KIP-848 group, given its name and state. It is
    `SecondClient.describe_group`, because kafka-python can't read such a group's members, and gets the state Dead.
    """

    def __init__(
        self, config: ClientConfig, *, describe_members: Callable[[str, str], GroupDescription] | None = None
    ) -> None:
        self.principal = config.security.principal
        self._connection = KafkaConnection(config)
        self._logs = Logs(self._connection)
        self._config = config
        self._describe_members = describe_members
        self._holder: str | None = None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def cluster_id(self) -> str:
        """Return the id that the brokers report for their cluster."""
        return self._connection.run(cluster_facts.cluster_id, doing="asking for the cluster id")

    def list_groups(self) -> Sequence[GroupListing]:
        """Return all groups of any type that this principal may describe, sorted by name."""
        return sorted(self._listed().values(), key=lambda listing: listing.group)

    def _listed(self) -> Mapping[str, GroupListing]:
        return self._connection.run(wire.list_groups, doing="listing the groups")

    def describe_group(self, group: str) -> GroupDescription:
        """Return the description of a group of any type; a group that does not exist is Dead (`GroupReader`)."""
        return self.describe_groups([group])[group]

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription]:
        """Return the description of each group, as `describe_group` does, with one request for each coordinator."""
        answers = self._of_groups(groups, of_groups.describe(), "describing")
        dead = [group for group, answer in answers.items() if answer.group_state == "Dead"]
        listed = self._listed() if dead else {}
        # Azure Event Hubs calls a group without members Dead (kafkactl#217); its committed offsets prove it exists.
        unlisted = [group for group in dead if group not in listed]
        commits = self._of_groups(unlisted, of_groups.fetch_offsets(dict.fromkeys(unlisted)), _READING)
        return {
            group: self._described(group, answer, listed.get(group), commits=bool(commits.get(group)))
            for group, answer in answers.items()
        }

    def _described(self, group: str, answer: Any, listed: GroupListing | None, *, commits: bool) -> GroupDescription:
        """Return a group's description from DescribeGroups' answer, or from other sources if the answer is Dead.

        listed: its entry in the list of groups. commits: whether it has committed offsets, and so exists.
        """
        if answer.group_state != "Dead":
            return without_holder(wire.classic_group(answer), self._holder)
        if listed is None:
            if commits:
                return GroupDescription(group=group, state="Empty", group_type="classic")
            return GroupDescription(group=group, state="Dead", group_type="")
        if listed.group_type == "consumer" and self._describe_members is not None:
            return self._describe_members(group, listed.state)
        return GroupDescription(
            group=group, state=listed.state, group_type=listed.group_type, protocol_type=listed.protocol_type
        )

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Return the descriptions of these topics (None: of all), without topics that do not exist (`GroupReader`)."""
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
        """Return all committed offsets of a group; None: a transactional commit is pending (`GroupReader`)."""
        answers = self._of_groups([group], of_groups.fetch_offsets({group: None}), _READING)[group]
        return {
            partition: None if answer.error_code == wire.UNSTABLE else wire.committed_offset(partition, answer)
            for partition, answer in answers.items()
        }

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        """Return the committed offset of each partition; None if nothing is committed (`OffsetsReader.committed`)."""
        return raise_first(self.committed_by_group({group: partitions}))[group]

    def committed_by_group(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return, for each group, the result of `committed`, or the error that `committed` would raise."""
        answers: dict[str, dict[TopicPartition, Any]] = {group: {} for group in wanted}
        failed: dict[str, MigrateGroupsError] = {}

        def read_what_is_still_pending() -> bool:
            left = {
                group: [partition for partition in partitions if partition not in answers[group]]
                for group, partitions in wanted.items()
                if group not in failed
            }
            left = {group: partitions for group, partitions in left.items() if partitions}
            found = self._each_of_groups(left, of_groups.fetch_offsets(left), _READING)
            for group, answer in found.items():
                if isinstance(answer, MigrateGroupsError):
                    failed[group] = answer
                else:
                    answers[group].update({tp: each for tp, each in answer.items() if each.error_code != wire.UNSTABLE})
            return any(partition not in answers[group] for group in left.keys() - failed for partition in left[group])

        self._connection.repeat_while(read_what_is_still_pending)
        return {
            group: failed.get(group) or self._read(group, partitions, answers[group])
            for group, partitions in wanted.items()
        }

    def _read(
        self, group: str, partitions: Collection[TopicPartition], answers: Mapping[TopicPartition, Any]
    ) -> CommittedOffsets | MigrateGroupsError:
        """Return the committed offset of each partition, or the error to report if one could not be read."""
        if pending := [partition for partition in partitions if partition not in answers]:
            return PendingCommits(
                f"group {group!r} has pending transactional commits on {some(pending)}; "
                "wait until the transactions end, or abort them"
            )
        try:
            self._check_visible({tp.topic for tp, answer in answers.items() if wire.hides_topic(answer)})
            return {partition: wire.committed_offset(partition, answers[partition]) for partition in partitions}
        except MigrateGroupsError as error:
            return error

    def _of_groups(self, groups: Collection[str], ask: Ask[T], doing: str) -> Mapping[str, T]:
        """Return each group's answer to ``ask``. Raises the error of the first group without an answer."""
        answers = self._each_of_groups(groups, ask, doing)
        return raise_first(answers)

    def _each_of_groups(self, groups: Collection[str], ask: Ask[T], doing: str) -> Mapping[str, T | MigrateGroupsError]:
        """Return each group's answer to ``ask``, or its error, which says ``doing`` before "group 'g'"."""
        return self._connection.run_of_groups({group: _describe_group(group) for group in groups}, ask, doing)

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """Return the log start and log end offset of each partition (`GroupReader.log_ranges`)."""
        return self._logs.bounds(partitions, starts or {}, ends or {})

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's last stable offset (`GroupReader.last_stable_offsets`)."""
        return self._logs.last_stable_offsets(partitions)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Return the first record at or after each partition's timestamp, or None (`GroupReader.offsets_at`)."""
        return self._logs.offsets_at(timestamps)

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Return the first record in each span that a ``read_committed`` consumer gets, or None (`GroupReader`)."""
        return first_records(self._config, spans)

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return the operations that this principal may perform on each group and topic (`GroupReader.permissions`)."""
        doing = "asking what this principal may do"
        topics = [resource.name for resource in resources if resource.type is ResourceType.TOPIC]
        of_topics = self._connection.run(cluster_facts.topic_permissions(topics), doing=doing) if topics else {}
        groups = [resource.name for resource in resources if resource.type is ResourceType.GROUP]
        permitted = self._of_groups(groups, cluster_facts.group_permissions, "asking what this principal may do with")
        return {
            resource: (of_topics if resource.type is ResourceType.TOPIC else permitted).get(resource.name)
            for resource in resources
        }

    def offsets_retention(self) -> timedelta | None:
        """Return ``offsets.retention.minutes`` of a broker; None if it is not reported."""
        return self._connection.run(cluster_facts.offsets_retention, doing="asking how long offsets are kept")

    def _metadata(self, topics: Iterable[str] | None) -> list[Any]:
        names = None if topics is None else set(topics)
        if names == set():
            return []
        answers = self._connection.run(
            lambda client: wire.topics(client, names, permissions=True), doing="asking for the topics' metadata"
        )
        self._check_visible(answer.name for answer in answers if wire.hides_topic(answer))
        self._logs.learn(answers)
        return [answer for answer in answers if answer.partitions]

    def _check_visible(self, hidden: Iterable[str]) -> None:
        """Raise `NotAuthorized` if ``hidden`` is not empty: the topics for which this principal lacks Describe."""
        lacking = [f"{Operation.DESCRIBE} on {Resource(ResourceType.TOPIC, topic)}" for topic in hidden]
        if lacking:
            raise NotAuthorized(f"not authorized: {self.principal} lacks {some(lacking, most=20)}; grant it that")


def _describe_group(group: str) -> str:
    """Return the permission that reading a group requires. Raises `InvalidInput` if the name is too long for Kafka."""
    size = len(group.encode(errors="replace"))
    if size > _LONGEST_NAME:
        raise InvalidInput(f"group {group[:40]!r}…: a name of {size:,} bytes; Kafka's requests hold {_LONGEST_NAME:,}")
    return f"{Operation.DESCRIBE} on {Resource(ResourceType.GROUP, group)}"
