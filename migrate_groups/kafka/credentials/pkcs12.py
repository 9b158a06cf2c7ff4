"""Read PKCS #12 stores (RFC 7292): the number of private keys, the first private key and all certificates."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, load_pkcs12
from cryptography.x509 import InvalidVersion

from migrate_groups.kafka.credentials.der import Damaged, WrongPassword, children, fields

_MOST_ITERATIONS = 5_000_000  # as in the JDK's PKCS12KeyStore
_DEEPEST = 16  # the parameters of a key's encryption are nested eight deep
_DATA, _ENCRYPTED_DATA = (bytes.fromhex(f"2a864886f70d0107{last}") for last in ("01", "06"))
_KEYS = {bytes.fromhex(f"2a864886f70d010c0a01{last}") for last in ("01", "02")}  # a key, and an encrypted key
_SEQUENCE, _INTEGER, _OCTETS, _OID, _EXPLICIT = 0x30, 0x02, 0x04, 0x06, 0xA0


def is_pkcs12(content: bytes) -> bool:
    """Return whether bytes begin like a PKCS #12 store: with a sequence whose first element is version 3."""
    return content[:1] == b"\x30" and b"\x02\x01\x03" in content[2:9]


def load(content: bytes, password: str | None) -> tuple[int, PKCS12KeyAndCertificates]:
    """Return a PKCS #12 store's number of private keys, and an object with its first private key and all certificates.

    Raises `Damaged` if the store can't be read; `WrongPassword` if the password does not fit the content.
    """
    # `cryptography` does not return this number. In a damaged store the number of iterations can be so high that
    # `cryptography` would compute for minutes.
    keys = _count_keys(content)
    try:
        return keys, load_pkcs12(content, None if password is None else password.encode())
    except (InvalidVersion, UnsupportedAlgorithm) as error:
        raise Damaged from error
    except ValueError as error:
        raise WrongPassword from error


def _count_keys(content: bytes) -> int:
    """Return the number of private keys in a PKCS #12 store.

    Raises `Damaged` if the content is not valid, or if it asks for too many iterations of key derivation.
    """
    (store,) = fields(content, _SEQUENCE)
    _, safe = fields(store, _INTEGER, _SEQUENCE)
    parts = [part for _, part in children(_data(safe))]
    encrypted = [part for part in parts if _kind(part) == _ENCRYPTED_DATA]
    bags = [bag for part in parts if part not in encrypted for _, bag in children(_data(part))]
    keys = [bag for bag in bags if _kind(bag) in _KEYS]
    for protected in (store, *encrypted, *keys):
        _check_iterations(protected)
    return len(keys)


def _kind(part: bytes) -> bytes:
    kind, _ = fields(part, _OID, _EXPLICIT)
    return kind


def _data(part: bytes) -> bytes:
    """Return the DER elements in an unencrypted part of a PKCS #12 store.

    Raises `Damaged` if the type of the part is not ``data``.
    """
    kind, value = fields(part, _OID, _EXPLICIT)
    if kind != _DATA:
        raise Damaged
    (octets,) = fields(value, _OCTETS)
    (sequence,) = fields(octets, _SEQUENCE)
    return sequence


def _check_iterations(content: bytes, depth: int = 0) -> None:
    """Raise `Damaged` if DER elements ask for too many iterations of key derivation."""
    # The parameters differ between algorithms, so each number in them is taken for a number of iterations.
    for tag, value in children(content):
        if (tag == _INTEGER and int.from_bytes(value) > _MOST_ITERATIONS) or depth > _DEEPEST:
            raise Damaged
        if tag in (_SEQUENCE, _EXPLICIT):
            _check_iterations(value, depth + 1)
