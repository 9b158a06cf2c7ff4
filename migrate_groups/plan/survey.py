"""What the cluster says about everything that a write involves, read at one moment: the facts that checks judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from migrate_groups.cluster.ports import CommittedOffset, GroupDescription, LogBounds, TopicDescription, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The facts.

    groups: sources and targets, those that do not exist as ``Dead``. committed: by group, of every partition that the
    write involves. topics: those that exist. bounds: of the partitions that exist and have a leader.
    """

    cluster_id: str
    groups: Mapping[str, GroupDescription]
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset | None]]
    topics: Mapping[str, TopicDescription]
    bounds: Mapping[TopicPartition, LogBounds]
