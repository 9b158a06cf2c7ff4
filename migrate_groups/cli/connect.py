"""The options that say how to connect to the cluster, and the clients that a command opens with these options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from migrate_groups.arguments import checked_timeout
from migrate_groups.cli import environment
from migrate_groups.cli.console import talk
from migrate_groups.cli.verbose import shown_logs
from migrate_groups.errors import InvalidInput, UsageError
from migrate_groups.snapshots.times import parse_duration

if TYPE_CHECKING:
    from migrate_groups.kafka.client_config import ClientConfig
    from migrate_groups.migration.ports import Clients, GroupReader, LogClients, Side

# What to do about a property that this tool does not use. Other properties get a similar name as advice.
_INSTEAD = {
    "default.api.timeout.ms": "--timeout says it",
    "enable.ssl.certificate.verification": "certificates are always verified; set ssl.ca.location to trust one",
    "request.timeout.ms": "--timeout says it",
    "sasl.oauthbearer.assertion.private.key.pem": "set sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.config": "set sasl.oauthbearer.token.endpoint.url, and a client id and secret",
    "ssl.ca.certificate.stores": "set ssl.ca.location to a PEM file",
    "ssl.crl.location": "revoked certificates are not looked up",
    "ssl.engine.location": "set ssl.key.location to a PEM file",
}


class Connection(NamedTuple):
    """The options that say how to reach the cluster. A command that takes this type has one option for each field."""

    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            envvar="MIGRATE_GROUPS_BOOTSTRAP_SERVER",
            help="Brokers of the cluster, separated by commas.",
            show_default="bootstrap.servers of --command-config",
        ),
    ] = None
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            metavar="FILE",
            envvar="MIGRATE_GROUPS_COMMAND_CONFIG",
            help="A client.properties file, as Kafka's own tools take it: security.protocol, sasl.jaas.config, …",
        ),
    ] = None
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="A client property that replaces the one in --command-config; may be repeated. Pass secrets in "
            "MIGRATE_GROUPS_PROPERTIES instead: its value has the form of a client.properties file.",
        ),
    ] = None
    timeout: Annotated[
        str,
        typer.Option(
            "--timeout", metavar="DURATION", envvar="MIGRATE_GROUPS_TIMEOUT", help="How long one request may take."
        ),
    ] = "60s"
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Show each request to the cluster, and how long it took, on stderr; -vv: the clients' own logs too.",
        ),
    ] = 0

    def config(self) -> ClientConfig:
        """Return the settings of the Kafka clients. Warn on stderr about client properties that are not used.

        Raises `UsageError` if an option is wrong, or if the bootstrap server is missing or ambiguous. Raises
        `InvalidInput` if a property is wrong or the file of ``--command-config`` can't be read.
        """
        from migrate_groups.kafka.client_config import ClientConfig
        from migrate_groups.kafka.credentials.client_properties import understand
        from migrate_groups.kafka.credentials.properties import similar_property

        told = understand(self._given(), self.bootstrap_server)
        if told.not_used:
            advice = {key: _INSTEAD.get(key) or similar_property(key) for key in told.not_used}
            keys = (f"{key} ({more})" if more else key for key, more in advice.items())
            where = self.command_config or "the client's properties"
            talk(f"warning: {where}: not used here, with security.protocol {told.security.protocol}: {', '.join(keys)}")
        timeout = checked_timeout("--timeout", parse_duration(self.timeout, "--timeout"))
        servers = self._bootstrap_servers(told.bootstrap_servers)
        return ClientConfig(bootstrap_servers=servers, timeout=timeout, security=told.security, side=self._side())

    def _bootstrap_servers(self, in_properties: str) -> str:
        """Return the bootstrap servers from the option, its environment variable or the client properties.

        in_properties: the client property ``bootstrap.servers``; empty if not set. Raises `UsageError` if there is no
        bootstrap server, or if the variable and the property have no address in common. Raises `InvalidInput` if the
        property is not ``host:port``. If the option is given, variable and property are ignored.
        """
        from migrate_groups.kafka.client_config import ClientConfig

        to = "to-" if self._side() else ""
        option, name = f"--{to}bootstrap-server", f"{to}bootstrap-server".replace("-", "_")
        variable = f"MIGRATE_GROUPS_{name.upper()}"
        given, is_variable = self.bootstrap_server, name in environment.from_variables.get()
        if given and not (is_variable and in_properties):
            return given
        if not in_properties:
            raise UsageError(
                f"no bootstrap server: pass {option} host:port, or set {variable}, or bootstrap.servers in "
                f"--{to}command-config"
            )
        try:
            named = ClientConfig(bootstrap_servers=in_properties).addresses()
        except UsageError:  # its message quotes the value, which may be a secret
            raise InvalidInput("bootstrap.servers is not host:port[,host:port]") from None
        if not given:
            return in_properties
        if not {*named} & {*ClientConfig(bootstrap_servers=given, side=self._side()).addresses()}:
            raise UsageError(
                f"{variable} is {given}, but bootstrap.servers of the client properties is {in_properties}: pass "
                f"{option} to say which cluster"
            )
        return given

    def _given(self) -> dict[str, str]:
        """Return the client properties by name, from the file, the environment variable and ``--property``.

        The last of these sources wins. Raises `UsageError` if a ``--property`` is not KEY=VALUE or has a secret, and
        `InvalidInput` if the file can't be read.
        """
        from migrate_groups.kafka.credentials.properties import load_properties, parse_properties

        given: dict[str, str] = {}
        if self.command_config is not None:
            given |= load_properties(self.command_config)
        variable = self._variable()
        if text := environment.properties.get().get(variable):
            given |= parse_properties(text, variable)
        return given | dict(map(_property, self.properties or []))

    def _variable(self) -> str:
        """Return the name of the environment variable for client properties."""
        return environment.PROPERTIES

    def _side(self) -> Literal["", "target"]:
        """Return "target" for a cluster to which a mirror copies topics, and an empty text for any other cluster."""
        return ""

    @contextmanager
    def open_reader(self) -> Iterator[GroupReader]:
        """As `api.clients.open_reader`, with these options."""
        from migrate_groups.api import clients

        with shown_logs(self.verbose), clients.open_reader(self.config()) as reader:
            yield reader

    @contextmanager
    def open_writer(self) -> Iterator[Clients]:
        """As `api.clients.open_writer`, with these options."""
        from migrate_groups.api import clients

        with shown_logs(self.verbose), clients.open_writer(self.config()) as opened:
            yield opened

    @contextmanager
    def open_side(self, *, writes: bool = False) -> Iterator[Side]:
        """As `api.clients.open_side`, with these options. Errors of the clients name the cluster: source or target."""
        from migrate_groups.api import clients

        config = self.config()
        config = replace(config, side=config.side or "source")
        with shown_logs(self.verbose), clients.open_side(config, writes=writes) as side:
            yield side

    @contextmanager
    def open_offsets_topic(self) -> Iterator[LogClients]:
        """As `api.clients.open_offsets_topic`, with these options."""
        from migrate_groups.api import clients

        with shown_logs(self.verbose), clients.open_offsets_topic(self.config()) as opened:
            yield opened


class TargetConnection(Connection):
    """The options that say how to reach the other cluster, to which a mirror copies topics."""

    __slots__ = ()

    def _variable(self) -> str:
        return environment.TARGET_PROPERTIES

    def _side(self) -> Literal["target"]:
        return "target"


def _property(text: str) -> tuple[str, str]:
    from migrate_groups.kafka.credentials.properties import is_secret

    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key:
        raise UsageError("--property is not KEY=VALUE, such as security.protocol=SSL")
    if is_secret(key):
        raise UsageError(
            f"--property {key} would show a secret in the process list; "
            f"say it in --command-config or in {environment.PROPERTIES}"
        )
    return key, value
