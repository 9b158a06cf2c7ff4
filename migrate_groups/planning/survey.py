"""What the cluster says about the groups, topics and partitions of a write. Checks judge these facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from migrate_groups.model.apis import ALL_OFFERED, Offers
from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset, LogRange, TopicPartition
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.model.topics import TopicDescription
from migrate_groups.planning.change import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Facts about a cluster that are read once, before the source group stops. What was not read has its default.

    - principal: the principal of the client.
    - permissions: the operations that the principal may perform on each group and topic; None if brokers don't return
      them.
    - topic_names: all topics that the principal may describe.
    - hides_topics: whether the principal may lack Describe on some topics; None if not read.
    - offsets_retention: the broker's ``offsets.retention.minutes``; None if it can't be read.
    - metadata_limit: the broker's ``offset.metadata.max.bytes``; None if it can't be read.
    - second_client_lacks: why the second client (confluent-kafka) can't log in; empty if it can.
    - offers: what the brokers offer of what not all offer.
    """

    principal: str
    permissions: Mapping[Resource, frozenset[Operation] | None]
    topic_names: frozenset[str] = frozenset()
    hides_topics: bool | None = None
    offsets_retention: timedelta | None = None
    metadata_limit: int | None = None
    second_client_lacks: str = ""
    offers: Offers = ALL_OFFERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Facts about the groups, topics and partitions of a write, as they were read from the cluster at one time.

    What was not read is empty.

    - groups: source and target groups; a group that does not exist is ``Dead``.
    - committed: the committed offsets of each group by partition; None means no committed offset.
    - topics: the topics that exist.
    - bounds: the log start and log end offsets. A partition that does not exist or has no leader is absent.
    - cut: the offsets to write below which an unclean leader election has replaced records, each with the offset of the
      first replaced record.
    - logs_unread: why log start and log end offsets could not be read for some partitions, which are absent.
    """

    cluster_id: str
    cluster_facts: ClusterFacts
    groups: Mapping[str, GroupDescription] = field(default_factory=dict)
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset | None]] = field(default_factory=dict)
    topics: Mapping[str, TopicDescription] = field(default_factory=dict)
    bounds: Mapping[TopicPartition, LogRange] = field(default_factory=dict)
    cut: Mapping[tuple[TopicPartition, CommittedOffset], int] = field(default_factory=dict)
    logs_unread: str = ""

    def now(self, order: Order) -> CommittedOffset | None:
        """Return the committed offset of a group, topic and partition; None: no offset. ``KeyError`` if not read."""
        group, topic, partition = order
        return self.committed[group][TopicPartition(topic, partition)]
