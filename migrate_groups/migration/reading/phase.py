"""Remember the cluster id, topics and permissions for one phase, such as making a plan: each is requested only once.

Committed offsets, group descriptions and log end offsets are never remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.apis import Offers
from migrate_groups.model.groups import GroupDescription, GroupListing, GroupWithOffsets, Wanted
from migrate_groups.model.partitions import (
    CommittedOffsets,
    LeaderEpoch,
    LogRange,
    OffsetLimits,
    Timestamps,
    TopicPartition,
)
from migrate_groups.model.permissions import Acls, Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription


def for_one_phase(reader: GroupReader) -> PhaseReader:
    """Return a reader for one phase; a reader that is already for one phase is returned unchanged."""
    return reader if isinstance(reader, PhaseReader) else PhaseReader(reader)


class PhaseReader:
    """A `GroupReader` that remembers the cluster id, topics and permissions, and reads everything else each time.

    Each result is a copy, so that neither the caller nor a later request changes what was returned or is remembered.
    """

    def __init__(self, reader: GroupReader) -> None:
        self.principal = reader.principal
        self.second_client_lacks = reader.second_client_lacks
        self._reader = reader
        self._topics: dict[str, TopicDescription] = {}
        self._has_all = False
        self._permissions: dict[Resource, frozenset[Operation] | None] = {}
        self._cluster_id: str | None = None

    def cluster_id(self) -> str:
        """Request the id once."""
        if self._cluster_id is None:
            self._cluster_id = self._reader.cluster_id()
        return self._cluster_id

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Request only topics that are not remembered; all topics once."""
        if topics is None:
            if not self._has_all:
                self._topics |= self._reader.describe_topics(None)
                self._has_all = True
            return dict(self._topics)
        names = set(topics)
        # Only a topic that is requested by name gets the answer that the principal may not describe it.
        self._topics |= self._reader.describe_topics(names - self._topics.keys())
        return {name: self._topics[name] for name in sorted(names & self._topics.keys())}

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Request only permissions that are not remembered."""
        # The description of a topic contains its permissions.
        told = {
            resource: self._topics[resource.name].permitted
            for resource in resources
            if resource.type is ResourceType.TOPIC and resource.name in self._topics
        }
        self._permissions |= told
        left = [resource for resource in resources if resource not in self._permissions]
        self._permissions |= self._reader.permissions(left) if left else {}
        return {resource: self._permissions[resource] for resource in resources}

    def list_groups(self) -> Sequence[GroupListing]:
        """Request each time."""
        return self._reader.list_groups()

    def describe_groups(self, groups: Collection[str]) -> Mapping[str, GroupDescription | MigrateGroupsError]:
        """Request each time."""
        return self._reader.describe_groups(groups)

    def describe_with_offsets(self, wanted: Wanted) -> Mapping[str, GroupWithOffsets | MigrateGroupsError]:
        """Request each time."""
        return self._reader.describe_with_offsets(wanted)

    def describe_after_ends(
        self, partitions: Collection[TopicPartition], group: str
    ) -> tuple[Mapping[TopicPartition, int], GroupWithOffsets | MigrateGroupsError]:
        """Request each time."""
        return self._reader.describe_after_ends(partitions, group)

    def round_trip(self) -> float:
        """Ask the connection each time."""
        return self._reader.round_trip()

    def at_once(self, *calls: Callable[[], object]) -> list[Any]:
        """Call them with the reader that requests."""
        return self._reader.at_once(*calls)

    def committed(
        self, wanted: Mapping[str, Collection[TopicPartition] | None], *, wait: bool = True
    ) -> Mapping[str, CommittedOffsets | MigrateGroupsError]:
        """Request each time."""
        return self._reader.committed(wanted, wait=wait)

    def make_ready(self, wanted: Mapping[str, Collection[TopicPartition]]) -> None:
        """Connect each time."""
        self._reader.make_ready(wanted)

    def offers(self) -> Offers:
        """Ask the connection each time."""
        return self._reader.offers()

    def acls(self, principals: Collection[str]) -> Acls:
        """Request each time."""
        return self._reader.acls(principals)

    def brokers(self) -> Sequence[int]:
        """Request each time."""
        return self._reader.brokers()

    def offset_limits(self) -> OffsetLimits:
        """Request each time."""
        return self._reader.offset_limits()

    def maybe_compacted_topics(self, topics: Collection[str]) -> frozenset[str]:
        """Request each time."""
        return self._reader.maybe_compacted_topics(topics)

    def initial_rebalance_delay(self) -> timedelta | None:
        """Request each time."""
        return self._reader.initial_rebalance_delay()

    def log_ranges(
        self,
        partitions: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None = None,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, LogRange]:
        """Request each time."""
        return self._reader.log_ranges(partitions, ends, starts)

    def last_stable_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Request each time."""
        return self._reader.last_stable_offsets(partitions)

    def epoch_ends(self, epochs: Collection[LeaderEpoch]) -> Mapping[LeaderEpoch, int]:
        """Request each time."""
        return self._reader.epoch_ends(epochs)

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> Timestamps:
        """Request each time."""
        return self._reader.offsets_at(timestamps)

    def first_records(self, spans: Mapping[TopicPartition, range]) -> Timestamps:
        """Request each time."""
        return self._reader.first_records(spans)
