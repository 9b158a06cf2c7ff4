"""Proxies that count the serial rounds of requests: how often clients wait for a response before they send on."""

from __future__ import annotations

import asyncio
import struct
import time
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress

from tests.support.proxy import Proxies

_API_NAMES = {
    **{2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch", 10: "FindCoordinator", 12: "Heartbeat"},
    **{11: "JoinGroup", 13: "LeaveGroup", 14: "SyncGroup", 15: "DescribeGroups", 16: "ListGroups", 18: "ApiVersions"},
    **{23: "OffsetForLeaderEpoch", 32: "DescribeConfigs", 42: "DeleteGroups", 69: "ConsumerGroupDescribe"},
}
# A heartbeat is sent at its own times, and no other request waits for it.
_NOT_COUNTED = {"Heartbeat"}


class Rounds(Proxies):
    """Proxies that record each request and response between `begin` and `end`, and hold each response for a while.

    A response is held, so that requests that do not wait for it come before it.
    """

    def __init__(self, targets: Collection[str]) -> None:
        self._held = 0.0
        self._records: list[tuple[str, str, object]] = []
        self._names: dict[tuple[object, int], tuple[str, float]] = {}
        super().__init__(targets)

    def begin(self, held: float) -> None:
        """Record from now on. held: the seconds from a request to its response, at least."""
        self._records, self._held = [], held

    def end(self) -> list[list[str]]:
        """Return the names of the requests of each round, without those whose responses have not come yet.

        A round ends with the first response to one of its requests: each later request may have waited for it.
        """
        recorded, self._held = list(self._records), 0.0
        rounds: list[list[str]] = []
        is_over = True
        for what, name, _ in recorded:
            if name in _NOT_COUNTED:
                continue
            if what == "response":
                is_over = True
                continue
            if is_over:
                rounds.append([])
                is_over = False
            rounds[-1].append(name)
        return rounds

    def sent(self) -> list[list[str]]:
        """Return the names of the requests that were recorded last, in order, for each connection."""
        connections: dict[object, list[str]] = defaultdict(list)
        for what, name, connection in self._records:
            if what == "request":
                connections[connection].append(name)
        return [*connections.values()]

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, are_responses: bool
    ) -> None:
        # The client's reader and writer share a transport, which is the key of its requests.
        transport = writer.transport if are_responses else reader._transport  # type: ignore[attr-defined]
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                if are_responses:
                    name, asked_at = self._names.pop((transport, *struct.unpack(">i", frame[:4])))
                    await asyncio.sleep(max(0.0, asked_at + self._held - time.monotonic()))
                else:
                    key, _, correlation_id = struct.unpack(">hhi", frame[:8])
                    name = _API_NAMES.get(key, f"API {key}")
                    self._names[transport, correlation_id] = name, time.monotonic()
                self._records.append(("response" if are_responses else "request", name, transport))
                writer.write(struct.pack(">i", size) + frame)
                await writer.drain()
        writer.close()
