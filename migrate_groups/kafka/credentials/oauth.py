"""The settings of SASL OAUTHBEARER: how a client gets a token."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """SASL OAUTHBEARER with the client credentials grant: a token server issues tokens (RFC 6749, 4.4; KIP-768).

    endpoint: the token server's URL. extensions: SASL extensions to send with each token (KIP-342). trusted: the
    certificates (PEM) to trust for the token server; None: those that this machine trusts.
    """

    mechanism = "OAUTHBEARER"
    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)
    trusted: str | None = field(default=None, repr=False)

    def confluent(self) -> dict[str, str]:
        """Return these settings as librdkafka's properties."""
        given = {
            "sasl.oauthbearer.scope": self.scope,
            "sasl.oauthbearer.extensions": ",".join(f"{name}={value}" for name, value in self.extensions.items()),
            "https.ca.pem": self.trusted,
            # By default librdkafka 2.16 looks only where Red Hat keeps certificates, even with "probe"
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
        """A description of the principal: its name in Kafka's ACLs is in the token, which a client can't know."""
        return f"the principal of OAuth client {self.client_id}"
