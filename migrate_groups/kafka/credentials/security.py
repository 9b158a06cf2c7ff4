"""TLS and SASL settings, and their form for kafka-python and for confluent-kafka."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from migrate_groups.kafka.credentials.tls import Tls


class Login(Protocol):
    """A SASL login, in the form that each client needs."""

    @property
    def mechanism(self) -> str:
        """The value of ``sasl.mechanism``."""

    @property
    def principal(self) -> str:
        """The client's principal as Kafka's ACLs name it, or a description if the client can't know this name."""

    @property
    def second_client_lacks(self) -> str:
        """The reason why confluent-kafka can't log in; empty if it can."""

    def kafka_python(self) -> dict[str, Any]:
        """Return this login as configuration for kafka-python."""

    def confluent(self) -> dict[str, Any]:
        """Return this login as librdkafka's properties. Raises `ClusterUnavailable` if confluent-kafka can't log in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Password:
    """SASL with a user name and a password: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""

    second_client_lacks = ""
    mechanism: str
    username: str
    password: str = field(repr=False)

    def kafka_python(self) -> dict[str, Any]:
        """Return user name and password as kafka-python's properties."""
        # SCRAM escapes , and = in a name (RFC 5802); librdkafka does that itself, kafka-python 3.0 does not.
        scram = self.mechanism.startswith("SCRAM-")
        name = self.username.replace("=", "=3D").replace(",", "=2C") if scram else self.username
        return {"sasl_plain_username": name, "sasl_plain_password": self.password}

    def confluent(self) -> dict[str, str]:
        """Return user name and password as librdkafka's properties."""
        return {"sasl.username": self.username, "sasl.password": self.password}

    @property
    def principal(self) -> str:
        """This user's principal, as Kafka's ACLs name it."""
        return f"User:{self.username}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The TLS and SASL settings of a connection; PLAINTEXT if it has neither."""

    tls: Tls | None = None
    login: Login | None = None

    @property
    def protocol(self) -> str:
        """The value of ``security.protocol``."""
        transport = "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{transport}" if self.login else transport

    @property
    def principal(self) -> str:
        """The client's principal as Kafka's ACLs name it, or a description if the client can't know this name."""
        if self.login:
            return self.login.principal
        return "the client certificate's principal" if self.tls and self.tls.certificates else "User:ANONYMOUS"

    @property
    def second_client_lacks(self) -> str:
        """The reason why confluent-kafka can't log in with these settings; empty if it can."""
        return self.login.second_client_lacks if self.login else ""

    def kafka_python(self) -> dict[str, Any]:
        """Return these settings as configuration for kafka-python.

        Raises `InvalidInput` if a certificate or the key can't be used.
        """
        properties: dict[str, Any] = {"security_protocol": self.protocol}
        if self.tls:
            properties |= {"ssl_context": self.tls.context()}
        if self.login:
            properties |= {"sasl_mechanism": self.login.mechanism} | self.login.kafka_python()
        return properties

    def confluent(self) -> dict[str, Any]:
        """Return these settings as librdkafka's properties.

        Raises `ClusterUnavailable` if an OAuth token can't be obtained, or if the login uses Kerberos.
        """
        properties: dict[str, Any] = {"security.protocol": self.protocol}
        if self.tls:
            properties |= self.tls.confluent()
        if self.login:
            properties |= {"sasl.mechanism": self.login.mechanism} | self.login.confluent()
        return properties


PLAINTEXT = Security()
