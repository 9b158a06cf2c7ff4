"""Read PKCS #12 stores (RFC 7292): the number of private keys, the first private key and all certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate_groups.kafka.credentials.der import Damaged, children, fields

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_MOST_ITERATIONS = 5_000_000  # as in the JDK's PKCS12KeyStore
_DEEPEST = 8  # the parameters of PBES2 are nested four deep
_DATA, _ENCRYPTED_DATA = (bytes.fromhex(f"2a864886f70d0107{last}") for last in ("01", "06"))
_KEY, _ENCRYPTED_KEY = (bytes.fromhex(f"2a864886f70d010c0a01{last}") for last in ("01", "02"))
_SEQUENCE, _INTEGER, _OCTETS, _OID, _EXPLICIT = 0x30, 0x02, 0x04, 0x06, 0xA0


def is_pkcs12(content: bytes) -> bool:
    """Return whether bytes begin like a PKCS #12 store: with a sequence whose first element is version 3."""
    return content[:1] == b"\x30" and b"\x02\x01\x03" in content[2:9]


def load(content: bytes, password: str | None) -> tuple[int, PKCS12KeyAndCertificates]:
    """Return a PKCS #12 store's number of private keys, and an object with its first private key and all certificates.

    Raises `Damaged` if the store can't be read; ``ValueError`` if the password is wrong.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    keys = _count_keys(content)
    try:
        return keys, load_pkcs12(content, None if password is None else password.encode())
    except UnsupportedAlgorithm as error:
        raise Damaged from error


# `cryptography` does not return this number. In a damaged store the number of iterations can be so high that
# `cryptography` would compute for minutes.
def _count_keys(content: bytes) -> int:
    """Return the number of private keys in a PKCS #12 store.

    Raises `Damaged` if the content is not valid, or if it asks for too many iterations of key derivation.
    """
    (store,) = fields(content, _SEQUENCE)
    _, safe = fields(store, _INTEGER, _SEQUENCE)
    for _, mac in children(store)[2:]:
        _check_iterations(mac)
    return sum(_count_in(part) for _, part in children(_octets(safe)))


def _count_in(part: bytes) -> int:
    kind, value = fields(part, _OID, _EXPLICIT)
    if kind == _ENCRYPTED_DATA:
        (encrypted,) = fields(value, _SEQUENCE)
        _, encrypted = fields(encrypted, _INTEGER, _SEQUENCE)
        _, algorithm = fields(encrypted, _OID, _SEQUENCE)
        _check_iterations(algorithm)
        return 0
    return sum(_is_key(bag) for _, bag in children(_octets(part)))


def _is_key(bag: bytes) -> bool:
    kind, value = fields(bag, _OID, _EXPLICIT)
    if kind == _ENCRYPTED_KEY:
        (key,) = fields(value, _SEQUENCE)
        algorithm, _ = fields(key, _SEQUENCE, _OCTETS)
        _check_iterations(algorithm)
    return kind in (_KEY, _ENCRYPTED_KEY)


def _octets(part: bytes) -> bytes:
    """Return the DER elements of an unencrypted part of a PKCS #12 store.

    Raises `Damaged` if the type of the part is not ``data``.
    """
    kind, value = fields(part, _OID, _EXPLICIT)
    if kind != _DATA:
        raise Damaged
    (octets,) = fields(value, _OCTETS)
    (sequence,) = fields(octets, _SEQUENCE)
    return sequence


def _check_iterations(algorithm: bytes, depth: int = 0) -> None:
    """Raise `Damaged` if the parameters of an algorithm ask for too many iterations of key derivation."""
    # The parameters differ between algorithms, so each number in them is taken for a number of iterations.
    for tag, value in children(algorithm):
        if (tag == _INTEGER and int.from_bytes(value) > _MOST_ITERATIONS) or depth > _DEEPEST:
            raise Damaged
        if tag == _SEQUENCE:
            _check_iterations(value, depth + 1)
