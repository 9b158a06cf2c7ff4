"""Write and delete committed offsets, and delete groups, with kafka-python."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import kafka.errors as kafka_errors

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka import group_requests as of_groups
from migrate_groups.kafka import share_group_requests, wire
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import Ask, OfGroups
from migrate_groups.kafka.hold import Hold, Holds, hold
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.partitions import CommittedOffset, TopicPartition

K = TypeVar("K")

# The group has had other generations, or its member has no assignment yet.
_TOO_EARLY = {"ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"}
_PROBE = CommittedOffset(offset=0, metadata="migrate-groups")


class KafkaPythonWriter(KafkaPythonReader):
    """Writes and deletes committed offsets, and deletes groups, with kafka-python (implements `GroupWriter`)."""

    def __init__(self, config: ClientConfig) -> None:
        super().__init__(config)
        self._holds: dict[str, Hold] = {}
        self._all_holds = Holds(config, self._connection)

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self._all_holds.close()

    def alter_offsets(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Send one OffsetCommit for each group, as its member if this client holds the group.

        If the coordinator has not answered the join of a held group, and refuses the commit, it is sent again after the
        answer, which may take ``group.initial.rebalance.delay.ms``.
        """
        holds = {group: self._holds[group] for group in offsets if group in self._holds}
        joining = [group for group, held in holds.items() if not held.has_joined]
        found = dict(self._commit(offsets, holds))
        for group in joining:
            if {each.error for each in found[group].values()} & _TOO_EARLY:
                holds[group].await_join()
                found |= self._commit({group: offsets[group]}, holds)
        return found

    def _commit(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]], holds: Mapping[str, Hold]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        memberships = {group: holds[group].membership() for group in offsets if group in holds}
        return self._write(offsets, of_groups.commit_offsets(offsets, memberships))

    def alter_share_offsets(
        self, offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Send one AlterShareGroupOffsets for each group."""
        for group in offsets:
            self._commits.last.pop(group, None)  # it may not have existed, and then would not be read as a share group
        return self._write(offsets, share_group_requests.alter_share_offsets(offsets))

    def delete_share_offsets(
        self, partitions: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Send one DeleteShareGroupOffsets for each group."""
        return self._write(partitions, share_group_requests.delete_share_offsets(partitions))

    def commit_probes(self, probes: Collection[str], partition: TopicPartition) -> Mapping[str, WriteAnswer]:
        """Send one OffsetCommit with offset 0 for each probe group."""
        offsets = {probe: {partition: _PROBE} for probe in probes}
        answers = self._write(offsets, of_groups.commit_offsets(offsets, {}))
        return {probe: answers[probe][partition] for probe in probes}

    def delete_offsets(
        self, partitions: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
        """Send one OffsetDelete for each group."""
        return self._write(partitions, of_groups.delete_offsets(partitions))

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, WriteAnswer]:
        """Send one DeleteGroups to each coordinator."""
        answers = self._write({group: [group] for group in groups}, of_groups.delete_groups())
        return {group: answers[group][group] for group in groups}

    @contextmanager
    def held(
        self, group: str, partitions: Collection[TopicPartition], assignor: str = "", holder: str = ""
    ) -> Iterator[Hold]:
        """Join the group, and send its heartbeats. Raises `NotAuthorized` without Read on the group."""
        with hold(self._all_holds, group, partitions, assignor=assignor, holder=holder) as holding:
            self._holds[group] = holding
            self._descriptions.holders.add(holding.member_id)
            try:
                yield holding
            finally:
                del self._holds[group]
                self._descriptions.holders.discard(holding.member_id)

    def _write(
        self, asked: Mapping[str, Collection[K]], ask: Ask[Mapping[K, wire.KafkaErrorClass]]
    ) -> Mapping[str, Mapping[K, WriteAnswer]]:
        """Send writes for several groups, and return, by group, the answer for each item.

        asked: the items by group: partitions, or the group's name if the group itself is deleted. ask: sends the
        writes. If a group's coordinator is not available, the group's write is repeated until the time-out. Raises
        ``ValueError`` for an empty group name.
        """
        if "" in asked:
            raise ValueError("a group name is empty: pass a name, because kafka-python would write to the group ''")
        into: OfGroups[Mapping[K, wire.KafkaErrorClass]] = OfGroups()
        left = list(asked)

        def send_left() -> list[str]:
            for group in left:
                into.found.pop(group, None)
                into.failed.pop(group, None)
            try:
                self._connection.run_once(lambda client: ask(client, left, into))
            except (kafka_errors.KafkaError, OSError, ClusterUnavailable) as error:
                into.fail(left, error)
            # This is safe even if a write was applied, because the same write once more changes nothing.
            was_closed = self._connection.was_closed
            left[:] = [
                group for group in left if _has_no_coordinator(into, group) or (was_closed and group in into.failed)
            ]
            if into.failed or left:
                self._connection.close_used()
            return left

        self._connection.repeat_while(send_left)
        return {
            group: dict.fromkeys(of_group, wire.answer_of_all(into.failed[group]))
            if group in into.failed
            else _answers(of_group, into.found[group])
            for group, of_group in asked.items()
        }


def _answers(asked: Collection[K], found: Mapping[K, wire.KafkaErrorClass]) -> Mapping[K, WriteAnswer]:
    """Return the answer for each item of a write, from the error classes in the response."""
    of_error = {error: wire.write_answer(error) for error in set(found.values())}
    silence = WriteAnswer(answer=Answer.UNKNOWN, error="the response of the broker does not contain it")
    return {each: of_error[found[each]] if each in found else silence for each in asked}


def _has_no_coordinator(into: OfGroups[Mapping[K, wire.KafkaErrorClass]], group: str) -> bool:
    """Return whether all of a group's writes failed because its coordinator was not available."""
    if group in into.failed:
        return isinstance(into.failed[group], wire.NOT_AVAILABLE)
    answers = into.found[group].values()
    return bool(answers) and all(issubclass(error, wire.NOT_AVAILABLE) for error in set(answers))
