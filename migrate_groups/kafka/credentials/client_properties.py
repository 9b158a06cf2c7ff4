"""Translate Kafka's client properties (the file of ``--command-config``) into settings for both Python clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.given import PROTOCOLS, Given, told
from migrate_groups.kafka.credentials.login_properties import login
from migrate_groups.kafka.credentials.security import Security
from migrate_groups.kafka.credentials.tls_properties import tls


class ClientProperties(NamedTuple):
    """The bootstrap servers and security settings in client properties.

    bootstrap_servers: empty if there are none. not_used: the keys that had no effect, to warn about; harmless ones,
    such as those for tuning, are left out.
    """

    bootstrap_servers: str
    security: Security
    not_used: tuple[str, ...]


def understand(properties: Mapping[str, str], bootstrap_servers: str | None = None) -> ClientProperties:
    """Return the connection settings of these client properties, and the keys that have no effect here.

    bootstrap_servers: the addresses to use instead of the property ``bootstrap.servers``.

    Raises `InvalidInput` if a property is wrong or not supported; its message never quotes a secret. Raises
    `MissingDependency` if a login needs an extra that is not installed.
    """
    given = Given(properties)
    protocol = given.take("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise InvalidInput(f"security.protocol is {told(protocol)}; expected one of {', '.join(PROTOCOLS)}")
    servers = given.take("bootstrap.servers")
    security = Security(
        tls=tls(given) if protocol.endswith("SSL") else None,
        login=login(given, bootstrap_servers or servers) if protocol.startswith("SASL") else None,
    )
    return ClientProperties(servers, security, given.not_used())
