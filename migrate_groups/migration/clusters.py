"""The clusters of a command that hands over, or that undoes a hand-over: one, or two with a mirror between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from migrate_groups.migration.ports import GroupReader

if TYPE_CHECKING:
    from migrate_groups.migration.across.mirror import Mirror

Client = TypeVar("Client", bound=GroupReader | None)
Client_co = TypeVar("Client_co", bound=GroupReader | None, covariant=True)


class Clusters(NamedTuple, Generic[Client_co]):
    """A client for the source groups' cluster, and one for the target groups', which is the same client if it is one.

    None stands for a cluster where claims are neither read nor made. mirror: copies the topics to the target groups'
    cluster; None if nothing is translated.
    """

    source: Client_co
    target: Client_co
    mirror: Mirror | None = None

    @property
    def elsewhere(self) -> Client_co | None:
        """The client of the source groups if they are on another cluster than the target groups; otherwise None."""
        return None if self.source is self.target else self.source

    def of(self, cluster: str) -> Client_co:
        """Return the client of a group's cluster, as `GroupAt` names it."""
        return self.target if cluster else self.source


def one_cluster(client: Client) -> Clusters[Client]:
    """Return the client of the only cluster."""
    return Clusters(client, client)
