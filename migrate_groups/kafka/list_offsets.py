"""Send ListOffsets requests with kafka-python, to the leaders of partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Any

import kafka.errors as kafka_errors
import msgspec
from kafka.protocol.consumer import ListOffsetsRequest

from migrate_groups.kafka import wire as wire
from migrate_groups.kafka.leaders import Leader, raise_leader_change
from migrate_groups.kafka.private import Client
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, log_partition
from migrate_groups.model.partitions import PartitionValue, TopicPartition

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
EARLIEST, LATEST = -2, -1
# The highest version of ListOffsets to send. It is the last one without flexible fields (KIP-482), because kafka-python
# encodes such versions faster (docs/kafka-behaviour.md#kafka-python).
LAST_PLAIN_VERSION = 5

Question = Mapping[TopicPartition, int]
"""What to look up with ListOffsets: by partition, a timestamp in milliseconds, or -2 for the earliest offset, or -1 for
the latest offset."""


class Answer(PartitionValue, frozen=True):
    """The ListOffsets answer for a partition: an offset, the timestamp of its record, and the leader that answered.

    Offset and timestamp are -1 if no record is at or after the requested timestamp. For a log start or log end offset
    only the timestamp is -1.
    """

    offset: int
    timestamp: int
    leader: Leader


Answers = dict[TopicPartition, Answer]


class OffsetsTopicEnds:
    """Reads log end offsets of ``__consumer_offsets`` on the connections on which groups are read then.

    leaders: of all partitions of the topic. ends: by partition, if each was read before the groups in its partition;
    otherwise empty.
    """

    def __init__(self, leaders: Mapping[TopicPartition, Leader]) -> None:
        self._leaders = leaders
        self.ends: Mapping[TopicPartition, int] = {}

    def send(self, client: Client, nodes: Mapping[Any, Collection[str]]) -> Awaitable[None]:
        """Send ListOffsets, and return a coroutine that waits for the responses. nodes: the groups of each broker."""
        answers: Answers = {}
        asked = ask(client, [dict.fromkeys(self._leaders, LATEST)], READ_UNCOMMITTED, self._leaders, [answers])
        are_coordinators = bool(self._leaders) and all(
            self._leads(node, TopicPartition(OFFSETS_TOPIC, log_partition(group, len(self._leaders))))
            for node, groups in nodes.items()
            for group in groups
        )

        async def received() -> None:
            try:
                await asked
            except (kafka_errors.KafkaError, OSError):
                answers.clear()  # the caller reads them again, one after the other
            is_whole = are_coordinators and answers.keys() == self._leaders.keys()
            self.ends = {partition: answer.offset for partition, answer in answers.items()} if is_whole else {}

        return received()

    def _leads(self, node: Any, partition: TopicPartition) -> bool:
        return partition in self._leaders and self._leaders[partition][0] == node


def ask(
    client: Client,
    questions: Sequence[Question],
    isolation: int,
    leaders: Mapping[TopicPartition, Leader],
    answers: Sequence[Answers],
) -> Awaitable[None]:
    """Send ListOffsets requests to leaders, and return a coroutine that waits for the responses.

    The coroutine puts the answers for ``questions[i]`` into ``answers[i]``. It raises kafka-python's retriable error if
    a leader has changed. A partition with another error, or without a leader, gets no answer. isolation: 0 is
    read_uncommitted, 1 is read_committed.
    """
    asked = []
    for question, answered in zip(questions, answers, strict=True):
        led: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for partition, timestamp in question.items():
            if leader := leaders.get(partition):
                led[leader[0]][partition] = timestamp
        for broker, of_broker in led.items():
            most = client.at_most(ListOffsetsRequest, LAST_PLAIN_VERSION)
            request = list_offsets(of_broker, leaders, isolation, most)
            asked.append((answered, client.send(request, broker)))

    async def received() -> None:
        for answered, response in asked:
            answered |= _listed_offsets(await response, leaders)

    return received()


class _AskedOffset(msgspec.Struct, frozen=True, gc=False):
    """A partition in a ListOffsets request, in place of kafka-python's slower class."""

    # Making an object of kafka-python's class takes ten times as long.
    partition_index: int
    timestamp: int
    current_leader_epoch: int


def list_offsets(
    question: Question,
    leaders: Mapping[TopicPartition, Leader],
    isolation: int = READ_UNCOMMITTED,
    most: int = LAST_PLAIN_VERSION,
) -> Any:
    """Return a ListOffsets request for the partitions in ``question``, all of which must be in ``leaders``.

    question: timestamps by partition; -2 is the earliest, -1 the latest offset. isolation: 0 is read_uncommitted. 1 is
    read_committed, where the latest offset is the last stable offset. most: the highest version to send.
    """
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    # A broker with another leader epoch refuses the request (KIP-320).
    asked = (
        (partition, _AskedOffset(partition.partition, timestamp, leaders[partition][1]))
        for partition, timestamp in question.items()
    )
    return ListOffsetsRequest(
        isolation_level=isolation,
        topics=[topic_class(name=topic, partitions=of_topic) for topic, of_topic in wire.by_topic(asked).items()],
        min_version=1,
        max_version=most,
    )


def _listed_offsets(response: Any, leaders: Mapping[TopicPartition, Leader]) -> Answers:
    """Return the answers in a ListOffsets response, by partition.

    Raises kafka-python's retriable error if a leader has changed. A partition with another error is left out.
    """
    found = {}
    for topic in response.topics:
        for answer in topic.partitions:
            if not answer.error_code:
                partition = TopicPartition(topic.name, answer.partition_index)
                found[partition] = Answer(offset=answer.offset, timestamp=answer.timestamp, leader=leaders[partition])
                continue
            raise_leader_change(answer.error_code, TopicPartition(topic.name, answer.partition_index))
    return found
