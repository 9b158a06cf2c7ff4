"""Read the SASL properties: the mechanism, and the login for this mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.given import Given, told
from migrate_groups.kafka.credentials.jaas import parse_jaas
from migrate_groups.kafka.credentials.security import Password

if TYPE_CHECKING:
    from migrate_groups.kafka.credentials.kerberos import Kerberos
    from migrate_groups.kafka.credentials.oauth import OAuth

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    "AWS_MSK_IAM": "software.amazon.msk.auth.iam.IAMLoginModule",
}
_MSK_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"


def login(given: Given, bootstrap_servers: str) -> Password | OAuth | Kerberos:
    """Return the login that these client properties describe.

    bootstrap_servers: an AWS MSK login reads the region from the host names. Raises `InvalidInput` if a property is
    wrong; `MissingDependency` if the login needs an extra that is not installed.
    """
    if not given.value("sasl.mechanism") and not given.value("sasl.jaas.config"):
        raise InvalidInput(f"sasl.mechanism is not set: set it to one of {', '.join(_LOGIN_MODULES)}")
    mechanism = given.take("sasl.mechanism", "GSSAPI")
    if mechanism not in _LOGIN_MODULES:
        name = given.written("sasl.mechanism")
        raise InvalidInput(f"{name} is {told(mechanism)}; supported are {', '.join(_LOGIN_MODULES)}")
    options = _jaas_options(given.take("sasl.jaas.config"), mechanism)
    is_msk = mechanism == "AWS_MSK_IAM" or given.value("sasl.login.callback.handler.class") == _MSK_HANDLER
    login: Password | OAuth | Kerberos
    if is_msk:
        from migrate_groups.kafka.credentials.msk import msk_iam
        from migrate_groups.kafka.credentials.oauth import OAuth

        login = OAuth(source=msk_iam(given, options, bootstrap_servers))
    elif mechanism == "OAUTHBEARER":
        from migrate_groups.kafka.credentials.oauth_properties import oauth

        login = oauth(given, options)
    elif mechanism == "GSSAPI":
        from migrate_groups.kafka.credentials.kerberos import kerberos

        login = kerberos(given, options)
    else:
        login = _password(mechanism, given, options)
    given.add_unused(f"{option} in sasl.jaas.config" for option in options.not_used())
    return login


def _jaas_options(text: str, mechanism: str) -> Given:
    if not text:
        return Given({})
    entry = parse_jaas(text)
    if entry.module != _LOGIN_MODULES[mechanism]:
        of = next((name for name, module in _LOGIN_MODULES.items() if module == entry.module), "another mechanism")
        raise InvalidInput(
            f"sasl.jaas.config is for {of}, but sasl.mechanism is {mechanism}: use {_LOGIN_MODULES[mechanism]}"
        )
    return Given(entry.options)


def _password(mechanism: str, given: Given, options: Given) -> Password:
    username = options.take("username") or given.take("sasl.username")
    password = options.take("password") or given.take("sasl.password")
    if not username or not password:
        raise InvalidInput(
            f'{mechanism} needs a user name and a password: add username="…" and password="…" to sasl.jaas.config, '
            "or set sasl.username and sasl.password"
        )
    return Password(mechanism=mechanism, username=username, password=password)
