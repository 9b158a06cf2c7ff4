"""Read with kafka-python from partitions' leaders: log start and end offsets, offsets by timestamp, leader epochs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka import wire as wire
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.leaders import Leader, epoch_ends, rounds
from migrate_groups.kafka.list_offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Answers,
    OffsetsTopicEnds,
    Question,
    ask,
)
from migrate_groups.kafka.private import Client
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.partitions import (
    LeaderEpoch,
    LogRange,
    OffsetAndTimestamp,
    Timestamps,
    TopicPartition,
)
from migrate_groups.text import some


class Logs:
    """Reads offsets from the leaders of partitions (implements `LogReader`, without `first_records`)."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._leaders: dict[TopicPartition, Leader] = {}
        self._ends: Answers = {}

    def learn(self, topics: Iterable[Any]) -> Mapping[TopicPartition, Leader]:
        """Remember the leaders of partitions from a Metadata response, and return them.

        topics: the topics in the response. A partition without a leader is left out.
        """
        leaders = {
            TopicPartition(topic.name, partition.partition_index): (partition.leader_id, partition.leader_epoch)
            for topic in topics
            for partition in topic.partitions
            if partition.leader_id >= 0
        }
        self._leaders |= leaders
        return leaders

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """Send ListOffsets for what is not known, and for a known end if the log start may come from a new leader."""
        starts, ends = starts or {}, ends or {}
        doing = "reading log end offsets"
        questions = [
            {partition: timestamp for partition in partitions if partition not in known}
            for known, timestamp in ((starts, EARLIEST), (ends, LATEST))
        ]
        first, last = self._list_offsets(questions, doing=doing)
        # The broker that answered for the log start leads now. If an earlier leader reported the known log end, an
        # unclean election may have cut the log since, so that the log end must be read again.
        doubtful = {
            partition: LATEST
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
        """Return whether ``leader`` has already reported a log end offset of at least ``offset`` for the partition."""
        # A log only grows while broker and leader epoch stay the same.
        end = self._ends.get(partition)
        return end is not None and end.leader == leader and offset <= end.offset

    def coordinators_ends(self) -> OffsetsTopicEnds:
        """Return a reader of the log end offsets of ``__consumer_offsets`` from the leaders that are known."""
        leaders = dict(self._leaders)  # a copy, because requests of other threads change it
        return OffsetsTopicEnds({each: leader for each, leader in leaders.items() if each.topic == OFFSETS_TOPIC})

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Send ListOffsets for the latest offset, as a ``read_committed`` consumer."""
        question = dict.fromkeys(partitions, LATEST)
        [answers] = self._list_offsets([question], doing="reading the last stable offsets", isolation=READ_COMMITTED)
        return {partition: answer.offset for partition, answer in answers.items()}

    def epoch_ends(self, epochs: Collection[LeaderEpoch]) -> Mapping[LeaderEpoch, int]:
        """Send OffsetForLeaderEpoch, unless the partition is known to be in that epoch still."""
        left = {each for each in epochs if self._may_be_over(each)}
        ends: dict[LeaderEpoch, int] = {}

        async def send(client: Client) -> None:
            names = {each.partition.topic for each in left - ends.keys()}
            leaders = self.learn(await wire.topics(client, names))
            for of_round in rounds(each for each in sorted(left - ends.keys()) if each.partition in leaders):
                ends.update(await epoch_ends(client, of_round, leaders))

        if left:
            self._connection.run(send, doing="reading the ends of leader epochs")
        return {each: end for each, end in ends.items() if self._may_be_over(each)}

    def _may_be_over(self, asked: LeaderEpoch) -> bool:
        leader = self._leaders.get(asked.partition)
        return leader is None or asked.epoch < leader[1]

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Send ListOffsets with these timestamps."""
        if negative := [timestamp for timestamp in timestamps.values() if timestamp < 0]:
            raise ValueError(f"timestamp {negative[0]} is negative: pass the milliseconds since 1970")
        [answers] = self._list_offsets([timestamps], doing="looking up offsets by timestamp")
        if early := [
            each for each, found in answers.items() if found.offset >= 0 and found.timestamp < timestamps[each]
        ]:
            raise ClusterUnavailable(
                f"a broker answered with a record from before the time that was asked for: {some(early)}; it does not "
                "look up offsets by timestamp as Apache Kafka does, so pass offsets instead"
            )
        return {
            partition: None if found.offset < 0 else OffsetAndTimestamp(offset=found.offset, timestamp=found.timestamp)
            for partition, found in answers.items()
        }

    def _list_offsets(
        self, questions: Sequence[Question], *, doing: str, isolation: int = READ_UNCOMMITTED
    ) -> list[Answers]:
        """Send ListOffsets requests, and return one dict of answers by partition for each question.

        questions: each has timestamps by partition; -2 is the earliest, -1 the latest offset. A partition with an error
        or without a leader is left out. isolation: 0 is read_uncommitted, 1 is read_committed.
        """
        answers: list[Answers] = [{} for _ in questions]

        def left() -> list[Question]:
            return [
                {partition: timestamp for partition, timestamp in question.items() if partition not in answered}
                for question, answered in zip(questions, answers, strict=True)
            ]

        async def send(client: Client) -> None:
            # The leaders are forgotten until all of them have answered, so that a retry looks up the new leaders.
            open_questions = left()
            asked = {partition for question in open_questions for partition in question}
            known = {each: self._leaders.pop(each) for each in asked if each in self._leaders}
            if asked == known.keys():
                await ask(client, open_questions, isolation, known, answers)
                open_questions = left()
            if topic_names := {partition.topic for question in open_questions for partition in question}:
                # A partition may lack an answer only because a remembered leader no longer leads it.
                leaders = self.learn(await wire.topics(client, topic_names))
                await ask(client, open_questions, isolation, leaders, answers)
            for partition, leader in known.items():
                self._leaders.setdefault(partition, leader)

        if any(questions):
            self._connection.run(send, doing=doing)
        return answers
