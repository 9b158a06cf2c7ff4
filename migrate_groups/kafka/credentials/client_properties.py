"""Translate Kafka's client properties (the file of ``--command-config``) into settings for the Python clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.properties import PROTOCOLS, Properties, quoted
from migrate_groups.kafka.credentials.security import Login, Password, Security

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    "AWS_MSK_IAM": "software.amazon.msk.auth.iam.IAMLoginModule",
}
_MSK_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"


class ClientProperties(NamedTuple):
    """The bootstrap servers and security settings in client properties.

    bootstrap_servers: empty if there are none. not_used: the keys that have no effect, to warn the user. Harmless keys,
    such as ``batch.size``, are not in ``not_used``.
    """

    bootstrap_servers: str
    security: Security
    not_used: tuple[str, ...]


# The modules of TLS and of each login are imported only if they are required, because their imports take time.
def understand(properties: Mapping[str, str], bootstrap_servers: str | None = None) -> ClientProperties:
    """Return the connection settings in these client properties, and the keys that have no effect.

    bootstrap_servers: addresses from which AWS MSK's region is read; default: the property ``bootstrap.servers``.
    Raises `InvalidInput` if a property is wrong or not supported; `MissingDependency` if a login needs an extra that is
    not installed.
    """
    lookup = Properties(properties)
    protocol = lookup.take("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise InvalidInput(f"security.protocol is {quoted(protocol)}; expected one of {', '.join(PROTOCOLS)}")
    servers = lookup.take("bootstrap.servers")
    tls, login = None, None
    if protocol.endswith("SSL"):
        from migrate_groups.kafka.credentials.tls import tls_in

        tls = tls_in(lookup)
    if protocol.startswith("SASL"):
        login = _login(lookup, bootstrap_servers or servers)
    return ClientProperties(servers, Security(tls=tls, login=login), lookup.not_used())


def _login(properties: Properties, bootstrap_servers: str) -> Login:
    """Return the login that these client properties describe.

    bootstrap_servers: an AWS MSK login reads the region from the host names.
    """
    if not properties.value("sasl.mechanism") and not properties.value("sasl.jaas.config"):
        raise InvalidInput(f"sasl.mechanism is not set: set it to one of {', '.join(_LOGIN_MODULES)}")
    mechanism = properties.take("sasl.mechanism", "GSSAPI")
    if mechanism not in _LOGIN_MODULES:
        name = properties.written("sasl.mechanism")
        raise InvalidInput(f"{name} is {quoted(mechanism)}; supported are {', '.join(_LOGIN_MODULES)}")
    is_set = bool(properties.value("sasl.mechanism"))
    options = _jaas_options(properties.take("sasl.jaas.config"), mechanism, is_set=is_set)
    is_msk = mechanism == "AWS_MSK_IAM" or properties.value("sasl.login.callback.handler.class") == _MSK_HANDLER
    login: Login
    if is_msk:
        from migrate_groups.kafka.credentials.msk import msk_iam

        login = msk_iam(properties, options, bootstrap_servers)
    elif mechanism == "OAUTHBEARER":
        from migrate_groups.kafka.credentials.oauth_properties import oauth

        login = oauth(properties, options)
    elif mechanism == "GSSAPI":
        from migrate_groups.kafka.credentials.kerberos import kerberos

        login = kerberos(properties, options)
    else:
        login = _password(mechanism, properties, options)
    properties.add_unused(f"{option} in sasl.jaas.config" for option in options.not_used())
    return login


def _jaas_options(text: str, mechanism: str, *, is_set: bool) -> Properties:
    """Return the options in ``sasl.jaas.config``. Raises `InvalidInput` if its login module is of another mechanism.

    is_set: whether the mechanism is a property, and not Kafka's default.
    """
    if not text:
        return Properties({})
    from migrate_groups.kafka.credentials.jaas import parse_jaas

    entry = parse_jaas(text)
    if entry.module != _LOGIN_MODULES[mechanism]:
        of = next((name for name, module in _LOGIN_MODULES.items() if module == entry.module), "another mechanism")
        if not is_set:
            raise InvalidInput(f"sasl.mechanism is not set, and sasl.jaas.config is for {of}: set sasl.mechanism")
        raise InvalidInput(
            f"sasl.jaas.config is for {of}, but sasl.mechanism is {mechanism}: use {_LOGIN_MODULES[mechanism]}"
        )
    return Properties(entry.options)


def _password(mechanism: str, properties: Properties, options: Properties) -> Password:
    username = options.take("username") or properties.take("sasl.username")
    password = options.take("password") or properties.take("sasl.password")
    if not username or not password:
        raise InvalidInput(
            f'{mechanism} needs a user name and a password: add username="…" and password="…" to sasl.jaas.config, '
            "or set sasl.username and sasl.password"
        )
    return Password(mechanism=mechanism, username=username, password=password)
