"""The second client, which reads back: confluent-kafka, an independent implementation, in a child process."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping
from typing import IO, Any

import msgspec

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, NotAuthorized, raise_first
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import CommittedOffset, CommittedOffsets, TopicPartition

# Added to the child's own time-out, so that only a child that hangs or has died exceeds it.
_GRACE_SECONDS = 5.0


class SecondClient:
    """Reads back committed offsets, and describes the members of KIP-848 groups.

    The child process starts with the first question. `start` starts it earlier, while the first client is imported.
    If the child dies, or does not answer within the time-out, a second child gets the question. If the second child
    fails, too, `ClusterUnavailable` is raised.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._child: _Child | None = None
        self._one_at_a_time = threading.Lock()

    def start(self) -> None:
        """Start the child process, and do not wait for it."""
        self._child = self._child or _Child()

    def close(self) -> None:
        """End the child process."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        """Return the committed offset of each partition without its metadata; None if nothing is committed.

        confluent-kafka reads metadata wrongly (docs/kafka-behaviour.md#confluent-kafka).
        """
        return raise_first(self.committed_by_group({group: partitions}))[group]

    def committed_by_group(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return, for each group, the result of `committed`, or the error that `committed` would raise."""
        groups = {
            group: [[each.topic, each.partition] for each in sorted(partitions)] for group, partitions in wanted.items()
        }
        try:
            answers = self._ask("committed", "committed_alone", groups=groups)
        except ClusterUnavailable as error:
            return dict.fromkeys(wanted, error)
        return {group: self._committed(group, answers[group]) for group in wanted}

    def _committed(self, group: str, answer: Any) -> CommittedOffsets | MigrateGroupsError:
        if isinstance(answer, str):
            return self._failed("committed", answer, group)
        return {
            TopicPartition(topic, partition): None
            if offset is None
            else CommittedOffset(offset=offset, leader_epoch=epoch)
            for topic, partition, offset, epoch in answer
        }

    def describe_group(self, group: str, state: str) -> GroupDescription:
        """Return the description of a KIP-848 group. Assignments include partitions that a member is yet to receive.

        state: the group's state as a broker reports it, because librdkafka may not know that state.
        """
        described = self._ask("describe", "describe", group=group)
        return GroupDescription(
            group=group,
            state=state,
            group_type="consumer",
            protocol_type="consumer",
            members=tuple(
                Member(
                    member_id=member["member_id"],
                    client_id=member["client_id"],
                    host=member["host"],
                    group_instance_id=member["group_instance_id"],
                    assignment=frozenset(TopicPartition(*partition) for partition in member["assignment"]),
                )
                for member in described["members"]
            ),
        )

    def _ask(self, verb: str, next_verb: str, **arguments: Any) -> Any:
        """Return the child's answer to a question; ``verb`` names a function of `second_client_process`.

        If the child dies or hangs, a second child is asked with ``next_verb``.
        """
        arguments |= {"config": self._config.confluent(), "timeout": self._config.timeout}
        answer = None
        with self._one_at_a_time:
            for each in (verb, next_verb):
                answer = self._answer(msgspec.json.encode({"verb": each, "arguments": arguments}) + b"\n")
                if answer is not None:
                    break
                self.close()  # otherwise a late answer would be taken for the answer to the next question
        if answer is None:
            raise ClusterUnavailable(f"the second client (confluent-kafka) died or hung twice while asked for {verb}")
        if "error" in answer:
            raise self._failed(verb, answer["error"], arguments.get("group", ""))
        return answer["answer"]

    def _failed(self, verb: str, error: str, group: str) -> ClusterUnavailable:
        if "TOPIC_AUTHORIZATION_FAILED" in error:
            return NotAuthorized(
                f"not authorized: {self._config.security.principal} lacks Describe on a topic of group {group!r}; "
                "grant it that"
            )
        return ClusterUnavailable(f"the second client (confluent-kafka) failed, asked for {verb}: {error}")

    def _answer(self, question: bytes) -> dict[str, Any] | None:
        self._child = self._child or _Child()
        return self._child.answer(question, self._config.timeout + _GRACE_SECONDS)


class _Child:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "migrate_groups.kafka.second_client_process"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def answer(self, question: bytes, timeout: float) -> dict[str, Any] | None:
        """Send a question, and return the child's answer; None if it died or did not answer in ``timeout`` seconds."""
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101  for mypy: stdin is a pipe
        try:
            stdin.write(question)
            stdin.flush()
            line = self._lines.get(timeout=timeout)
        except (OSError, queue.Empty):
            return None
        answer: dict[str, Any] | None = msgspec.json.decode(line) if line.endswith(b"\n") else None
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # the child is dead, so that unsent bytes do not matter

    def _read(self, stdout: IO[bytes]) -> None:
        try:
            for line in stdout:
                self._lines.put(line)
        except ValueError:
            return  # `end` has closed the pipe during the read
        self._lines.put(b"")  # the child has ended
