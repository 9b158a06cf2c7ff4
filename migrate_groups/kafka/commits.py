"""Read the committed offsets of groups with OffsetFetch, and the start offsets of share groups."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from migrate_groups.errors import MigrateGroupsError, PendingCommits, ShareGroupStarted
from migrate_groups.kafka import group_requests as of_groups
from migrate_groups.kafka import wire
from migrate_groups.kafka.connection import KafkaConnection, check_visible
from migrate_groups.kafka.share_group_requests import describe_share_offsets
from migrate_groups.model.groups import GroupDescription, Wanted
from migrate_groups.model.partitions import CommittedOffset, CommittedOffsets, TopicPartition
from migrate_groups.text import some

_READING = "reading the committed offsets of"


class _Pending(Enum):
    """In place of a committed offset: a pending transactional commit may replace it."""

    PENDING = "pending"


_PENDING: Final = _Pending.PENDING
_Answers = Mapping[TopicPartition, CommittedOffset | _Pending | None]


class Commits:
    """Reads the committed offsets of several groups at once. principal: the client's principal, for error messages."""

    def __init__(self, connection: KafkaConnection, principal: str) -> None:
        self._connection = connection
        self._principal = principal
        self.last: dict[str, GroupDescription] = {}
        """How groups were described last."""

    def read(self, wanted: Wanted, *, wait: bool) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Return the result of `GroupReader.committed`. Groups for which no partition is wanted are not asked about."""
        return self._stable(wanted) if wait else self._now(wanted)

    def _now(self, wanted: Wanted) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        return {group: _known_or_pending(answers) for group, answers in self._fetched(wanted).items()}

    def of_answers(self, answers: Mapping[TopicPartition, Any]) -> CommittedOffsets | MigrateGroupsError:
        """Return the result of `read` without ``wait`` for the answers about one group."""
        return _known_or_pending(self._checked(answers))

    def _stable(self, wanted: Wanted) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        found: dict[str, CommittedOffsets] = {group: {} for group in wanted}
        failed: dict[str, MigrateGroupsError] = {}
        left = dict(wanted)

        def read_what_is_left() -> bool:
            for group, answers in self._fetched(left).items():
                partitions = left.pop(group)
                if isinstance(answers, MigrateGroupsError):
                    failed[group] = answers
                    continue
                stable = {partition: each for partition, each in answers.items() if each is not _PENDING}
                found[group] = {**found[group], **stable}
                # A partition without any answer counts as pending, too.
                asked = answers if partitions is None else partitions
                if pending := [partition for partition in asked if partition not in found[group]]:
                    left[group] = pending
            return bool(left)

        self._connection.repeat_while(read_what_is_left)
        for group, pending in left.items():
            failed[group] = PendingCommits(
                f"group {group!r} has pending transactional commits on {some(pending or ())}; "
                "wait until the transactions end, or abort them"
            )
        return {group: failed.get(group, found[group]) for group in wanted}

    def _fetched(self, wanted: Wanted) -> Mapping[str, _Answers | MigrateGroupsError]:
        asked = {group: partitions for group, partitions in wanted.items() if partitions is None or partitions}
        answers = self._connection.run_of_groups(asked, of_groups.fetch_offsets(asked), _READING)
        found = {group: self._checked(answers[group]) if group in asked else {} for group in wanted}
        return {**found, **self._of_share_groups(asked, found)}

    def _of_share_groups(
        self, asked: Wanted, found: Mapping[str, _Answers | MigrateGroupsError]
    ) -> Mapping[str, _Answers | MigrateGroupsError]:
        """Return the start offsets of the share groups among ``asked``, for partitions that are asked for by name.

        found: the committed offsets. Only a group that has none of them can be a share group.
        """
        maybe = {
            group: partitions
            for group, partitions in asked.items()
            if partitions
            and (group not in self.last or self.last[group].group_type == "share")
            and not isinstance(of_it := found[group], MigrateGroupsError)
            and not any(of_it.values())
        }
        read = self._connection.run_of_groups(maybe, describe_share_offsets(maybe), _READING)
        return {
            group: ShareGroupStarted(group) if answers is None else self._checked(answers)
            for group, answers in read.items()
        }

    def _checked(self, answers: Mapping[TopicPartition, Any] | MigrateGroupsError) -> _Answers | MigrateGroupsError:
        """Return the answers of an OffsetFetch response for one group, or the error of the first that failed.

        An error is returned unchanged.
        """
        if isinstance(answers, MigrateGroupsError):
            return answers
        failed = ((partition, each) for partition, each in answers.items() if each.error_code)
        try:
            check_visible(self._principal, {partition.topic for partition, each in failed if wire.hides_topic(each)})
            return {
                partition: _PENDING if each.error_code == wire.UNSTABLE else wire.committed_offset(partition, each)
                for partition, each in answers.items()
            }
        except MigrateGroupsError as error:
            return error


def _known_or_pending(answers: _Answers | MigrateGroupsError) -> CommittedOffsets | MigrateGroupsError:
    """Return the committed offsets, with None for a pending one. Partitions without a commit are left out.

    An error is returned unchanged.
    """
    if isinstance(answers, MigrateGroupsError):
        return answers
    return {partition: None if each is _PENDING else each for partition, each in answers.items() if each is not None}
