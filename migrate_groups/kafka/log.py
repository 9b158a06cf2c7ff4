"""Read the logs of partitions with kafka-python: start and end offsets, offsets by timestamp, first records."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import kafka.errors as kafka_errors
import msgspec
from kafka import KafkaConsumer
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.kafka import wire as wire
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection, explain
from migrate_groups.kafka.private import Client
from migrate_groups.model.partitions import LogRange, OffsetAndTimestamp, PartitionValue, Timestamps, TopicPartition

# A fetch returns at least one batch, however large. One batch is enough to see whether there are records.
_FETCH_BYTES = 64 * 1024
_LOOK_SECONDS = 5.0
_POLL_SECONDS = 0.5

_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_EARLIEST, _LATEST = -2, -1
_LEADER_CHANGES = (
    kafka_errors.NotLeaderForPartitionError,
    # The request had a leader epoch that is over, or that the leader does not know yet (KIP-320).
    kafka_errors.FencedLeaderEpochError,
    kafka_errors.UnknownLeaderEpochError,
    # A new leader knows the log end only after its followers have confirmed it (KIP-207).
    kafka_errors.OffsetNotAvailableError,
)
# Of ListOffsets: the last version without flexible fields, because kafka-python encodes such versions faster
# (docs/kafka-behaviour.md#kafka-python).
_LAST_PLAIN_VERSION = 5

Question = Mapping[TopicPartition, int]
"""What ListOffsets asks for: by partition a timestamp in milliseconds, or -2 (earliest) or -1 (latest offset)."""
Leader = tuple[int, int]
"""The id of a partition's leader, and its leader epoch; -1 if the metadata has no epoch."""


class _Answer(PartitionValue, frozen=True):
    """The ListOffsets answer for a partition: an offset, the timestamp of its record, and the leader that was asked.

    Both are -1 if no record is at or after the wanted timestamp. For a log start or log end offset only the timestamp
    is -1.
    """

    offset: int
    timestamp: int
    leader: Leader


Answers = dict[TopicPartition, _Answer]


