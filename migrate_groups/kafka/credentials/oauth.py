"""SASL OAUTHBEARER: what a client needs to get a token."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """SASL OAUTHBEARER with tokens that a server gives out to a client (RFC 6749, 4.4; KIP-768).

    trusted: certificates (PEM) to trust for the token server, None: those of this machine.
    """

    mechanism = "OAUTHBEARER"
    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)
    trusted: str | None = field(default=None, repr=False)

    def confluent(self) -> dict[str, str]:
        """Return librdkafka's properties."""
        given = {
            "sasl.oauthbearer.scope": self.scope,
            "sasl.oauthbearer.extensions": ",".join(f"{name}={value}" for name, value in self.extensions.items()),
            "https.ca.pem": self.trusted,
            # By itself librdkafka 2.16 looks where Red Hat keeps them, even with "probe"
            # (docs/kafka-behaviour.md#confluent-kafka).
            "https.ca.location": None if self.trusted else ssl.get_default_verify_paths().cafile,
        }
        return {name: value for name, value in given.items() if value} | {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": self.client_id,
            "sasl.oauthbearer.client.secret": self.client_secret,
            "sasl.oauthbearer.token.endpoint.url": self.endpoint,
        }

    @property
    def principal(self) -> str:
        """Who this is, as far as it can be known: the name in Kafka's ACLs is in the token."""
        return f"the principal of OAuth client {self.client_id}"
