"""Proxies that count the serial rounds of requests: how often clients wait for a response before they send on."""

from __future__ import annotations

import asyncio
import copy
import struct
import zlib
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from kafka.protocol.metadata import FindCoordinatorResponse, MetadataResponse

from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, log_partition
from tests.support.proxy import Proxies

_API_NAMES = {
    **{2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch", 10: "FindCoordinator", 12: "Heartbeat"},
    **{11: "JoinGroup", 13: "LeaveGroup", 14: "SyncGroup", 15: "DescribeGroups", 16: "ListGroups", 18: "ApiVersions"},
    **{23: "OffsetForLeaderEpoch", 32: "DescribeConfigs", 42: "DeleteGroups", 69: "ConsumerGroupDescribe"},
}
# Seconds. A response is held in slices, because a busy machine halts the client and its proxy together: however long
# that lasts, it counts as one slice, and the client still sends what does not wait for the response.
_SLICE = 0.02


class Rounds(Proxies):
    """Proxies that record each request and response between `begin` and `end`, and hold each response for a while.

    A response is held, so that requests that do not wait for it come before it. Only the client with the id `CLIENT_ID`
    and the second client are recorded: a client of another test, whose broker is gone, may connect to a proxy, because
    the proxy may have the same port.
    """

    CLIENT_ID = "counted"
    _RECORDED = frozenset((CLIENT_ID, "migrate-groups-second"))

    def __init__(self, targets: Collection[str]) -> None:
        self._held = 0.0
        self._records: list[tuple[str, str, object]] = []
        self._names: dict[tuple[object, int], tuple[str, int, int]] = {}
        super().__init__(targets)

    def begin(self, held: float) -> None:
        """Record from now on. held: for how many seconds to hold each response, at least."""
        self._records, self._held = [], held

    def end(self) -> list[list[str]]:
        """Return the names of the requests of each round, without those whose responses have not come yet.

        A round ends with the first response to one of its requests: each later request may have waited for it.
        """
        recorded, self._held = list(self._records), 0.0
        rounds: list[list[str]] = []
        is_over = True
        for what, name, _ in recorded:
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

    def answer(self, key: int, version: int, frame: bytes) -> bytes:
        """Return the response to forward to a request. key, version: of the request. frame: the broker's response."""
        return frame

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
                    name, key, version = self._names.pop((transport, *struct.unpack(">i", frame[:4])))
                    frame = self.answer(key, version, frame)
                    for _ in range(round(self._held / _SLICE)):
                        await asyncio.sleep(_SLICE)
                else:
                    key, version, correlation_id, length = struct.unpack(">hhih", frame[:10])
                    is_recorded = frame[10 : 10 + max(0, length)].decode() in self._RECORDED
                    name = _API_NAMES.get(key, f"API {key}") if is_recorded else ""
                    self._names[transport, correlation_id] = name, key, version
                if name:
                    self._records.append(("response" if are_responses else "request", name, transport))
                writer.write(struct.pack(">i", len(frame)) + frame)
                await writer.drain()
        writer.close()


class ManyBrokers(Rounds):
    """Thirty proxies before one broker, which look to clients like thirty brokers.

    The answers to Metadata spread the leaders over them. As on a real cluster, a group's coordinator is the leader of
    its partition of ``__consumer_offsets``, which must have `OFFSETS_PARTITIONS` partitions.
    """

    BROKERS = 30
    OFFSETS_PARTITIONS = 60

    def __init__(self, targets: Collection[str]) -> None:
        super().__init__([*targets] * self.BROKERS)
        self._ports = [int(each.rpartition(":")[2]) for each in self.addresses]
        # The broker itself advertises only one address.
        self.addresses = self.addresses[:1]
        self.bootstrap_servers = self.addresses[0]

    def answer(self, key: int, version: int, frame: bytes) -> bytes:
        """Return the response with thirty brokers in place of the one."""
        change = {MetadataResponse: self._metadata, FindCoordinatorResponse: self._coordinators}
        for kind in change:
            if key == kind.API_KEY:
                # The correlation id, and an empty list of tags from the first flexible version on.
                body = 5 if kind.flexible_version_q(version) else 4
                found = kind.decode(frame[body:], version=version)
                found._header = None  # otherwise it can not be encoded again
                change[kind](found)
                return frame[:body] + bytes(found.encode(version=version))
        return frame

    def _metadata(self, found: Any) -> None:
        (only,) = found.brokers
        found.brokers = []
        for number, port in enumerate(self._ports, 1):
            broker = copy.copy(only)
            broker.node_id, broker.port = number, port
            found.brokers.append(broker)
        for topic in found.topics:
            for each in topic.partitions:
                each.leader_id = self._leader(topic.name or "", each.partition_index)
                each.replica_nodes = each.isr_nodes = [each.leader_id]

    def _coordinators(self, found: Any) -> None:
        # Before version 4 the answer does not name the group: any broker will do.
        for each in found.coordinators or [found]:
            if not each.error_code:
                number = log_partition(each.key, self.OFFSETS_PARTITIONS) if found.coordinators else 0
                each.node_id = self._leader(OFFSETS_TOPIC, number)
                each.port = self._ports[each.node_id - 1]

    def _leader(self, topic: str, partition: int) -> int:
        return (zlib.crc32(topic.encode()) + partition) % self.BROKERS + 1
