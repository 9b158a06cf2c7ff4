"""Remember the cluster id, topics and permissions for one phase, such as making a plan: each is requested only once.

Committed offsets, group descriptions and log end offsets are never remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription


def for_one_phase(reader: GroupReader) -> PhaseReader:
    """Return a reader for one phase; a reader that is already for one phase is returned unchanged."""
    return reader if isinstance(reader, PhaseReader) else PhaseReader(reader)


class PhaseReader:
    """A `GroupReader` that remembers the cluster id, topics and permissions, and reads everything else each time.

    Each result is a copy, so that neither the caller nor a later request changes what was returned or is remembered.
    """

    def __init__(self, reader: GroupReader) -> None:
        self._reader = reader
        self._topics: dict[str, TopicDescription] = {}
        self._has_all = False
        self._permissions: dict[Resource, frozenset[Operation] | None] = {}
        self._cluster_id: str | None = None
        # All else is the reader's.
        self.principal = reader.principal
        self.second_client_lacks = reader.second_client_lacks
        self.list_groups = reader.list_groups
        self.describe_groups = reader.describe_groups
        self.describe_with_offsets = reader.describe_with_offsets
        self.describe_after_ends = reader.describe_after_ends
        self.round_trip = reader.round_trip
        self.at_once = reader.at_once
        self.committed = reader.committed
        self.make_ready = reader.make_ready
        self.offers = reader.offers
        self.acls = reader.acls
        self.brokers = reader.brokers
        self.offset_limits = reader.offset_limits
        self.maybe_compacted_topics = reader.maybe_compacted_topics
        self.initial_rebalance_delay = reader.initial_rebalance_delay
        self.log_ranges = reader.log_ranges
        self.last_stable_offsets = reader.last_stable_offsets
        self.epoch_ends = reader.epoch_ends
        self.offsets_at = reader.offsets_at
        self.first_records = reader.first_records

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
