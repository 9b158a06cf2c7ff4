"""Read the committed offsets of groups with OffsetFetch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from migrate_groups.errors import MigrateGroupsError, PendingCommits, Refused
from migrate_groups.kafka import group_requests as of_groups
from migrate_groups.kafka import wire
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.visible import check_visible, describe_permissions
from migrate_groups.model.partitions import CommittedOffsets, TopicPartition
from migrate_groups.text import some

_READING = "reading the committed offsets of"


class Commits:
    """Reads the committed offsets of several groups at once. principal: the client's principal, for error messages."""

    def __init__(self, connection: KafkaConnection, principal: str) -> None:
        self._connection = connection
        self._principal = principal

    def everywhere(self, groups: Collection[str]) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return all committed offsets of each group, or the error of reading them.

        An offset is None if a pending transactional commit may replace it. A partition whose first commit is pending is
        left out. Topics that the client's principal may not describe are left out without an error.
        """
        answers = self._fetched(dict.fromkeys(groups))
        return {group: _all_committed(answer) for group, answer in answers.items()}

    def stable(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the committed offsets of each group for its partitions in ``wanted``, or the error of reading them.

        An offset is None if nothing is committed. Waits for pending transactional commits; if a commit is still pending
        at the time-out, the group's error is `PendingCommits`.
        """
        found: dict[str, CommittedOffsets | MigrateGroupsError] = {group: {} for group in wanted}

        def read_what_is_still_pending() -> bool:
            left = {
                group: pending
                for group, partitions in wanted.items()
                if (pending := _without_answer(partitions, found[group]))
            }
            for group, answer in self.now(left).items():
                known = found[group]
                if isinstance(known, MigrateGroupsError) or isinstance(answer, MigrateGroupsError):
                    found[group] = answer
                else:
                    found[group] = {**known, **answer}
            return any(_without_answer(partitions, found[group]) for group, partitions in left.items())

        self._connection.repeat_while(read_what_is_still_pending)
        for group, partitions in wanted.items():
            if pending := _without_answer(partitions, found[group]):
                found[group] = PendingCommits(
                    f"group {group!r} has pending transactional commits on {some(pending)}; "
                    "wait until the transactions end, or abort them"
                )
        return found

    def now(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the committed offsets of each group for its partitions in ``wanted``, or the error of reading them.

        An offset is None if nothing is committed. Does not wait for pending transactional commits: their partitions are
        left out.
        """
        return {
            group: answer if isinstance(answer, MigrateGroupsError) else self._without_pending(answer)
            for group, answer in self._fetched(wanted).items()
        }

    def _fetched(
        self, wanted: Mapping[str, Collection[TopicPartition] | None]
    ) -> Mapping[str, Mapping[TopicPartition, Any] | MigrateGroupsError]:
        return self._connection.run_of_groups(describe_permissions(wanted), of_groups.fetch_offsets(wanted), _READING)

    def _without_pending(self, answers: Mapping[TopicPartition, Any]) -> CommittedOffsets | MigrateGroupsError:
        stable = {partition: each for partition, each in answers.items() if each.error_code != wire.UNSTABLE}
        try:
            failed = ((partition, each) for partition, each in stable.items() if each.error_code)
            check_visible(self._principal, {partition.topic for partition, each in failed if wire.hides_topic(each)})
            return {partition: wire.committed_offset(partition, each) for partition, each in stable.items()}
        except MigrateGroupsError as error:
            return error


def _without_answer(
    partitions: Collection[TopicPartition], found: CommittedOffsets | MigrateGroupsError
) -> list[TopicPartition]:
    if isinstance(found, MigrateGroupsError):
        return []
    return [partition for partition in partitions if partition not in found]


def _all_committed(
    answers: Mapping[TopicPartition, Any] | MigrateGroupsError,
) -> CommittedOffsets | MigrateGroupsError:
    """Return the committed offsets in a group's OffsetFetch response, or the error of reading them.

    answers: the response's parts by partition; an error is returned unchanged. A partition with a pending transactional
    commit (error code UNSTABLE_OFFSET_COMMIT) gets None. Any other error code gives `Refused`.
    """
    if isinstance(answers, MigrateGroupsError):
        return answers
    try:
        return {
            partition: None if answer.error_code == wire.UNSTABLE else wire.committed_offset(partition, answer)
            for partition, answer in answers.items()
        }
    except Refused as error:
        return error
