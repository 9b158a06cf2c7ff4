"""Proxies before a sandbox's brokers that make them offer what brokers of other vendors do: fewer APIs and versions."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Collection, Mapping
from contextlib import suppress

from tests.support.proxy import Proxies

API_VERSIONS = 18
_UNSUPPORTED_VERSION = 35


class Offering(Proxies):
    """Proxies that change the brokers' ApiVersions responses. By default, they offer what the brokers offer.

    without: the keys of APIs that are not offered. versions: by key, the lowest and the highest version offered.
    most_api_versions: a later version of ApiVersions closes the connection.
    only: whether the APIs in ``versions`` are the only ones. A version that the brokers lack is not offered.
    After `slow`, each response is kept for so many seconds.
    """

    def __init__(self, targets: Collection[str]) -> None:
        self.without: frozenset[int] = frozenset()
        self.versions: Mapping[int, tuple[int, int]] = {}
        self.only = False
        self.most_api_versions = 4
        self._asked: dict[object, dict[int, int]] = {}
        super().__init__(targets)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, are_responses: bool
    ) -> None:
        # The client's reader and writer share a transport, which is the key of what was asked on its connection.
        transport = writer.transport if are_responses else reader._transport  # type: ignore[attr-defined]
        asked = self._asked.setdefault(transport, {})
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                if are_responses:
                    (correlation_id,) = struct.unpack(">i", frame[:4])
                    version = asked.pop(correlation_id, None)
                    frame = frame if version is None else frame[:4] + self._changed(frame[4:], version)
                else:
                    key, version, correlation_id = struct.unpack(">hhi", frame[:8])
                    if key == API_VERSIONS and version > self.most_api_versions:
                        transport.abort()
                        break
                    if key == API_VERSIONS:
                        asked[correlation_id] = version
                await asyncio.sleep(self._delay * are_responses)
                writer.write(struct.pack(">i", len(frame)) + frame)
                await writer.drain()
        writer.close()

    def _offered(self, key: int, versions: tuple[int, int]) -> tuple[int, int]:
        low, high = self.versions.get(key, versions)
        return (max(low, versions[0]), min(high, versions[1])) if self.only else (low, high)

    def _changed(self, body: bytes, version: int) -> bytes:
        """Return the body of an ApiVersions response with other offers."""
        (error,) = struct.unpack(">h", body[:2])
        is_flexible = version >= 3 and error != _UNSUPPORTED_VERSION
        if is_flexible:
            count, at = _unsigned(body, 2)
            count -= 1
        else:
            (count,), at = struct.unpack(">i", body[2:6]), 6
        step = 7 if is_flexible else 6
        entries = [struct.unpack(">hhh", body[at + step * n : at + step * n + 6]) for n in range(count)]
        offered = [
            (key, *self._offered(key, (low, high)))
            for key, low, high in entries
            if key not in self.without and (key in self.versions or not self.only)
        ]
        made = b"".join(struct.pack(">hhh", *each) + b"\0" * is_flexible for each in offered)
        number = _varint(len(offered) + 1) if is_flexible else struct.pack(">i", len(offered))
        return body[:2] + number + made + body[at + step * count :]


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned varint at a position, and the position after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
