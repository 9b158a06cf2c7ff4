"""Hand a login to kafka-python. Its classes are imported here alone, because that takes long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.sasl.oauth import AbstractTokenProvider

from migrate_groups.errors import ClusterUnavailable


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Gives kafka-python the token of a login for each connection; ``extensions`` are sent with it."""

    def __init__(self, fetch: Callable[[], str], extensions: Mapping[str, str]) -> None:
        super().__init__()
        self._fetch, self._extensions = fetch, extensions

    def token(self) -> str:
        """Return a valid token. Raises `SaslAuthenticationFailedError` with the reason why there is none."""
        try:
            return self._fetch()
        except ClusterUnavailable as error:
            raise SaslAuthenticationFailedError(str(error)) from error

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions."""
        return dict(self._extensions)


class _Gssapi(SaslMechanismGSSAPI):  # type: ignore[misc]
    """Logs in with the tickets of our login; kafka-python's own class takes only the default ticket cache."""

    def __init__(self, **config: Any) -> None:
        login: Any = config.get("sasl_kerberos_name")
        if not hasattr(login, "context"):
            super().__init__(**config)  # another program's client in this process
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
    """Have kafka-python log in with our class, if it gets a login of ours."""
    register_sasl_mechanism("GSSAPI", _Gssapi, overwrite=True)
