"""SASL OAUTHBEARER: where a token comes from, and the one provider of tokens for both clients.

The second client gets each token from here, too, so that no setting means one thing to librdkafka and another to Java.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from migrate_groups.errors import ClusterUnavailable

_USED = 0.8  # of a token's time, as in Kafka's sasl.login.refresh.window.factor
_UNKNOWN_SECONDS = 3600.0  # what librdkafka is told about a token that does not say when it expires


class NoToken(ClusterUnavailable):
    """No token was to be had."""


class Token(NamedTuple):
    """A token, and the seconds from now on in which it is valid; None if it does not say."""

    value: str
    seconds: float | None


class TokenSource(Protocol):
    """Where tokens come from."""

    def fetch(self) -> Token:
        """Return a new token. Raises `NoToken`."""

    @property
    def principal(self) -> str:
        """A description of the principal: its name in Kafka's ACLs is in the token, which a client can't know."""


def now() -> float:
    """Return the seconds since 1970, because the times in tokens are absolute (RFC 7519)."""
    return time.time()


class _Held(NamedTuple):
    value: str
    fresh_until: float  # of the monotonic clock
    valid_until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """A login with tokens of ``source``; ``extensions`` are sent with each token (KIP-342).

    A token is used until 80 % of its time have passed, and for the rest of its time if no new one is to be had.
    """

    mechanism = "OAUTHBEARER"
    source: TokenSource
    extensions: Mapping[str, str] = field(default_factory=dict)
    _held: list[_Held] = field(default_factory=list, init=False, repr=False, compare=False)

    def token(self) -> str:
        """Return a valid token. Raises `NoToken`."""
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
        life = seconds or 0.0
        self._held[:] = [_Held(value, at + life * _USED, at + (life or _UNKNOWN_SECONDS))]
        return self._held[-1]

    def kafka_python(self) -> dict[str, Any]:
        """Return this login as kafka-python's properties."""
        from migrate_groups.kafka.credentials.kafka_python_login import TokenProvider

        return {"sasl_oauth_token_provider": TokenProvider(self.token, self.extensions)}

    def confluent(self) -> dict[str, Any]:
        """Return this login for the second client's process: the answer that its ``oauth_cb`` is to give.

        Raises `NoToken`.
        """
        held = self._valid()
        expires = now() + held.valid_until - time.monotonic()
        return {"oauth_cb": [held.value, expires, "migrate-groups", dict(self.extensions)]}

    @property
    def principal(self) -> str:
        """A description of the principal."""
        return self.source.principal
