"""Read certificates and keys in the PEM form of Kafka's Java clients (KIP-651), and write them for OpenSSL."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
)
from cryptography.x509 import Certificate, InvalidVersion, load_der_x509_certificate, load_pem_x509_certificates

from migrate_groups.errors import InvalidInput
from migrate_groups.kafka.credentials.der import Damaged

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


def certificates(pem: str, where: str) -> str:
    """Return only the certificates of a PEM text. where: names the text in errors.

    Raises `InvalidInput` if there is no certificate, or if one can't be read.
    """
    found = _blocks(
        pem, "CERTIFICATE", f"{where} has no certificate: add one that begins with -----BEGIN CERTIFICATE-----"
    )
    try:
        read = load_pem_x509_certificates(found.encode())
    except (ValueError, InvalidVersion) as error:
        raise InvalidInput(
            f"{where} has a certificate that can't be read ({_first_line(error)}): export it as PEM again"
        ) from error
    return written(read)


def private_key(pem: str, where: str) -> str:
    """Return the private key of a PEM text as PKCS #8. An encrypted key is returned unchanged.

    where: names the text in errors. Raises `InvalidInput` if there is no private key, or if it can't be read.
    """
    found = _blocks(
        pem, "PRIVATE KEY", f"{where} has no private key: add one that begins with -----BEGIN PRIVATE KEY-----"
    )
    try:
        key = load_pem_private_key(found.encode(), None)
    except TypeError:  # the key is encrypted; each client decrypts it itself
        return found
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidInput(f"{where} has a private key that can't be read: export it as PEM again") from error
    return plain_key(key)


def is_pem(content: bytes) -> bool:
    """Return whether the content of a file is PEM."""
    return b"-----BEGIN " in content


def from_der(certificates: Iterable[bytes]) -> list[Certificate]:
    """Return certificates in DER as objects of ``cryptography``. Raises `Damaged` if one is not valid."""
    try:
        return [load_der_x509_certificate(each) for each in certificates]
    except (ValueError, InvalidVersion) as error:
        raise Damaged from error


def key_from_der(key: bytes) -> PrivateKeyTypes:
    """Return a private key in PKCS #8 (DER) as an object of ``cryptography``.

    Raises `Damaged` if the key is not valid.
    """
    try:
        return load_der_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Damaged from error


def chain(leaf: Certificate, others: Collection[Certificate]) -> list[Certificate]:
    """Return the certificate chain of ``leaf``: each certificate is followed by its issuer if ``others`` has it."""
    found = [leaf]
    while issuer := next((each for each in others if each not in found and _has_issued(each, found[-1])), None):
        found.append(issuer)
    return found


def written(certificates: Iterable[Certificate]) -> str:
    """Return certificates as one PEM text."""
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def plain_key(key: PrivateKeyTypes) -> str:
    """Return a private key as PEM (PKCS #8), not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _has_issued(issuer: Certificate, certificate: Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, TypeError, ValueError):
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _blocks(pem: str, kind: str, missing: str) -> str:
    found = [_with_lines(each[1], each[2]) for each in _BLOCK.finditer(pem) if each[1].endswith(kind)]
    if not found:
        raise InvalidInput(missing)
    return "".join(found)


def _with_lines(name: str, body: str) -> str:
    """Return a PEM block with its line ends restored. In a properties file they may be blanks."""
    lines = body.strip() if ":" in body else "\n".join(body.split())  # a colon means headers, whose lines must stay
    return f"-----BEGIN {name}-----\n{lines}\n-----END {name}-----\n"
