"""Classes through which kafka-python logs in with OAuth tokens or with Kerberos.

They are in a module of their own, because the imports from kafka-python take long and few logins need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.sasl.oauth import AbstractTokenProvider

from migrate_groups.errors import ClusterUnavailable


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Gives kafka-python an OAuth token for each connection.

    fetch: returns a valid token. extensions: the SASL extensions to send with it (KIP-342).
    """

    def __init__(self, fetch: Callable[[], str], extensions: Mapping[str, str]) -> None:
        super().__init__()
        self._fetch, self._extensions = fetch, extensions

    def token(self) -> str:
        """Return a valid token. Raises `SaslAuthenticationFailedError`, with the reason, if there is none."""
        try:
            return self._fetch()
        except ClusterUnavailable as error:
            raise SaslAuthenticationFailedError(str(error)) from error

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions."""
        return dict(self._extensions)


class _Gssapi(SaslMechanismGSSAPI):  # type: ignore[misc]
    """Logs in with the tickets of a `Kerberos` login; kafka-python's own class uses only the default ticket cache."""

    def __init__(self, **config: Any) -> None:
        login: Any = config.get("sasl_kerberos_name")
        if not hasattr(login, "context"):
            super().__init__(**config)  # a client in this process that does not belong to this package
            return
        self._is_done = self._is_authenticated = False
        try:
            self.auth_id, self._client_ctx = login.context(config["host"])
            self._next_token = self._client_ctx.step(None)
        except ClusterUnavailable as error:
            raise SaslAuthenticationFailedError(str(error)) from error
        except Exception as error:  # gssapi's errors have no common class outside of gssapi
            raise SaslAuthenticationFailedError(" ".join(str(error).split())) from error


def use_our_gssapi() -> None:
    """Make kafka-python use `_Gssapi` for the mechanism GSSAPI.

    Clients without a `Kerberos` login keep its own class.
    """
    register_sasl_mechanism("GSSAPI", _Gssapi, overwrite=True)
