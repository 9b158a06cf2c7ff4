"""Logins with SASL OAUTHBEARER: `OAuth` gets the tokens for both clients, kafka-python and confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from migrate_groups.errors import ClusterUnavailable

_USED = 0.8  # the part of a token's lifetime after which it is renewed, as sasl.login.refresh.window.factor in Kafka
_UNKNOWN_SECONDS = 3600.0  # the lifetime that librdkafka gets for a token whose lifetime is not known


# librdkafka does not fetch tokens itself, because it does not understand all properties as Kafka's Java clients do.
class NoToken(ClusterUnavailable):
    """No OAuth token could be obtained."""


class Token(NamedTuple):
    """An OAuth token. seconds: its remaining lifetime; None or 0: not known."""

    value: str
    seconds: float | None


class TokenSource(Protocol):
    """The source of OAuth tokens, such as a token server or a file."""

    def fetch(self) -> Token:
        """Return a new OAuth token. Raises `NoToken`, with the reason, if none can be obtained."""

    @property
    def principal(self) -> str:
        """A description of the client's principal, such as ``the principal of OAuth client my-app``."""


def now() -> float:
    """Return the seconds since 1970, the unit of the times in tokens (RFC 7519)."""
    return time.time()


class _Held(NamedTuple):
    value: str
    fresh_until: float  # seconds of the monotonic clock, like valid_until
    valid_until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """A login with SASL OAUTHBEARER, with tokens of ``source``.

    extensions: the SASL extensions to send with each token (KIP-342). After 80 % of a token's lifetime a new token is
    requested. If no new token can be obtained, the old token is used until it expires.
    """

    mechanism = "OAUTHBEARER"
    second_client_lacks = ""
    source: TokenSource
    extensions: Mapping[str, str] = field(default_factory=dict)
    _held: list[_Held] = field(default_factory=list, init=False, repr=False, compare=False)

    def token(self) -> str:
        """Return a valid token. Raises `NoToken` with the reason if there is none."""
        return self._valid().value

    def _valid(self) -> _Held:
        at = time.monotonic()
        held = self._held[-1] if self._held else None
        if held and at < held.fresh_until:
            return held
        try:
            value, seconds = self.source.fetch()
        except NoToken:
            if held and at < held.valid_until:
                return held
            raise
        # A token of unknown lifetime is used once, and again within an hour if no new token can be obtained.
        life = seconds or 0.0
        self._held[:] = [_Held(value, at + life * _USED, at + (life or _UNKNOWN_SECONDS))]
        return self._held[-1]

    def kafka_python(self) -> dict[str, Any]:
        """Return this login as configuration for kafka-python."""
        return {"sasl_oauth_token_provider": _TokenProvider(self)}

    def confluent(self) -> dict[str, Any]:
        """Return ``{"oauth_cb": token}``, for the process in which confluent-kafka runs.

        The token is a list: value, expiry (seconds since 1970), a fixed principal name, and SASL extensions. Raises
        `NoToken`.
        """
        held = self._valid()
        expires = now() + held.valid_until - time.monotonic()
        return {"oauth_cb": [held.value, expires, "migrate-groups", dict(self.extensions)]}

    @property
    def principal(self) -> str:
        """A description of the client's principal, such as ``the principal of OAuth client my-app``."""
        # The name in Kafka's ACLs is not known, because the brokers take it from the token.
        return self.source.principal


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Gives kafka-python a token of ``login`` for each connection."""

    def __init__(self, login: OAuth) -> None:
        super().__init__()
        self._login = login

    def token(self) -> str:
        """Return a valid token. Raises `SaslAuthenticationFailedError`, with the reason, if there is none."""
        try:
            return self._login.token()
        except NoToken as error:
            raise SaslAuthenticationFailedError(str(error)) from error

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions to send with the token (KIP-342)."""
        return dict(self._login.extensions)
