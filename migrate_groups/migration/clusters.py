"""The clusters of a command: one, or two between which a mirror copies topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from migrate_groups.errors import InvalidInput
from migrate_groups.migration.ports import Clients, GroupWriter, Side
from migrate_groups.model.renames import Rename
from migrate_groups.planning.translation import Translation

Client = TypeVar("Client")
Client_co = TypeVar("Client_co", covariant=True)
MOST_RECORDS = 200_000
"""The default for the largest number of offsets of a partition that are read on each cluster."""


class Mirror(NamedTuple):
    """The cluster of the source group, and the cluster to which a mirror copies the group's topics.

    renames: as of `names_of_copies`. most_records: the highest number of records of a partition that are read on each
    cluster to translate one committed offset. is_return: the source cluster has the copies, and the group returns to
    the topics on the target cluster that a mirror has copied. kept: of a return after a fail-over, the offsets from
    which the group started on the source cluster.
    """

    source: Side
    target: Side
    renames: Sequence[Rename] = ()
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


class Clusters(NamedTuple, Generic[Client_co]):
    """A client for the source groups' cluster, and one for the target groups', which is the same client if it is one.

    None stands for a cluster where claims are neither read nor made. mirror: copies the topics to the target groups'
    cluster; None if nothing is translated.
    """

    source: Client_co
    target: Client_co
    mirror: Mirror | None = None

    @property
    def is_one(self) -> bool:
        """Whether all groups are on one cluster, as far as the user has named the clusters."""
        return self.source is self.target

    @property
    def elsewhere(self) -> Client_co | None:
        """The client of the source groups if they are on another cluster than the target groups; otherwise None."""
        return None if self.is_one else self.source

    def of(self, cluster: str) -> Client_co:
        """Return the client of a group's cluster, as `GroupAt` names it."""
        return self.target if cluster else self.source


def one_cluster(client: Client) -> Clusters[Client]:
    """Return the client of the only cluster."""
    return Clusters(client, client)


def writers(clusters: Clusters[Clients]) -> Clusters[GroupWriter]:
    """Return the clients that write, and that also read."""
    return Clusters(clusters.source.writer, clusters.target.writer)
