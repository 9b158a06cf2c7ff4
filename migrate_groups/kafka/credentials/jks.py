"""Read keystores in Java's format JKS, and decrypt their private keys."""

from __future__ import annotations

import hashlib
import io
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from migrate_groups.kafka.credentials.der import Damaged, WrongPassword, fields

# The format of the JDK's `sun.security.provider.JavaKeyStore`: a header, the entries, and a SHA-1 hash of the password
# and of all bytes before it. Numbers are big-endian. Texts are in Java's modified UTF-8.
MAGIC = b"\xfe\xed\xfe\xed"
_DIGEST = 20  # the bytes of a SHA-1 hash
_PROTECTED = bytes.fromhex("2b060104012a02110101")  # 1.3.6.1.4.1.42.2.17.1.1: how JKS encrypts a private key


class Entry(NamedTuple):
    """An entry of a JKS store: a trusted certificate, or a private key with its certificate chain.

    certificates: in DER. encrypted_key: None for a trusted certificate.
    """

    certificates: tuple[bytes, ...]
    encrypted_key: bytes | None = None


def entries(content: bytes, password: str | None) -> list[Entry]:
    """Return the entries of a JKS store. Without a password the store's integrity is not verified, as in Java.

    Raises `WrongPassword` if the password does not fit the content, which may be damaged; `Damaged` if the content is
    not a whole JKS store.
    """
    if password is not None:
        expected = hashlib.sha1(_characters(password) + b"Mighty Aphrodite" + content[:-_DIGEST]).digest()  # noqa: S324
        if expected != content[-_DIGEST:]:
            raise WrongPassword
    reader = io.BytesIO(content[:-_DIGEST])
    magic, version, count = _take(reader, 4), _number(reader, 4), _number(reader, 4)
    if magic != MAGIC or version not in (1, 2):
        raise Damaged
    found = [_entry(reader, version) for _ in range(count)]
    if reader.read(1):
        raise Damaged
    return found


def decrypted(encrypted_key: bytes, password: str) -> bytes:
    """Decrypt a private key of a JKS store, and return it as PKCS #8 (DER).

    Raises `WrongPassword`, or `Damaged` if the key is not encrypted with JKS's algorithm.
    """
    (key,) = fields(encrypted_key, 0x30)
    algorithm, protected = fields(key, 0x30, 0x04)
    if fields(algorithm, 0x06) != [_PROTECTED]:
        raise Damaged
    return _unprotected(protected, _characters(password))


def _unprotected(protected: bytes, password: bytes) -> bytes:
    salt, encrypted, digest = protected[:_DIGEST], protected[_DIGEST:-_DIGEST], protected[-_DIGEST:]
    stream = itertools.chain.from_iterable(_key_stream(password, salt))
    plain = bytes(byte ^ key for byte, key in zip(encrypted, stream, strict=False))
    if hashlib.sha1(password + plain).digest() != digest:  # noqa: S324  the format has no other
        raise WrongPassword
    return plain


def _key_stream(password: bytes, salt: bytes) -> Iterator[bytes]:
    while True:
        salt = hashlib.sha1(password + salt).digest()  # noqa: S324  the format has no other
        yield salt


def _characters(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _entry(reader: io.BytesIO, version: int) -> Entry:
    kind = _number(reader, 4)
    _text(reader)  # the alias
    _take(reader, 8)  # when the entry was made
    if kind == 1:
        key = _take(reader, _number(reader, 4))
        return Entry(tuple(_certificate(reader, version) for _ in range(_number(reader, 4))), key)
    if kind == 2:
        return Entry((_certificate(reader, version),))
    raise Damaged


def _certificate(reader: io.BytesIO, version: int) -> bytes:
    if version == 2 and _text(reader) != b"X.509":
        raise Damaged
    return _take(reader, _number(reader, 4))


def _take(reader: io.BytesIO, length: int) -> bytes:
    """Return the next bytes of a store. Raises `Damaged` if too few bytes are left."""
    taken = reader.read(length)
    if len(taken) != length:
        raise Damaged
    return taken


def _number(reader: io.BytesIO, length: int) -> int:
    return int.from_bytes(_take(reader, length))


def _text(reader: io.BytesIO) -> bytes:
    return _take(reader, _number(reader, 2))
