"""Open the clients that a command needs, and close them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.cli.console import talk
from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.snapshots.times import parse_duration

if TYPE_CHECKING:
    from migrate_groups.kafka.client_config import ClientConfig
    from migrate_groups.migration.ports import Clients, GroupReader, OffsetsTopicReader

_PROPERTIES = "MIGRATE_GROUPS_PROPERTIES"
_INSTEAD = {"request.timeout.ms": "--timeout", "default.api.timeout.ms": "--timeout"}


class Connection(NamedTuple):
    """How to reach the cluster, as given on the command line."""

    bootstrap_server: str | None
    command_config: Path | None
    properties: list[str] | None
    timeout: str

    def config(self) -> ClientConfig:
        """Return the settings of kafka-python and confluent-kafka; warn on stderr about properties that are not used.

        Raises `UsageError` if an option is wrong or no server is given, `InvalidInput` if a property is wrong.
        """
        from migrate_groups.kafka.client_config import ClientConfig
        from migrate_groups.kafka.credentials.client_properties import understand

        told = understand(self._given())
        if told.not_used:
            keys = (f"{key} ({_INSTEAD[key]} says it)" if key in _INSTEAD else key for key in told.not_used)
            where = self.command_config or "the client's properties"
            talk(f"warning: {where}: not used here, with security.protocol {told.security.protocol}: {', '.join(keys)}")
        timeout = parse_duration(self.timeout, "--timeout")
        servers = self.bootstrap_server or told.bootstrap_servers
        try:
            return ClientConfig(bootstrap_servers=servers, timeout=timeout, security=told.security)
        except UsageError:
            if self.bootstrap_server or not servers:
                raise
            raise InvalidInput("bootstrap.servers is not host:port[,host:port]") from None  # the value is not shown

    def _given(self) -> dict[str, str]:
        """Return all properties: the file's, overridden by the environment's, overridden by those of ``--property``."""
        from migrate_groups.files.read import read_bytes
        from migrate_groups.kafka.credentials.client_properties import parse_properties

        given: dict[str, str] = {}
        if self.command_config is not None:
            # Java reads these files as ISO 8859-1, whatever their encoding.
            given |= parse_properties(read_bytes(self.command_config).decode("latin-1"), str(self.command_config))
        if text := os.environ.get(_PROPERTIES):
            given |= parse_properties(text, _PROPERTIES)
        return given | dict(map(_property, self.properties or []))


def _property(text: str) -> tuple[str, str]:
    from migrate_groups.kafka.credentials.client_properties import is_secret

    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key:
        raise UsageError("--property is not KEY=VALUE, such as security.protocol=SSL")
    if is_secret(key):
        raise UsageError(
            f"--property {key} would show a secret in the process list; say it in --command-config or in {_PROPERTIES}"
        )
    return key, value


@contextmanager
def open_reader(connection: Connection) -> Iterator[GroupReader]:
    """Yield a reader of the cluster, which has no method that writes."""
    from migrate_groups.api import clients

    with clients.open_reader(connection.config()) as reader:
        yield reader


@contextmanager
def open_writer(connection: Connection) -> Iterator[Clients]:
    """Yield a writer, and the second client that reads back what it wrote."""
    from migrate_groups.api import clients

    with clients.open_writer(connection.config()) as opened:
        yield opened


@contextmanager
def open_offsets_topic(connection: Connection) -> Iterator[tuple[GroupReader, OffsetsTopicReader]]:
    """Yield a reader of the cluster, and a reader of the log of ``__consumer_offsets``."""
    from migrate_groups.api import clients

    with clients.open_offsets_topic(connection.config()) as opened:
        yield opened
