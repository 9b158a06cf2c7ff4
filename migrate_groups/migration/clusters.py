"""The clusters of a command that hands over, or that undoes a hand-over: one, or two with a mirror between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from migrate_groups.migration.ports import Clients, GroupWriter

if TYPE_CHECKING:
    from migrate_groups.migration.across.mirror import Mirror

Client = TypeVar("Client")
Client_co = TypeVar("Client_co", covariant=True)


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
