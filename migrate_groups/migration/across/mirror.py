"""The two clusters between which a mirror copies topics."""

from __future__ import annotations

from typing import NamedTuple

from migrate_groups.errors import InvalidInput
from migrate_groups.migration.ports import GroupWriter, Side
from migrate_groups.mirrors.names import TopicNames
from migrate_groups.planning.translation import Translation

MOST_RECORDS = 200_000
"""The default for the largest number of offsets of a partition that are read on each cluster."""


class Mirror(NamedTuple):
    """The cluster of the source group, and the cluster to which a mirror copies the group's topics.

    names: finds the names of the copies. most_records: the highest number of records of a partition that are read on
    each cluster to translate one committed offset. is_return: the source cluster has the copies, and the group returns
    to the topics on the target cluster that a mirror has copied. kept: of a return after a fail-over, the offsets from
    which the group started on the source cluster.
    """

    source: Side
    target: Side
    names: TopicNames
    most_records: int = MOST_RECORDS
    is_return: bool = False
    kept: Translation | None = None

    @property
    def source_writer(self) -> GroupWriter:
        """The writer on the source cluster, for probe groups. Raises ``ValueError`` if it was not opened to write."""
        if self.source.writer is None:
            raise ValueError("the source cluster is opened for a dry run: open it to write")
        return self.source.writer

    def check(self) -> None:
        """Raise `InvalidInput` if source and target are the same cluster."""
        if self.source.groups.cluster_id() == self.target.groups.cluster_id():
            raise InvalidInput("both clusters are the same: check --to-bootstrap-server and --to-command-config")
