"""A TCP proxy in front of each broker of a sandbox, which can cut a connection within a response, or slow or hold all.

The brokers advertise the proxies' addresses to clients that come through a proxy. So such a client never reaches a
broker directly.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import TypeVar

from migrate_groups.sandbox.broker import Sandbox
from migrate_groups.sandbox.node import HOST

LISTENER = "PROXIED"
"""The listener behind the proxies: ``start_sandbox(…, listeners={LISTENER: "PLAINTEXT"})``."""
_CHUNK = 1 << 16
_SLOW_CHUNK = 256
P = TypeVar("P", bound="Proxies")


class Proxies:
    """The proxies of all brokers. They forward all bytes unchanged and at once, until `cut`, `slow` or `hold`.

    bootstrap_servers: the addresses of the proxies.
    """

    def __init__(self, targets: Collection[str]) -> None:
        self._to_cut, self._delay = 0, 0.0
        self._open = asyncio.Event()
        self._open.set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        ports = [asyncio.run_coroutine_threadsafe(self._listen(each), self._loop).result() for each in targets]
        self.addresses = [f"{HOST}:{port}" for port in ports]
        self.bootstrap_servers = ",".join(self.addresses)

    def cut(self, responses: int) -> None:
        """Forward only the first half of each of the next ``responses`` responses, then close the connection."""
        self._to_cut = responses

    def slow(self, seconds: float) -> None:
        """From now on, wait this long before forwarding each 256 bytes."""
        self._delay = seconds

    def hold(self) -> None:
        """From now on, keep all bytes, until `heal` forwards them."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def heal(self) -> None:
        """Forward everything again, without a delay."""
        self._to_cut, self._delay = 0, 0.0
        self._loop.call_soon_threadsafe(self._open.set)

    async def _listen(self, target: str) -> int:
        host, port = target.split(":")

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                to_broker = await asyncio.open_connection(host, int(port))
            except OSError:  # the broker is down
                writer.close()
                return
            await asyncio.gather(
                self._forward(reader, to_broker[1], are_responses=False),
                self._forward(to_broker[0], writer, are_responses=True),
            )

        server = await asyncio.start_server(connected, HOST, 0)
        listening: int = server.sockets[0].getsockname()[1]
        return listening

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, are_responses: bool
    ) -> None:
        with suppress(OSError):  # either side may be killed at any time
            while data := await reader.read(_SLOW_CHUNK if self._delay else _CHUNK):
                await asyncio.sleep(self._delay)
                await self._open.wait()
                is_cut = are_responses and self._to_cut > 0
                self._to_cut -= is_cut
                writer.write(data[: len(data) // 2] if is_cut else data)
                await writer.drain()
                if is_cut:
                    break
        writer.close()


def put_before(sandbox: Sandbox, kind: type[P] = Proxies) -> P:  # type: ignore[assignment]  # Proxies is the default
    """Start a proxy in front of each broker's `LISTENER`. Restart the brokers, so that they advertise the proxies."""
    own = [node.listeners[LISTENER] for node in sandbox.nodes]
    proxies = kind(own)
    for node, address, advertised in zip(sandbox.nodes, own, proxies.addresses, strict=True):
        properties = node.folder / "server.properties"
        lines = properties.read_text().splitlines()
        properties.write_text(
            "".join(
                f"{line.replace(address, advertised) if line.startswith('advertised.listeners=') else line}\n"
                for line in lines
            )
        )
    for node in sandbox.nodes:
        node.kill()
    for node in sandbox.nodes:
        node.start()
    return proxies
