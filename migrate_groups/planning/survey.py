"""What the cluster says about everything that a write involves, read at one moment: the facts that checks judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from migrate_groups.model.groups import GroupDescription
from migrate_groups.model.partitions import CommittedOffset, LogRange, TopicPartition
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.model.topics import TopicDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What stays as it is over a cut-over, so that it is asked for once, before any downtime.

    principal: who asks. permissions: theirs on every group and topic involved; None where the brokers don't say.
    topic_names: of all topics that they may describe. offsets_retention: how long offsets outlive a group's last
    member; None where it can't be known.
    """

    principal: str
    permissions: Mapping[Resource, frozenset[Operation] | None]
    topic_names: frozenset[str]
    offsets_retention: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The facts.

    groups: sources and targets, those that do not exist as ``Dead``. committed: by group, of every partition that the
    write involves; of a group that does not exist there is none. topics: those that exist. bounds: of the partitions
    that exist and have a leader.
    """

    cluster_id: str
    groups: Mapping[str, GroupDescription]
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset | None]]
    topics: Mapping[str, TopicDescription]
    bounds: Mapping[TopicPartition, LogRange]
    cluster_facts: ClusterFacts
