"""TLS and SASL settings, and their form for kafka-python and for confluent-kafka."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from migrate_groups.errors import InvalidInput

if TYPE_CHECKING:
    from migrate_groups.kafka.credentials.kerberos import Kerberos
    from migrate_groups.kafka.credentials.oauth import OAuth


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS settings. Certificates and keys are PEM texts. The ``repr`` contains no secret.

    trusted: the certificates of trusted authorities; None: those that this machine trusts. certificates, key: the
    client's own, for mutual TLS. key_password: the password of ``key``. check_host_name: whether a broker's certificate
    must match its host name.
    """

    trusted: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_host_name: bool = True

    def context(self) -> ssl.SSLContext:
        """Return the SSL context for Python's sockets.

        Raises `InvalidInput` if a certificate or the key can't be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.check_host_name
        if self.trusted is None:
            context.load_default_certs()
        else:
            # As in Java, a trusted certificate may be the broker's own, or that of an intermediate authority.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            try:
                context.load_verify_locations(cadata=self.trusted)
            except ssl.SSLError as error:
                raise InvalidInput(
                    f"the certificates of ssl.truststore can't be used ({error.reason or error}): export them again"
                ) from error
        if self.certificates and self.key:
            self._load_own(context, self.certificates, self.key)
        return context

    def _load_own(self, context: ssl.SSLContext, certificates: str, key: str) -> None:
        def password() -> str:
            if self.key_password is None:
                raise InvalidInput("the private key of ssl.keystore is encrypted: set ssl.key.password")
            return self.key_password

        with _nameless_file(certificates) as of_certificates, _nameless_file(key) as of_key:
            try:
                context.load_cert_chain(of_certificates, of_key, password)
            except ssl.SSLError as error:
                reason = error.reason or "the key can't be decrypted"
                raise InvalidInput(
                    f"the certificate and key of ssl.keystore can't be used ({reason}): check them and ssl.key.password"
                ) from error

    def confluent(self) -> dict[str, str]:
        """Return these settings as librdkafka's properties."""
        own = {"ssl.certificate.pem": self.certificates, "ssl.key.pem": self.key, "ssl.key.password": self.key_password}
        given = {name: value for name, value in {"ssl.ca.pem": self.trusted, **own}.items() if value is not None}
        return given | {"ssl.endpoint.identification.algorithm": "https" if self.check_host_name else "none"}


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
    login: Password | OAuth | Kerberos | None = None

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


@contextmanager
def _nameless_file(text: str) -> Iterator[str]:
    """Yield a path, such as ``/dev/fd/5``, of an unnamed temporary file with this text. The file can be read once."""
    # Python's ssl reads certificates and keys only from files. The file has no name, so that a killed process leaves
    # none behind: on Linux it is in memory, elsewhere it is deleted while it is open.
    with os.fdopen(os.memfd_create("pem"), "w") if hasattr(os, "memfd_create") else tempfile.TemporaryFile("w") as file:
        file.write(text)
        file.seek(0)  # also writes it out
        yield f"/dev/fd/{file.fileno()}"


PLAINTEXT = Security()
