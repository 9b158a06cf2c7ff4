"""The options for another cluster, to which a mirror copies topics, and the clients for both clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from migrate_groups.cli import environment
from migrate_groups.cli.connect import Connection, TargetConnection
from migrate_groups.errors import UsageError

if TYPE_CHECKING:
    from migrate_groups.migration.clusters import Clusters, Mirror
    from migrate_groups.migration.ports import Clients, GroupReader

MOST_RECORDS = 200_000
MaxRecords = Annotated[
    int,
    typer.Option(
        "--max-records", metavar="N", min=1, help="How many offsets of a partition to read at most on each cluster."
    ),
]


class TargetCluster(NamedTuple):
    """The options that name the target cluster. A command that takes this type has one option for each field."""

    to_bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--to-bootstrap-server",
            metavar="HOST:PORT",
            envvar="MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER",
            help="Brokers of the target cluster, separated by commas.",
            show_default="bootstrap.servers of --to-command-config",
        ),
    ] = None
    to_command_config: Annotated[
        Path | None,
        typer.Option(
            "--to-command-config",
            metavar="FILE",
            envvar="MIGRATE_GROUPS_TO_COMMAND_CONFIG",
            help="A client.properties file for the target cluster.",
        ),
    ] = None

    @property
    def is_named(self) -> bool:
        """Whether ``--to-bootstrap-server`` or ``--to-command-config`` is set, also by its environment variable."""
        return self.to_bootstrap_server is not None or self.to_command_config is not None

    def check(self, *, alone: str | None = None) -> None:
        """Raise `UsageError` if no target cluster is named, but an option or environment variable needs one.

        alone: the name of a given option that needs a target cluster, such as ``--rename-topic``.
        """
        if not self.is_named and alone is not None:
            raise UsageError(f"{alone} is for another cluster: pass --to-bootstrap-server or --to-command-config")
        if not self.is_named and environment.properties.get().get(environment.TARGET_PROPERTIES):
            raise UsageError(
                f"{environment.TARGET_PROPERTIES} is set, but no other cluster is named: pass --to-bootstrap-server or "
                "--to-command-config, or unset it"
            )

    def connection(self, source: Connection) -> TargetConnection:
        """Return the connection options for the target cluster. The time-out is that of ``source``."""
        # --verbose is not passed on, because the first connection shows the requests of both.
        return TargetConnection(self.to_bootstrap_server, self.to_command_config, timeout=source.timeout)

    @contextmanager
    def open_readers(self, source: Connection) -> Iterator[Clusters[GroupReader]]:
        """Yield the readers of both clusters; the same one twice if no target cluster is named."""
        from migrate_groups.migration.clusters import Clusters

        there = self.connection(source).open_reader() if self.is_named else nullcontext()
        with source.open_reader() as reader, there as of_target:
            yield Clusters(reader, of_target or reader)

    @contextmanager
    def open_writers(self, source: Connection) -> Iterator[Clusters[Clients]]:
        """Yield the clients of both clusters as `open_readers`, to write."""
        from migrate_groups.migration.clusters import Clusters

        there = self.connection(source).open_writer() if self.is_named else nullcontext()
        with source.open_writer() as clients, there as of_target:
            yield Clusters(clients, of_target or clients)


class Copies(NamedTuple):
    """The options for translating a group's offsets to a mirror's copies of its topics.

    A command that takes this type has one option for each field.
    """

    rename_topic: Annotated[
        list[str] | None,
        typer.Option(
            "--rename-topic",
            metavar="OLD=NEW",
            help="The name of a topic on the target, such as orders=eu.orders or '*=eu.*'; may be repeated. Without "
            "it: the same name, or the name after a prefix and a dot.",
        ),
    ] = None
    accept_reread: Annotated[
        int,
        typer.Option(
            "--accept-reread",
            metavar="N",
            min=0,
            help="Accept an offset on the target cluster that is too low by at most N records, which the group reads "
            "again.",
        ),
    ] = 0
    trust_copy: Annotated[
        list[str] | None,
        typer.Option(
            "--trust-copy",
            metavar="TOPIC",
            help="Trust that the target has a copy of this topic: start at its end where the source has no record left "
            "to compare; may be repeated.",
        ),
    ] = None
    max_records: MaxRecords = MOST_RECORDS

    def check(self, target: TargetCluster) -> None:
        """Raise `UsageError` if no target cluster is named, but an option or environment variable needs one."""
        given = {
            "--rename-topic": bool(self.rename_topic),
            "--accept-reread": bool(self.accept_reread),
            "--trust-copy": bool(self.trust_copy),
            "--max-records": self.max_records != MOST_RECORDS,
        }
        target.check(alone=next((option for option, is_given in given.items() if is_given), None))

    @contextmanager
    def open_mirror(self, source: Connection, target: TargetCluster, *, writes: bool = False) -> Iterator[Mirror]:
        """Yield the clients of both clusters, for translating a group's offsets to a mirror's copies of its topics.

        The clients are closed after the block. writes: commits to probe groups on the source cluster must be possible;
        otherwise all clients only read. Raises `UsageError` or `InvalidInput` if a ``--rename-topic`` or a
        connection property is wrong, and `ClusterUnavailable` if a cluster does not answer.
        """
        from migrate_groups.migration.clusters import Mirror
        from migrate_groups.model.renames import Rename

        renames = [Rename.parse(each, "--rename-topic") for each in self.rename_topic or []]
        with source.open_side(writes=writes) as here, target.connection(source).open_side() as there:
            yield Mirror(here, there, renames, self.max_records)
