"""Read the descriptions of groups of any type: their state, members, assignments and subscriptions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from migrate_groups.errors import MigrateGroupsError, Refused
from migrate_groups.kafka import group_requests as of_groups
from migrate_groups.kafka import wire
from migrate_groups.kafka.commits import Commits
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.hold import without_holder
from migrate_groups.model.groups import GroupDescription, GroupWithOffsets, Wanted, with_offsets
from migrate_groups.model.partitions import CommittedOffsets, TopicPartition
from migrate_groups.model.permissions import Operation

ByGroup = Mapping[str, GroupDescription | MigrateGroupsError]
"""The description of each group, or the error of reading it."""


class Descriptions:
    """Describes several groups at once.

    holders: the ids of this process's own members, which keep consumers out of groups. The results leave them out.
    """

    def __init__(self, connection: KafkaConnection, commits: Commits) -> None:
        self._connection = connection
        self._commits = commits
        self.holders: set[str] = set()
        # How groups were described last. It decides only which requests are sent together, never what is returned.
        self._last = commits.last

    def listed(self) -> Mapping[str, GroupDescription]:
        """Return the groups of all types that the client's principal may describe, by name, without their members."""
        return self._connection.run(wire.list_groups, doing="listing the groups")

    def by_group(self, groups: Collection[str]) -> ByGroup:
        """Return the description of each group, or the error of reading it.

        The state of a group that does not exist is ``Dead``. The error is `Refused` if a member's subscription or
        assignment is not in Kafka's consumer protocol; else `NotAuthorized` or `ClusterUnavailable`.
        """
        answers = self._connection.run_of_groups(groups, of_groups.describe(), "describing")
        dead = [group for group, answer in answers.items() if getattr(answer, "group_state", "") == "Dead"]
        # A KIP-848 group is Dead for DescribeGroups. One that is known is not looked up in the list of all groups.
        known = self.of_consumers([g for g in dead if g in self._last and self._last[g].group_type == "consumer"])
        consumers = {g: each for g, each in known.items() if not isinstance(each, GroupDescription) or each.exists}
        dead = [group for group in dead if group not in consumers]
        every = self.listed() if dead else {}
        listed = {group: every[group] for group in dead if group in every}
        consumers |= self.of_consumers([g for g, each in listed.items() if each.group_type == "consumer"])
        # Azure Event Hubs calls a group without members Dead (kafkactl#217); its committed offsets prove it exists.
        commits = self._commits.read({group: None for group in dead if group not in listed}, wait=False)
        found: dict[str, GroupDescription | MigrateGroupsError] = {}
        for group, answer in answers.items():
            if group in consumers:
                found[group] = consumers[group]
            elif group in listed:
                found[group] = listed[group]
            elif group in commits:
                found[group] = _dead_or_empty(group, commits[group])
            else:
                found[group] = self._classic(answer)
        self._last |= {group: each for group, each in found.items() if isinstance(each, GroupDescription)}
        return found

    def with_offsets(
        self, wanted: Wanted, first: of_groups.First | None = None
    ) -> Mapping[str, GroupWithOffsets | MigrateGroupsError]:
        """Return the result of `GroupReader.describe_with_offsets`, if possible in one round trip.

        first: sends requests that brokers process before.
        """
        last = {group: self._last[group] for group in wanted if group in self._last}
        consumers = [group for group, each in last.items() if each.group_type == "consumer"]
        ask = of_groups.observe(wanted, consumers, first)
        asked = partial(self._connection.run_of_groups, wanted, ask, "describing")
        # Only the answer about all of its offsets can show that a group does not exist.
        if any(not each.exists and wanted[group] is None for group, each in last.items()):
            answers, listed = self._connection.at_once(asked, self.listed)
        else:
            answers, listed = asked(), None
        found = {group: self._observed(group, answer, wanted[group], listed) for group, answer in answers.items()}
        left = {group: wanted[group] for group, each in found.items() if each is None}
        again = self._one_after_the_other(left) if left else {}
        return {group: again[group] if each is None else each for group, each in found.items()}

    def _observed(
        self,
        group: str,
        answer: of_groups.Observation | MigrateGroupsError | None,
        partitions: Collection[TopicPartition] | None,
        listed: Mapping[str, GroupDescription] | None,
    ) -> GroupWithOffsets | MigrateGroupsError | None:
        """Return a group from the answers about it; None if they do not show whether the group exists, or its type.

        partitions: for which the offsets were read; None means all. listed: all groups; None if not read.
        """
        if answer is None or isinstance(answer, MigrateGroupsError):
            return answer
        offsets = self._commits.of_answers(answer.offsets)
        description: GroupDescription | MigrateGroupsError
        if answer.described.group_state != "Dead":
            description = self._classic(answer.described)
        elif answer.as_consumer is not None and answer.as_consumer.error_code != wire.MISSING:
            description = without_holder(wire.consumer_group(answer.as_consumer), self.holders)
        elif listed is not None and group not in listed and partitions is None:
            description = _dead_or_empty(group, offsets)
        else:
            return None
        self._last |= {group: description} if isinstance(description, GroupDescription) else {}
        return with_offsets({group: partitions}, {group: description}, lambda _: {group: offsets})[group]

    def _one_after_the_other(self, wanted: Wanted) -> Mapping[str, GroupWithOffsets | MigrateGroupsError]:
        described = self.by_group(wanted)
        return with_offsets(wanted, described, partial(self._commits.read, wait=False))

    def of_consumers(self, groups: Collection[str]) -> ByGroup:
        """Return the description of each KIP-848 group, or the error of reading it."""
        # The answer to DescribeGroups has shown that Describe on the group is granted. Only a topic can be hidden.
        answers = self._connection.run_of_groups(
            groups,
            of_groups.describe_consumer_groups(),
            "describing the members of",
            lambda group: f"{Operation.DESCRIBE} on a topic of group {group!r}",
        )
        return {
            group: answer
            if isinstance(answer, MigrateGroupsError)
            else without_holder(wire.consumer_group(answer), self.holders)
            for group, answer in answers.items()
        }

    def _classic(self, answer: Any) -> GroupDescription | MigrateGroupsError:
        """Return the description of a group from its DescribedGroup in a DescribeGroups response, or the error.

        answer: the DescribedGroup; an error is returned unchanged. The result leaves out this process's own member,
        which keeps consumers out of the group. The error is `Refused` if a subscription or assignment can't be decoded.
        """
        if isinstance(answer, MigrateGroupsError):
            return answer
        try:
            return without_holder(wire.classic_group(answer), self.holders)
        except Refused as error:
            return error


def _dead_or_empty(group: str, commits: CommittedOffsets | MigrateGroupsError) -> GroupDescription | MigrateGroupsError:
    """Return the description of a group that the coordinator calls Dead and ListGroups does not list.

    The state is Empty if the group has committed offsets, else Dead. commits: the committed offsets; an error is
    returned unchanged.
    """
    if isinstance(commits, MigrateGroupsError):
        return commits
    state, group_type = ("Empty", "classic") if commits else ("Dead", "")
    return GroupDescription(group=group, state=state, group_type=group_type)
