"""The reading half of the first client, kafka-python, which keeps offset, leader epoch and metadata without loss."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import tenacity

from migrate_groups.errors import InvalidInput, MigrateGroupsError, NotAuthorized, PendingCommits
from migrate_groups.kafka import cluster_facts
from migrate_groups.kafka import groups as of_groups
from migrate_groups.kafka import wire as wire
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
    """`GroupReader` over kafka-python.

    describe_members: describes KIP-848 groups; it is the second client's `describe_group`. kafka-python can't read
    their members, and gets the state Dead for them.
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
        """See `GroupReader.cluster_id`."""
        return self._connection.run(cluster_facts.cluster_id, doing="asking for the cluster id")

    def list_groups(self) -> Sequence[GroupListing]:
        """See `GroupReader.list_groups`."""
        return sorted(self._listed().values(), key=lambda listing: listing.group)

    def _listed(self) -> Mapping[str, GroupListing]:
        return self._connection.run(wire.list_groups, doing="listing the groups")

    def describe_group(self, group: str) -> GroupDescription:
        """See `GroupReader.describe_group`."""
        return self.describe_groups([group])[group]

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription]:
        """See `GroupReader.describe_groups`."""
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
        """Return the description in DescribeGroups' answer; if that is Dead, the one from the list of groups."""
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
        """See `GroupReader.describe_topics`."""
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
        """See `GroupReader.all_committed`."""
        answers = self._of_groups([group], of_groups.fetch_offsets({group: None}), _READING)[group]
        return {
            partition: None if answer.error_code == wire.UNSTABLE else wire.committed_offset(partition, answer)
            for partition, answer in answers.items()
        }

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        """See `OffsetsReader.committed`."""
        found = self.committed_by_group({group: partitions})[group]
        if isinstance(found, MigrateGroupsError):
            raise found
        return found

    def committed_by_group(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """See `OffsetsReader.committed_by_group`."""
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

        tenacity.Retrying(
            retry=tenacity.retry_if_result(bool),
            stop=tenacity.stop_after_delay(self._config.timeout),
            wait=tenacity.wait_exponential(multiplier=0.05, max=1.0),
            retry_error_callback=lambda _: None,
        )(read_what_is_still_pending)
        return {
            group: failed.get(group) or self._read(group, partitions, answers[group])
            for group, partitions in wanted.items()
        }

    def _read(
        self, group: str, partitions: Collection[TopicPartition], answers: Mapping[TopicPartition, Any]
    ) -> CommittedOffsets | MigrateGroupsError:
        """Return the committed offset of each partition, or the error if one could not be read."""
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
        """Return the answer for each group. Raises `ClusterUnavailable` or `NotAuthorized` if one has none."""
        found: dict[str, T] = {}
        for group, answer in self._each_of_groups(groups, ask, doing).items():
            if isinstance(answer, MigrateGroupsError):
                raise answer
            found[group] = answer
        return found

    def _each_of_groups(self, groups: Collection[str], ask: Ask[T], doing: str) -> Mapping[str, T | MigrateGroupsError]:
        """Return the answer for each group, or its error, in which ``doing`` comes before "group 'g'"."""
        return self._connection.run_of_groups({group: _describe_group(group) for group in groups}, ask, doing)

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """See `GroupReader.log_ranges`."""
        return self._logs.bounds(partitions, starts or {}, ends or {})

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `GroupReader.last_stable_offsets`."""
        return self._logs.last_stable_offsets(partitions)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """See `GroupReader.offsets_at`."""
        return self._logs.offsets_at(timestamps)

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """See `GroupReader.first_records`."""
        return first_records(self._config, spans)

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """See `GroupReader.permissions`."""
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
        """See `GroupReader.offsets_retention`."""
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
        """Raise `NotAuthorized` if there are topics that are hidden from this principal."""
        lacking = [f"{Operation.DESCRIBE} on {Resource(ResourceType.TOPIC, topic)}" for topic in hidden]
        if lacking:
            raise NotAuthorized(f"not authorized: {self.principal} lacks {some(lacking, most=20)}; grant it that")


def _describe_group(group: str) -> str:
    """Return the permission to read a group. Raises `InvalidInput` if its name is too long for a request."""
    size = len(group.encode(errors="replace"))
    if size > _LONGEST_NAME:
        raise InvalidInput(f"group {group[:40]!r}…: a name of {size:,} bytes; Kafka's requests hold {_LONGEST_NAME:,}")
    return f"{Operation.DESCRIBE} on {Resource(ResourceType.GROUP, group)}"
