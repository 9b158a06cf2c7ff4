"""Records of the offsets topic, encoded as brokers write them."""

from __future__ import annotations

from collections.abc import Sequence

_A_TIME = 1763610000000  # milliseconds since 1970


def texts(*each: str | None) -> bytes:
    """Return texts as in most records: 2 bytes with the length, and the bytes; -1 for None."""
    return b"".join(b"\xff\xff" if text is None else sized(text.encode(), 2) for text in each)


def sized(data: bytes, width: int = 4) -> bytes:
    """Return bytes after their length, which takes ``width`` bytes."""
    return len(data).to_bytes(width) + data


def varint(number: int) -> bytes:
    """Return an unsigned varint: 7 bits a byte, the lowest first."""
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def compact(text: str | None) -> bytes:
    """Return a compact string, as in the records of KIP-848 members: a varint with its length plus 1, and its bytes."""
    return b"\0" if text is None else varint(len(text.encode()) + 1) + text.encode()


def commit_key(group: str, topic: str = "t", partition: int = 0) -> bytes:
    """Return the key of a committed offset."""
    return b"\0\1" + texts(group, topic) + partition.to_bytes(4)


def commit_value(offset: int, topic_id: str = "", *, epoch: int = -1, at: int = _A_TIME) -> bytes:
    """Return the value of a committed offset, in version 4.

    topic_id: 32 hexadecimal digits; empty: no topic id. at: the time of the commit, in milliseconds since 1970.
    """
    tagged = b"\1\0\x10" + bytes.fromhex(topic_id) if topic_id else b"\0"
    return b"\0\4" + offset.to_bytes(8, signed=True) + epoch.to_bytes(4, signed=True) + b"\1" + at.to_bytes(8) + tagged


def group_key(group: str, kind: int = 2) -> bytes:
    """Return the key of a group's record. kind: 2 for a generation of a classic group, 3 for a KIP-848 group."""
    return kind.to_bytes(2) + texts(group)


def member_key(group: str, member: str, kind: int = 5) -> bytes:
    """Return the key of a KIP-848 member's record. kind: 5 for the member, 8 for its assignment."""
    return group_key(group, kind) + texts(member)


def generation(number: int, *members: bytes, version: int = 3, assignor: str = "range") -> bytes:
    """Return the value of a generation of a classic group."""
    head = version.to_bytes(2) + texts("consumer") + number.to_bytes(4) + texts(assignor, "leader")
    return head + (_A_TIME.to_bytes(8) if version >= 2 else b"") + len(members).to_bytes(4) + b"".join(members)


def member(
    client: str,
    *topics: str,
    partitions: Sequence[int] = (0,),
    assigned: Sequence[str] | None = None,
    member_id: str | None = None,
    version: int = 3,
) -> bytes:
    """Return a member as it is in a classic group's record.

    partitions: those that the member has of each assigned topic. assigned: None for its first topic. member_id: None
    for the client id.
    """
    ids = texts(member_id or client) + (texts(None) if version >= 3 else b"") + texts(client, "/h")
    subscription = bytes(2) + len(topics).to_bytes(4) + texts(*topics) + sized(b"")
    of_topics = [*(topics[:1] if assigned is None else assigned)] if partitions else []
    numbers = len(partitions).to_bytes(4) + b"".join(each.to_bytes(4) for each in partitions)
    assignment = len(of_topics).to_bytes(4) + b"".join(texts(topic) + numbers for topic in of_topics)
    timeouts = (300_000).to_bytes(4) + bytes(4) if version >= 1 else (300_000).to_bytes(4)
    return ids + timeouts + sized(subscription) + sized(bytes(2) + assignment + sized(b""))
