"""Translate Kafka's client properties (the file of ``--command-config``) into settings for the Python clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.given import PROTOCOLS, Given, told
from migrate_groups.kafka.credentials.security import Security


class ClientProperties(NamedTuple):
    """The bootstrap servers and security settings in client properties.

    bootstrap_servers: empty if there are none. not_used: the keys that have no effect, to warn the user. Harmless keys,
    such as ``batch.size``, are not in ``not_used``.
    """

    bootstrap_servers: str
    security: Security
    not_used: tuple[str, ...]


def understand(properties: Mapping[str, str], bootstrap_servers: str | None = None) -> ClientProperties:
    """Return the connection settings in these client properties, and the keys that have no effect.

    bootstrap_servers: addresses from which AWS MSK's region is read; default: the property ``bootstrap.servers``.
    Raises `InvalidInput` if a property is wrong or not supported; `MissingDependency` if a login needs an extra that is
    not installed.
    """
    given = Given(properties)
    protocol = given.take("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise InvalidInput(f"security.protocol is {told(protocol)}; expected one of {', '.join(PROTOCOLS)}")
    servers = given.take("bootstrap.servers")
    security = _security(protocol, given, bootstrap_servers or servers)
    return ClientProperties(servers, security, given.not_used())


def _security(protocol: str, given: Given, bootstrap_servers: str) -> Security:
    """Return the TLS and SASL settings in the client properties ``given``.

    protocol: the value of ``security.protocol``. bootstrap_servers: an AWS MSK login reads the region from the host
    names.
    """
    # The modules are imported only if they are required, because their imports take time.
    tls, login = None, None
    if protocol.endswith("SSL"):
        from migrate_groups.kafka.credentials import tls_properties

        tls = tls_properties.tls(given)
    if protocol.startswith("SASL"):
        from migrate_groups.kafka.credentials import login_properties

        login = login_properties.login(given, bootstrap_servers)
    return Security(tls=tls, login=login)
