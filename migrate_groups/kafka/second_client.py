"""Read back committed offsets with a second client, confluent-kafka, to detect wrong writes by kafka-python."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, NotAuthorized
from migrate_groups.kafka import request_log as request_log
from migrate_groups.kafka.child import GRACE_SECONDS, Child, question
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.together import Together
from migrate_groups.model.partitions import CommittedOffset, CommittedOffsets, TopicPartition
from migrate_groups.text import counted

_PROGRAM = "second_client_process"
# Functions of `second_client_process`. The child process is asked to call the first. If it dies, the next child process
# is asked to call the second, which avoids librdkafka's admin client.
_VERBS = ("committed", "committed_alone")
_DOING = "reading committed offsets"


class SecondClient:
    """Reads committed offsets with confluent-kafka in a child process (implements `OffsetsReader`).

    If the child process dies or hangs, a second child process gets the same request. If the second one fails too, the
    error is `ClusterUnavailable`.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._child: Child | None = None
        self._is_closed = False
        self._one_at_a_time = threading.Lock()
        self._together = Together(self._committed_of)

    def start(self) -> None:
        """Start the child process if it is not running; do not wait for it."""
        self._started()

    def _started(self) -> Child | None:
        """Return the running child process, after starting it if necessary; None after `close`."""
        if self._is_closed:
            return None
        child = self._child = self._child or Child(_PROGRAM)
        if self._is_closed:  # `close`, in another thread, may have missed this child
            child.end()
        return child

    def close(self) -> None:
        """End the child process for good. A thread that waits for an answer gets `ClusterUnavailable`."""
        self._is_closed = True
        self._end_child()

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def committed(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Ask the child process. Metadata is left out."""
        return self._together(wanted)

    def _committed_of(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        groups = {
            group: [[each.topic, each.partition] for each in sorted(partitions)] for group, partitions in wanted.items()
        }
        try:
            answers = self._ask(groups)
        except ClusterUnavailable as error:
            return dict.fromkeys(wanted, error)
        return {group: self._committed(group, answers[group]) for group in wanted}

    def cluster_id(self) -> str:
        """Ask the child process. Raises `ClusterUnavailable` if confluent-kafka can't log in to the cluster."""
        asked = request_log.line("Metadata", (), "", "the second client")
        with request_log.logged(lambda: asked), self._one_at_a_time:
            answer = self._answer(question("cluster_id", self._config))
        if answer is None:
            self._end_child()
            raise ClusterUnavailable("the second client (confluent-kafka) died or hung while it logged in")
        if "error" in answer:
            raise ClusterUnavailable(f"the second client (confluent-kafka) can't log in: {answer['error']}")
        return str(answer["answer"])

    def make_ready(self, wanted: Mapping[str, Collection[TopicPartition]]) -> None:
        """Ask the child process to connect, and to read one committed offset of each group. Do not wait for it."""
        groups = {
            group: [[each.topic, each.partition]] for group, partitions in wanted.items() for each in [*partitions][:1]
        }
        if groups:
            threading.Thread(target=self._connect, args=(groups,), daemon=True).start()

    def _connect(self, groups: Mapping[str, Collection[Any]]) -> None:
        with self._one_at_a_time, suppress(MigrateGroupsError):
            child = self._started()
            asked = question("connect", self._config, groups=groups) if child else b""
            if child and child.answer(asked, GRACE_SECONDS) is None:
                self._end_child()  # the next request starts a new one

    def _committed(self, group: str, answer: Any) -> CommittedOffsets | MigrateGroupsError:
        if isinstance(answer, str):
            return self._failed(answer, group)
        # No metadata, because confluent-kafka reads it wrongly (docs/kafka-behaviour.md#confluent-kafka).
        return {
            TopicPartition(topic, partition): None
            if offset is None
            else CommittedOffset(offset=offset, leader_epoch=epoch)
            for topic, partition, offset, epoch in answer
        }

    def _ask(self, groups: Mapping[str, Collection[Any]]) -> Any:
        """Ask the child process for committed offsets, and return its answer by group.

        groups: ``[topic, partition]`` pairs by group. A group's answer is a list of ``[topic, partition, offset, leader
        epoch]``, or the text of an error. Offset or leader epoch is None if none is committed.
        """
        with request_log.logged(lambda: _line(groups)):
            return self._first_answer(groups)

    def _first_answer(self, groups: Mapping[str, Collection[Any]]) -> Any:
        answer = None
        with self._one_at_a_time:
            for verb in _VERBS:
                answer = self._answer(question(verb, self._config, groups=groups))
                if answer is not None:
                    break
                self._end_child()  # otherwise a late answer would be taken for the answer to the next question
        if answer is None:
            raise ClusterUnavailable(
                f"the second client (confluent-kafka) died or hung twice while {_DOING}: run the command again"
            )
        if "error" in answer:
            raise self._failed(answer["error"], "")
        return answer["answer"]

    def _failed(self, error: str, group: str) -> ClusterUnavailable:
        if "TOPIC_AUTHORIZATION_FAILED" in error:
            return NotAuthorized(
                f"not authorized: {self._config.principal} lacks Describe on a topic of group {group!r}; "
                "grant this permission"
            )
        return ClusterUnavailable(f"the second client (confluent-kafka) failed while {_DOING}: {error}")

    def _answer(self, asked: bytes) -> dict[str, Any] | None:
        child = self._started()
        return child.answer(asked, self._config.timeout + GRACE_SECONDS) if child else None


def _line(groups: Mapping[str, Collection[Any]]) -> str:
    """Return a request for committed offsets as text for the log. groups: the partitions in the request, by group."""
    number = sum(map(len, groups.values()))
    return request_log.line("OffsetFetch", groups, counted(number, "partition") if number else "", "the second client")
