"""Convert PEM certificates and keys from the form of Kafka's Java clients (KIP-651) to the form of OpenSSL."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from migrate_groups.errors import InvalidInput

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_KEYTOOL_ONLY = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")  # JKS, JCEKS


def certificates(pem: str, where: str) -> str:
    """Return only the certificates of a PEM text; ``where`` names the text in errors.

    Raises `InvalidInput` if there is none, or if one can't be read.
    """
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    found = _blocks(pem, "CERTIFICATE", f"{where} has no certificate (-----BEGIN CERTIFICATE-----)")
    try:
        read = load_pem_x509_certificates(found.encode())
    except ValueError as error:
        raise InvalidInput(f"{where} has a certificate that can't be read: {_first_line(error)}") from error
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in read)


def private_key(pem: str, where: str) -> str:
    """Return the private key of a PEM text, as PKCS #8; an encrypted key is returned unchanged.

    Raises `InvalidInput` if there is none, or if it can't be read.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    found = _blocks(pem, "PRIVATE KEY", f"{where} has no private key (-----BEGIN PRIVATE KEY-----)")
    try:
        key = serialization.load_pem_private_key(found.encode(), None)
    except TypeError:  # the key is encrypted; each client decrypts it itself
        return found
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidInput(f"{where} has a private key that can't be read") from error
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def read_store(location: str, kind: str) -> str:
    """Return the text of a PEM file; ``kind`` is ``truststore`` or ``keystore``.

    Raises `InvalidInput` if the file can't be read, or if it is not PEM, with the command that converts it to PEM.
    """
    try:
        content = Path(location).read_bytes()
    except (OSError, ValueError) as error:  # not quoted: it may contain a secret from the next line
        reason = error.strerror if isinstance(error, OSError) else "that is no name of a file"
        raise InvalidInput(f"ssl.{kind}.location can't be read: {reason}") from error
    if b"-----BEGIN " in content:
        return content.decode("utf-8", errors="replace")
    command, pem = _to_pem(location, kind, keytool_only=content.startswith(_KEYTOOL_ONLY))
    raise InvalidInput(
        f"ssl.{kind}.location {location} is JKS or PKCS12, and only PEM is taken here; make it PEM with: {command}; "
        f"then say ssl.{kind}.type=PEM and ssl.{kind}.location={pem}"
    )


def _to_pem(location: str, kind: str, *, keytool_only: bool) -> tuple[str, Path]:
    """Return the command that converts a truststore or keystore to PEM, and the file that it writes."""
    pem, p12 = (Path(location).with_suffix(suffix) for suffix in (".pem", ".p12"))
    store, to_pem, to_p12 = (shlex.quote(str(path)) for path in (location, pem, p12))
    if kind == "truststore":
        return f"keytool -list -rfc -keystore {store} > {to_pem}", pem
    if keytool_only:
        to_pkcs12 = f"keytool -importkeystore -srckeystore {store} -destkeystore {to_p12} -deststoretype PKCS12"
        return f"{to_pkcs12} && openssl pkcs12 -in {to_p12} -out {to_pem}", pem
    return f"openssl pkcs12 -in {store} -out {to_pem}", pem


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _blocks(pem: str, kind: str, missing: str) -> str:
    found = [_with_lines(each[1], each[2]) for each in _BLOCK.finditer(pem) if each[1].endswith(kind)]
    if not found:
        raise InvalidInput(missing)
    return "".join(found)


def _with_lines(name: str, body: str) -> str:
    """Return a PEM block with line ends, because a value of several lines in a properties file loses them."""
    lines = body.strip() if ":" in body else "\n".join(body.split())  # a colon means headers, whose lines must stay
    return f"-----BEGIN {name}-----\n{lines}\n-----END {name}-----\n"
