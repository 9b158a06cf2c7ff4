"""The logs of partitions through kafka-python: their ends, records by time, and whether records are left."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import kafka.errors as kafka_errors
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.structs import TopicPartition as KafkaTopicPartition

from migrate_groups.cluster import kafka_wire as wire
from migrate_groups.cluster.client_config import ClientConfig
from migrate_groups.cluster.kafka_connection import KafkaConnection, explain
from migrate_groups.cluster.ports import LogBounds, StampedOffset, TopicPartition

# A fetch gives at least one batch, however large; more is not needed to see that there are records.
_FETCH_BYTES = 64 * 1024
_LOOK_SECONDS = 5.0
_POLL_SECONDS = 0.5

Questions = Sequence[Mapping[TopicPartition, int]]
"""Timestamps of the same partitions, one question after the other; all of them are asked side by side."""


class Logs:
    """Asks the leaders of partitions, which it remembers from one question to the next."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._leaders: dict[TopicPartition, int] = {}

    def learn(self, topics: Iterable[Any]) -> Mapping[TopicPartition, int]:
        """Remember who leads, as a Metadata answer says, and return it; a partition without a leader is left out."""
        leaders = {
            TopicPartition(topic.name, partition.partition_index): partition.leader_id
            for topic in topics
            for partition in topic.partitions
            if partition.leader_id >= 0
        }
        self._leaders |= leaders
        return leaders

    def bounds(
        self, partitions: Collection[TopicPartition], known: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, LogBounds]:
        """See `GroupReader.log_bounds`; ``known`` are ends."""
        doing = "reading the log's ends"
        half = [partition for partition in partitions if partition in known]
        whole = [partition for partition in partitions if partition not in known]
        starts = self._list_offsets([dict.fromkeys(half, wire.EARLIEST)], doing=doing)
        questions = [dict.fromkeys(whole, end) for end in (wire.EARLIEST, wire.LATEST)]
        both = self._list_offsets(questions, doing=doing)
        return {
            **{each: LogBounds(start=start.offset, end=known[each]) for each, (start,) in starts.items()},
            **{each: LogBounds(start=start.offset, end=end.offset) for each, (start, end) in both.items()},
        }

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, StampedOffset | None]:
        """See `GroupReader.offsets_at`."""
        if negative := [timestamp for timestamp in timestamps.values() if timestamp < 0]:
            raise ValueError(f"a negative timestamp asks Kafka for the log's ends: {negative[0]}")
        answers = self._list_offsets([timestamps], doing="looking records up by time")
        return {
            partition: None if found.offset < 0 else StampedOffset(offset=found.offset, timestamp=found.timestamp)
            for partition, (found,) in answers.items()
        }

    def _list_offsets(self, questions: Questions, *, doing: str) -> dict[TopicPartition, list[StampedOffset]]:
        """Return what each partition's leader answers to its timestamp in each question, where it answers to all."""
        partitions = questions[0].keys()
        answers: dict[TopicPartition, list[StampedOffset]] = {}

        async def ask(client: KafkaAdminClient) -> None:
            known, self._leaders = self._leaders, {}  # forgotten where one of them turns out to lead no more
            left = [partition for partition in partitions if partition not in answers]
            if all(partition in known for partition in left):
                await _ask(client, left, known, questions, answers)
                left = [partition for partition in left if partition not in answers]
            if left:  # a no counts only from those that lead now
                topics = await wire.topics(client, {partition.topic for partition in left})
                await _ask(client, left, self.learn(topics), questions, answers)
            self._leaders = known | self._leaders

        if partitions:
            self._connection.run(ask, doing=doing)
        return answers


async def _ask(
    client: KafkaAdminClient,
    partitions: Collection[TopicPartition],
    leaders: Mapping[TopicPartition, int],
    questions: Questions,
    answers: dict[TopicPartition, list[StampedOffset]],
) -> None:
    """Ask every leader all questions side by side, and add to the answers."""
    led: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        if partition in leaders:
            led[leaders[partition]].append(partition)
    requests = [
        [
            client._manager.send(
                wire.list_offsets({partition: timestamps[partition] for partition in of_leader}), node_id=leader
            )
            for timestamps in questions
        ]
        for leader, of_leader in led.items()
    ]
    for asked in requests:
        listed = [wire.listed_offsets(await response) for response in asked]
        for partition in set(listed[0]).intersection(*listed[1:]):
            answers[partition] = [each[partition] for each in listed]


def first_records(
    config: ClientConfig, spans: Mapping[TopicPartition, range]
) -> Mapping[TopicPartition, StampedOffset | None]:
    """See `GroupReader.first_records`. It is a consumer of no group: nothing is committed."""
    found: dict[TopicPartition, StampedOffset | None] = {partition: None for partition in spans if not spans[partition]}
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
                # To ask for positions takes time, and they matter only where no records come.
                decided = polled or {
                    each: [] for each, span in undecided.items() if consumer.position(each) >= span.stop
                }
                for partition in decided.keys() & undecided.keys():
                    records, span = decided[partition], undecided.pop(partition)
                    first = next((record for record in records if record.offset in span), None)
                    found[TopicPartition(*partition)] = first and StampedOffset(
                        offset=first.offset, timestamp=first.timestamp
                    )
                consumer.pause(*decided)
    except (kafka_errors.KafkaError, OSError) as error:
        needs = " and ".join(f"Read on Topic {topic!r}" for topic in sorted({each.topic for each in spans}))
        raise explain(error, config.security, "looking whether records are left", needs) from error
    return found