class Logs:
    """Asks the leaders of partitions for offsets. Remembers the leaders and the log end offsets that they report."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._leaders: dict[TopicPartition, Leader] = {}
        self._ends: Answers = {}

    def learn(self, topics: Iterable[Any]) -> Mapping[TopicPartition, Leader]:
        """Remember and return the partitions' leaders in a Metadata answer; partitions without leader are left out."""
        leaders = {
            TopicPartition(topic.name, partition.partition_index): (partition.leader_id, partition.leader_epoch)
            for topic in topics
            for partition in topic.partitions
            if partition.leader_id >= 0
        }
        self._leaders |= leaders
        return leaders

    def bounds(
        self,
        partitions: Collection[TopicPartition],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> Mapping[TopicPartition, LogRange]:
        """Return the log start and log end offset of each partition (`GroupReader.log_ranges`).

        starts, ends: known offsets, which are not read again. But if only the end of a partition is known, and the
        current leader has not reported that the log reaches it, the end is read again.
        """
        doing = "reading log end offsets"
        questions = [
            {partition: timestamp for partition in partitions if partition not in known}
            for known, timestamp in ((starts, _EARLIEST), (ends, _LATEST))
        ]
        first, last = self._list_offsets(questions, doing=doing)
        # The broker that answered for the log start leads now. If an earlier leader reported the known log end, an
        # unclean election may have cut the log since, so that the log end must be read again.
        doubtful = {
            partition: _LATEST
            for partition, answer in first.items()
            if partition in ends and not self._reaches(partition, ends[partition], answer.leader)
        }
        if doubtful:
            last |= self._list_offsets([doubtful], doing=doing)[0]
            ends = {partition: end for partition, end in ends.items() if partition not in doubtful}
        self._ends |= last
        found = {}
        for partition in partitions:
            start = first[partition].offset if partition in first else starts.get(partition)
            end = last[partition].offset if partition in last else ends.get(partition)
            if start is not None and end is not None:
                found[partition] = LogRange(start=start, end=end)
        return found

    def _reaches(self, partition: TopicPartition, offset: int, leader: Leader) -> bool:
        """Return whether this leader, in this leader epoch, has reported a log end offset of at least ``offset``.

        Then the log still reaches ``offset``, because it only grows while leader and leader epoch stay the same.
        """
        end = self._ends.get(partition)
        return end is not None and end.leader == leader and offset <= end.offset

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return each partition's last stable offset (`GroupReader.last_stable_offsets`)."""
        question = dict.fromkeys(partitions, _LATEST)
        [answers] = self._list_offsets([question], doing="reading the last stable offsets", isolation=_READ_COMMITTED)
        return {partition: answer.offset for partition, answer in answers.items()}

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Return the first record at or after each partition's timestamp, or None (`GroupReader.offsets_at`)."""
        if negative := [timestamp for timestamp in timestamps.values() if timestamp < 0]:
            raise ValueError(f"a negative timestamp asks Kafka for the log's ends: {negative[0]}")
        [answers] = self._list_offsets([timestamps], doing="looking records up by time")
        return {
            partition: None if found.offset < 0 else OffsetAndTimestamp(offset=found.offset, timestamp=found.timestamp)
            for partition, found in answers.items()
        }

    def _list_offsets(
        self, questions: Sequence[Question], *, doing: str, isolation: int = _READ_UNCOMMITTED
    ) -> list[Answers]:
        """Return, for each question, the leaders' answers by partition; a partition without an answer is left out."""
        answers: list[Answers] = [{} for _ in questions]

        def left() -> list[Question]:
            return [
                {partition: timestamp for partition, timestamp in question.items() if partition not in answered}
                for question, answered in zip(questions, answers, strict=True)
            ]

        async def ask(client: Client) -> None:
            # The leaders are forgotten until all have answered, so that a retry reads the metadata first.
            known, self._leaders = self._leaders, {}
            open_questions = left()
            if all(question.keys() <= known.keys() for question in open_questions):
                await _ask(client, open_questions, isolation, known, answers)
                open_questions = left()
            if topic_names := {partition.topic for question in open_questions for partition in question}:
                # A partition may lack an answer only because a remembered leader no longer leads it.
                leaders = self.learn(await wire.topics(client, topic_names))
                await _ask(client, open_questions, isolation, leaders, answers)
            self._leaders = known | self._leaders

        if any(questions):
            self._connection.run(ask, doing=doing)
        return answers


async def _ask(
    client: Client,
    questions: Sequence[Question],
    isolation: int,
    leaders: Mapping[TopicPartition, Leader],
    answers: Sequence[Answers],
) -> None:
    """Send all questions to the leaders concurrently, and add each question's answers to its dict in ``answers``."""
    asked = []
    for question, answered in zip(questions, answers, strict=True):
        led: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for partition, timestamp in question.items():
            if leader := leaders.get(partition):
                led[leader[0]][partition] = timestamp
        for broker, of_broker in led.items():
            request = list_offsets(of_broker, leaders, isolation)
            asked.append((answered, client.send(request, broker)))
    for answered, response in asked:
        answered |= _listed_offsets(await response, leaders)


class _AskedOffset(msgspec.Struct, frozen=True, gc=False):
    """A partition in a ListOffsets request; kafka-python's own class takes ten times as long to instantiate."""

    partition_index: int
    timestamp: int
    current_leader_epoch: int


def list_offsets(
    question: Question, leaders: Mapping[TopicPartition, Leader], isolation: int = _READ_UNCOMMITTED
) -> Any:
    """Return a ListOffsets request with leader epochs: a broker with another leader epoch refuses it (KIP-320).

    With read_uncommitted the latest offset is the log end offset, from which Kafka's own tools compute lag. With
    read_committed it is the last stable offset.
    """
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    asked = (
        (partition, _AskedOffset(partition.partition, timestamp, leaders[partition][1]))
        for partition, timestamp in question.items()
    )
    return ListOffsetsRequest(
        isolation_level=isolation,
        topics=[topic_class(name=topic, partitions=of_topic) for topic, of_topic in wire.by_topic(asked).items()],
        min_version=1,
        max_version=_LAST_PLAIN_VERSION,
    )


def _listed_offsets(response: Any, leaders: Mapping[TopicPartition, Leader]) -> Answers:
    """Return the answers of a ListOffsets response, without the partitions that have an error.

    Raises the error if it means that the leader has changed, so that the request is retried.
    """
    found = {}
    for topic in response.topics:
        for answer in topic.partitions:
            if not answer.error_code:
                partition = TopicPartition(topic.name, answer.partition_index)
                found[partition] = _Answer(offset=answer.offset, timestamp=answer.timestamp, leader=leaders[partition])
                continue
            error = kafka_errors.for_code(answer.error_code)
            if issubclass(error, _LEADER_CHANGES):
                raise error(f"{topic.name}-{answer.partition_index}")  # retriable: the next attempt reads the metadata
    return found


def first_records(config: ClientConfig, spans: Mapping[TopicPartition, range]) -> Timestamps:
    """Return the first record in each span of offsets that a ``read_committed`` consumer gets; None if there is none.

    A partition that does not answer in time is left out (`GroupReader.first_records`). The consumer that reads them has
    no group and commits nothing.
    """
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {
        partition: None for partition in spans if not spans[partition]
    }
    undecided = {KafkaTopicPartition(*partition): span for partition, span in spans.items() if span}
    if not undecided:
        return found
    settings = config.kafka_python() | {
        "isolation_level": "read_committed",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_partition_fetch_bytes": _FETCH_BYTES,
    }
    deadline = time.monotonic() + min(_LOOK_SECONDS, config.timeout)
    try:
        with closing(KafkaConsumer(**settings)) as consumer:
            consumer.assign(list(undecided))
            for partition, span in undecided.items():
                consumer.seek(partition, span.start)
            while undecided and time.monotonic() < deadline:
                polled = consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000))
                # Positions are asked for only if no record comes, because each call takes time.
                decided = polled or {
                    each: [] for each, span in undecided.items() if consumer.position(each) >= span.stop
                }
                for partition in decided.keys() & undecided.keys():
                    records, span = decided[partition], undecided.pop(partition)
                    first = next((record for record in records if record.offset in span), None)
                    found[TopicPartition(*partition)] = first and OffsetAndTimestamp(
                        offset=first.offset, timestamp=first.timestamp
                    )
                consumer.pause(*decided)
    except (kafka_errors.KafkaError, OSError) as error:
        needs = " and ".join(f"Read on Topic {topic!r}" for topic in sorted({each.topic for each in spans}))
        raise explain(error, config.security, "looking whether records are left", needs) from error
    return found
