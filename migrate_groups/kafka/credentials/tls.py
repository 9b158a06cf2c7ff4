"""TLS settings: read them from client properties, and give each client the form that it needs."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.properties import Properties, quoted

if TYPE_CHECKING:
    from migrate_groups.kafka.credentials.stores import Store

_STORE_TYPES = ("JKS", "PKCS12", "PEM")


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


# The modules that read certificates and keys are imported where one is given, because their imports take 30 ms.
def tls_in(properties: Properties) -> Tls:
    """Return the TLS settings in client properties. Raises `InvalidInput` if a property or its file can't be used."""
    algorithm = properties.take("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", "none", ""):  # librdkafka has "none" where Kafka has an empty value
        raise InvalidInput(
            "ssl.endpoint.identification.algorithm is neither https nor empty: leave it empty to check no host name"
        )
    key_password = properties.take("ssl.key.password") or None
    chain, key = _own(properties, key_password)
    return Tls(
        trusted=trusted_in(properties),
        certificates=chain,
        key=key,
        key_password=key_password,
        check_host_name=algorithm == "https",
    )


def trusted_in(properties: Properties) -> str | None:
    """Return the trusted certificates as PEM; None: those that this machine trusts.

    properties: client properties or JAAS options. Raises `InvalidInput` if they name a truststore that can't be used.
    """
    name = "ssl.truststore.certificates"
    if inline := properties.take(name):
        from migrate_groups.kafka.credentials import pem

        _check_type(properties, "truststore")
        return pem.certificates(inline, properties.written(name))
    store = _store(properties, "truststore")
    return store.trusted() if store else None


def _own(properties: Properties, key_password: str | None) -> tuple[str | None, str | None]:
    """Return the client's own certificate chain and private key as PEM; ``(None, None)`` if it has none."""
    if key := properties.take("ssl.keystore.key"):
        _check_type(properties, "keystore")
        chain = properties.take("ssl.keystore.certificate.chain")
        of_chain, of_key = map(properties.written, ("ssl.keystore.certificate.chain", "ssl.keystore.key"))
    elif store := _store(properties, "keystore"):
        return store.own(key_password)
    else:
        of_chain, of_key = "ssl.certificate.location", "ssl.key.location"  # librdkafka reads them from two files
        locations = properties.take(of_chain), properties.take(of_key)
        if not any(locations):
            return None, None
        if not all(locations):
            raise InvalidInput(f"only one of {of_chain} and {of_key} is given: give both")
        chain, key = read_text(locations[0], of_chain), read_text(locations[1], of_key)
    from migrate_groups.kafka.credentials import pem

    return pem.certificates(chain, of_chain), pem.private_key(key, of_key)


def _store(properties: Properties, kind: str) -> Store | None:
    of_location, of_password = f"ssl.{kind}.location", f"ssl.{kind}.password"
    _check_type(properties, kind)
    location, password = properties.take(of_location), properties.take(of_password) or None
    if not location:
        return None
    from migrate_groups.kafka.credentials.stores import Store

    of_location = properties.written(of_location)
    return Store(location, _read(location, of_location), password, of_location, of_password)


def _check_type(properties: Properties, kind: str) -> None:
    """Raise `InvalidInput` if the properties name a type of truststore or keystore that is not supported.

    kind: ``truststore`` or ``keystore``.
    """
    # A supported type is ignored, because the content of a store shows its type.
    written = properties.take(f"ssl.{kind}.type")
    if written and written.upper() not in _STORE_TYPES:
        from migrate_groups.kafka.credentials.stores import to_pkcs12

        advice = to_pkcs12(properties.take(f"ssl.{kind}.location")) if quoted(written) == written else "correct it"
        raise InvalidInput(f"ssl.{kind}.type is {quoted(written)}; supported are {', '.join(_STORE_TYPES)}: {advice}")


def read_text(location: str, where: str) -> str:
    """Return the content of a PEM file. Raises `InvalidInput` if the file can't be read.

    where: the property that names the file, for the error.
    """
    return _read(location, where).decode(errors="replace")


def _read(location: str, where: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except (OSError, ValueError) as error:  # The path is not quoted, because it may contain a secret of the next line.
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise InvalidInput(
            f"{where} can't be read ({reason}): check the path and the permissions of the file"
        ) from error


@contextmanager
def _nameless_file(text: str) -> Iterator[str]:
    """Yield a path, such as ``/dev/fd/5``, of an unnamed temporary file with this text. The file can be read once."""
    # Python's ssl reads certificates and keys only from files. The file has no name, so that a killed process leaves
    # none behind: on Linux it is in memory, elsewhere it is deleted while it is open.
    with os.fdopen(os.memfd_create("pem"), "w") if hasattr(os, "memfd_create") else tempfile.TemporaryFile("w") as file:
        file.write(text)
        file.seek(0)  # also writes it out
        yield f"/dev/fd/{file.fileno()}"
