"""Cache the cluster id, topics and permissions for one step, such as making a plan: each is requested only once.

Committed offsets, group descriptions and log end offsets are never cached.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.model.topics import TopicDescription


def for_one_phase(reader: GroupReader) -> GroupReader:
    """Return a reader that caches topic descriptions and permissions, for one step, such as making a plan."""
    return cast("GroupReader", _CachingReader(reader))


class _CachingReader:
    def __init__(self, reader: GroupReader) -> None:
        self._reader = reader
        self._topics: dict[str, TopicDescription] = {}
        self._has_all = False
        self._permissions: dict[Resource, frozenset[Operation] | None] = {}
        self._cluster_id: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def cluster_id(self) -> str:
        """Return the id of the cluster, which is requested once."""
        if self._cluster_id is None:
            self._cluster_id = self._reader.cluster_id()
        return self._cluster_id

    def describe_topics(self, topics: Iterable[str] | None) -> Mapping[str, TopicDescription]:
        """Return the descriptions of these topics, and request only those that are not cached.

        topics: None means all that the client's principal may describe. A topic that does not exist is left out.
        Raises `NotAuthorized` if a named topic may not be described.
        """
        if topics is None:
            if not self._has_all:
                self._topics |= self._reader.describe_topics(None)
                self._has_all = True
            return self._topics
        names = set(topics)
        # Only a topic that is requested by name gets the answer that the principal may not describe it.
        self._topics |= self._reader.describe_topics(names - self._topics.keys())
        return {name: self._topics[name] for name in sorted(names & self._topics.keys())}

    def permissions(self, resources: Collection[Resource]) -> Mapping[Resource, frozenset[Operation] | None]:
        """Return the permissions on these groups and topics, and request only those that are not cached.

        ``None`` means that the brokers do not return them.
        """
        # The cached description of a topic contains its permissions.
        told = {
            resource: self._topics[resource.name].permitted
            for resource in resources
            if resource.type is ResourceType.TOPIC and resource.name in self._topics
        }
        self._permissions |= told
        left = [resource for resource in resources if resource not in self._permissions]
        self._permissions |= self._reader.permissions(left) if left else {}
        return {resource: self._permissions[resource] for resource in resources}
