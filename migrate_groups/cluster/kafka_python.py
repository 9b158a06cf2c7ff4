"""The first client, kafka-python: reads and writes offset, leader epoch and metadata without loss."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import kafka.errors as kafka_errors
import tenacity

from migrate_groups.cluster import kafka_surroundings as surroundings
from migrate_groups.cluster import kafka_wire as wire
from migrate_groups.cluster.client_config import ClientConfig
from migrate_groups.cluster.hold import Hold, hold, without_holder
from migrate_groups.cluster.kafka_connection import KafkaConnection
from migrate_groups.cluster.kafka_log import Logs, first_records
from migrate_groups.cluster.ports import (
    Answer,
    CommittedOffset,
    GroupDescription,
    LogBounds,
    Operation,
    Resource,
    ResourceType,
    StampedOffset,
    TopicDescription,
    TopicPartition,
    WriteAnswer,
)
from migrate_groups.errors import ClusterUnavailable, InvalidInput, NotAuthorized, PendingCommits
from migrate_groups.text import some

K = TypeVar("K")

# Refused before anything was applied: safe to send again once the coordinator is known anew.
_LONGEST_NAME = 2**15 - 1  # bytes: Kafka's protocol has its length in 16 bits
_NOT_APPLIED = (
    kafka_errors.NotCoordinatorError,
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.CoordinatorLoadInProgressError,
)


class KafkaPythonReader:
    """`GroupReader` over kafka-python.

    ``describe_members`` answers for KIP-848 groups, whose members kafka-python can't see (it calls them Dead): the
    second client's `describe_group`.
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
        return self._connection.run(surroundings.cluster_id, doing="asking for the cluster id")

    def describe_group(self, group: str) -> GroupDescription:
        """See `GroupReader.describe_group`."""
        return self.describe_groups([group])[group]

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription]:
        """See `GroupReader.describe_groups`."""
        answers = {
            group: self._connection.run(
                wire.describe(group), doing=f"describing group {group!r}", needs=_describe_group(group)
            )
            for group in groups
        }
        dead = any(answer.group_state == "Dead" for answer in answers.values())
        listed = self._connection.run(wire.list_groups, doing="listing the groups") if dead else {}
        return {group: self._described(group, answer, listed.get(group)) for group, answer in answers.items()}

    def _described(self, group: str, answer: Any, listed: Mapping[str, str] | None) -> GroupDescription:
        """Describe a group by the answer for classic groups, and where that is Dead by what the list of groups has."""
        if answer.group_state != "Dead":
            return without_holder(wire.classic_group(answer), self._holder)
        if listed is None:
            # Azure Event Hubs calls a group Dead that nobody is in (kafkactl#217): its commits tell that it is there.
            if self.all_committed(group):
                return GroupDescription(group=group, state="Empty", group_type="classic")
            return GroupDescription(group=group, state="Dead", group_type="")
        if listed["group_type"] == "consumer" and self._describe_members is not None:
            return self._describe_members(group, listed["group_state"])
        return GroupDescription(
            group=group,
            state=listed["group_state"],
            group_type=listed["group_type"],
            protocol_type=listed["protocol_type"],
        )

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """See `GroupReader.describe_topics`."""
        return {
            topic.name: TopicDescription(
                topic=topic.name,
                topic_id=str(topic.topic_id) if topic.topic_id else None,
                partitions=tuple(sorted(partition.partition_index for partition in topic.partitions)),
                permitted=surroundings.permitted(topic.authorized_operations),
            )
            for topic in self._metadata(topics)
        }

    def all_committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset | None]:
        """See `GroupReader.all_committed`."""
        answers = self._connection.run(
            lambda client: wire.fetch_offsets(client, group, None, require_stable=True),
            doing=f"reading the committed offsets of group {group!r}",
            needs=_describe_group(group),
        )
        return {
            partition: None if answer.error_code == wire.UNSTABLE else wire.committed_offset(partition, answer)
            for partition, answer in answers.items()
        }

    def committed(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, CommittedOffset | None]:
        """See `OffsetsReader.committed`."""
        doing = f"reading the committed offsets of group {group!r}"
        answers: dict[TopicPartition, Any] = {}

        def read_what_is_still_pending() -> list[TopicPartition]:
            wanted = [partition for partition in partitions if partition not in answers]
            if not wanted:
                return []
            found = self._connection.run(
                lambda client: wire.fetch_offsets(client, group, wanted, require_stable=True),
                doing=doing,
                needs=_describe_group(group),
            )
            answers.update({tp: answer for tp, answer in found.items() if answer.error_code != wire.UNSTABLE})
            return [partition for partition in wanted if partition not in answers]

        pending: list[TopicPartition] = tenacity.Retrying(
            retry=tenacity.retry_if_result(bool),
            stop=tenacity.stop_after_delay(self._config.timeout),
            wait=tenacity.wait_exponential(multiplier=0.05, max=1.0),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else [],
        )(read_what_is_still_pending)
        if pending:
            raise PendingCommits(
                f"group {group!r} has pending transactional commits on {some(pending)}; "
                "wait until the transactions end, or abort them"
            )
        self._check_visible({tp.topic for tp, answer in answers.items() if wire.hides_topic(answer)})
        return {partition: wire.committed_offset(partition, answers[partition]) for partition in partitions}

    def log_bounds(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogBounds]:
        """See `GroupReader.log_bounds`."""
        return self._logs.bounds(partitions, starts or {}, ends or {})

    def stable_ends(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `GroupReader.stable_ends`."""
        return self._logs.stable_ends(partitions)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, StampedOffset | None]:
        """See `GroupReader.offsets_at`."""
        return self._logs.offsets_at(timestamps)

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Mapping[TopicPartition, StampedOffset | None]:
        """See `GroupReader.first_records`."""
        return first_records(self._config, spans)

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """See `GroupReader.permissions`."""
        doing = "asking what this principal may do"
        topics = [resource.name for resource in resources if resource.type is ResourceType.TOPIC]
        of_topics = self._connection.run(surroundings.topic_permissions(topics), doing=doing) if topics else {}
        return {
            resource: of_topics.get(resource.name)
            if resource.type is ResourceType.TOPIC
            else self._connection.run(surroundings.group_permissions(resource.name), doing=doing)
            for resource in resources
        }

    def offsets_retention(self) -> timedelta | None:
        """See `GroupReader.offsets_retention`."""
        return self._connection.run(surroundings.offsets_retention, doing="asking how long offsets are kept")

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
        """Raise `NotAuthorized` where a topic is hidden from this principal."""
        lacking = [f"{Operation.DESCRIBE} on {Resource(ResourceType.TOPIC, topic)}" for topic in hidden]
        if lacking:
            raise NotAuthorized(f"not authorized: {self.principal} lacks {some(lacking, most=20)}; grant it that")


def _describe_group(group: str) -> str:
    """Return what reading a group needs. Raises `InvalidInput` for a name that is too long for a request."""
    size = len(group.encode(errors="replace"))
    if size > _LONGEST_NAME:
        raise InvalidInput(f"group {group[:40]!r}…: a name of {size:,} bytes; Kafka's requests hold {_LONGEST_NAME:,}")
    return f"{Operation.DESCRIBE} on {Resource(ResourceType.GROUP, group)}"


class KafkaPythonWriter(KafkaPythonReader):
    """`GroupWriter` over kafka-python. It never raises for a partition: every answer is returned."""

    def alter_offsets(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """See `GroupWriter.alter_offsets`."""
        return self._write(group, offsets, wire.commit_offsets(group, offsets))

    def delete_offsets(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, WriteAnswer]:
        """See `GroupWriter.delete_offsets`."""
        return self._write(group, partitions, wire.delete_offsets(group, partitions))

    def delete_group(self, group: str) -> WriteAnswer:
        """See `GroupWriter.delete_group`."""
        return self._write(group, [group], lambda client: wire.delete_group(client, group))[group]

    @contextmanager
    def held(self, group: str) -> Iterator[Hold]:
        """See `GroupWriter.held`."""
        with hold(self._config, group) as holding:
            self._holder = holding.member_id
            try:
                yield holding
            finally:
                self._holder = None

    def _write(
        self,
        group: str,
        asked: Collection[K],
        request: wire.Request[Mapping[K, wire.PartitionError]],
    ) -> Mapping[K, WriteAnswer]:
        """Send a write; ``asked`` is what it is about, which has one answer each."""
        if not group:
            raise ValueError("a group name is never empty: kafka-python would write to the group ''")
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_NOT_APPLIED),
            stop=tenacity.stop_after_delay(self._config.timeout),
            wait=tenacity.wait_exponential(multiplier=0.05, max=1.0),
            reraise=True,
        )

        def attempt() -> Mapping[K, wire.PartitionError]:
            answers = self._connection.run_once(request)
            moved = [error for error in answers.values() if issubclass(error, _NOT_APPLIED)]
            if answers and len(moved) == len(answers):
                self._connection.close()
                raise moved[0]
            return answers

        try:
            answers = attempts(attempt)
        except (kafka_errors.KafkaError, OSError, ClusterUnavailable) as error:
            return dict.fromkeys(asked, wire.answer_of_all(error))
        silence = WriteAnswer(answer=Answer.UNKNOWN, error="the broker did not answer for it")
        return {each: wire.write_answer(answers[each]) if each in answers else silence for each in asked}
