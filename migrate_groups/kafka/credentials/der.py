"""Split DER, the encoding of certificates, keys and PKCS #12 stores (X.690), into its elements."""

from __future__ import annotations


class Damaged(Exception):
    """A certificate, key or store is not valid in its format, for instance because it was cut off."""


class WrongPassword(Exception):
    """The password is wrong, or the protected content was changed."""


def children(content: bytes) -> list[tuple[int, bytes]]:
    """Return the tag and the value of each DER element in ``content``.

    Raises `Damaged` if the content is not a sequence of whole elements.
    """
    found, at = [], 0
    while at < len(content):
        length, begin = _length(content, at + 1)
        if begin + length > len(content):
            raise Damaged
        found.append((content[at], content[begin : begin + length]))
        at = begin + length
    return found


def fields(content: bytes, *tags: int) -> list[bytes]:
    """Return the values of the first DER elements in ``content``: one value for each of ``tags``.

    Raises `Damaged` if the content is not valid, or if the elements have other tags.
    """
    found = children(content)[: len(tags)]
    if [tag for tag, _ in found] != list(tags):
        raise Damaged
    return [value for _, value in found]


def _length(content: bytes, at: int) -> tuple[int, int]:
    """Return the length that is encoded at the position ``at``, and the position after the length."""
    first = content[at] if at < len(content) else 0x80
    if first < 0x80:
        return first, at + 1
    begin = at + 1 + (first & 0x7F)
    if not 1 <= first & 0x7F <= 4 or begin > len(content):  # 0x80 itself is BER's indefinite length
        raise Damaged
    return int.from_bytes(content[at + 1 : begin]), begin
