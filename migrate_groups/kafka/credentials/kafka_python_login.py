"""Classes through which kafka-python logs in with OAuth tokens or with Kerberos."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.sasl.oauth import AbstractTokenProvider

from migrate_groups.errors import ClusterUnavailable


# In a module of their own, because the imports from kafka-python take long and few logins need them.
class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Gives kafka-python an OAuth token for each connection.

    fetch: returns a valid token. extensions: the SASL extensions to send with the token (KIP-342).
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
        """Return the SASL extensions to send with the token (KIP-342)."""
        return dict(self._extensions)


# kafka-python's own class uses only the default ticket cache.
class _Gssapi(SaslMechanismGSSAPI):  # type: ignore[misc]
    """Logs in to a broker with GSSAPI (Kerberos), with tickets from a keytab or from any ticket cache."""

    def __init__(self, **config: Any) -> None:
        login: Any = config.get("sasl_kerberos_name")
        if not hasattr(login, "begin"):
            super().__init__(**config)  # for a client of another package in this process
            return
        self._is_done = self._is_authenticated = False
        with _refused():
            self.auth_id, self._client_ctx, self._next_token = login.begin(config["host"])

    def receive(self, auth_bytes: bytes) -> None:
        """Process the broker's answer."""
        with _refused():
            super().receive(auth_bytes)

    def auth_details(self) -> str:
        """Return a text about the login for kafka-python's log."""
        # kafka-python's own method needs the security context, which may have expired.
        return f"Authenticated to {self.auth_id} via SASL / GSSAPI"


@contextmanager
def _refused() -> Iterator[None]:
    """Turn any error of the ``with`` block into `SaslAuthenticationFailedError`."""
    try:
        yield
    # Every exception, because the errors of gssapi can't be named without an import of gssapi.
    except Exception as error:
        raise SaslAuthenticationFailedError(" ".join(str(error).split())) from error


def use_our_gssapi() -> None:
    """Make kafka-python use `_Gssapi`, this package's login with Kerberos, for the mechanism GSSAPI."""
    register_sasl_mechanism("GSSAPI", _Gssapi, overwrite=True)
