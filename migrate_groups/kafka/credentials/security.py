"""TLS and SASL settings, translated for both Python clients."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Any

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.oauth import ClientCredentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS settings. All certificates and keys are PEM texts; the ``repr`` has no secret.

    trusted: the certificates of trusted authorities; None: those that this machine trusts. certificates, key: the
    client's own certificate chain and private key, for mutual TLS. key_password: decrypts ``key``. check_host_name:
    whether a broker's certificate must match its host name.
    """

    trusted: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_host_name: bool = True

    def context(self) -> ssl.SSLContext:
        """Return the context for Python's sockets. Raises `InvalidInput` if a certificate or the key can't be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.check_host_name
        if self.trusted is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(cadata=self.trusted)
            except ssl.SSLError as error:
                raise InvalidInput(f"the truststore's certificates can't be used: {error.reason or error}") from error
        if self.certificates and self.key:
            self._load_own(context, self.certificates + self.key)
        return context

    def _load_own(self, context: ssl.SSLContext, pem: str) -> None:
        def password() -> str:
            if self.key_password is None:
                raise InvalidInput("the private key of the keystore is encrypted: say ssl.key.password")
            return self.key_password

        # Python's ssl loads these only from a file. Other users can't read this one, and it is deleted at once.
        with tempfile.NamedTemporaryFile("w", prefix="migrate-groups-", suffix=".pem") as file:
            file.write(pem)
            file.flush()
            try:
                context.load_cert_chain(file.name, password=password)
            except ssl.SSLError as error:
                reason = error.reason or "the key can't be decrypted: is ssl.key.password right?"
                raise InvalidInput(f"the keystore's certificate and key can't be used: {reason}") from error

    def confluent(self) -> dict[str, str]:
        """Return these settings as librdkafka's properties."""
        own = {"ssl.certificate.pem": self.certificates, "ssl.key.pem": self.key, "ssl.key.password": self.key_password}
        given = {name: value for name, value in {"ssl.ca.pem": self.trusted, **own}.items() if value is not None}
        return given | {"ssl.endpoint.identification.algorithm": "https" if self.check_host_name else "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Password:
    """SASL with a user name and a password: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""

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
    login: Password | ClientCredentials | None = None

    @property
    def protocol(self) -> str:
        """The value of ``security.protocol``."""
        transport = "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{transport}" if self.login else transport

    @property
    def principal(self) -> str:
        """The client's principal as Kafka's ACLs name it, or a description if the client can't know it."""
        if self.login:
            return self.login.principal
        return "the client certificate's principal" if self.tls and self.tls.certificates else "User:ANONYMOUS"

    def kafka_python(self) -> dict[str, Any]:
        """Return these settings for kafka-python. Raises `InvalidInput` if a certificate or the key can't be used."""
        properties: dict[str, Any] = {"security_protocol": self.protocol}
        if self.tls:
            properties |= {"ssl_context": self.tls.context()}
        if isinstance(self.login, Password):
            properties |= self.login.kafka_python()
        elif self.login:
            from migrate_groups.kafka.credentials.tokens import TokenProvider

            properties["sasl_oauth_token_provider"] = TokenProvider(self.login)
        if self.login:
            properties["sasl_mechanism"] = self.login.mechanism
        return properties

    def confluent(self) -> dict[str, str]:
        """Return these settings as librdkafka's properties."""
        properties = {"security.protocol": self.protocol}
        if self.tls:
            properties |= self.tls.confluent()
        if self.login:
            properties |= {"sasl.mechanism": self.login.mechanism} | self.login.confluent()
        return properties


PLAINTEXT = Security()
