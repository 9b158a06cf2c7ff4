"""The proxy in front of a broker forwards bytes unchanged, except responses that a test tells it to cut or slow."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.proxy import Proxies


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a server that sends back what it receives."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # the test is over
                    return
                threading.Thread(target=_echo, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield "{}:{}".format(*server.getsockname())


def _echo(connection: socket.socket) -> None:
    with closing(connection):
        while data := connection.recv(1 << 16):
            connection.sendall(data)


def answer(proxies: Proxies, sent: bytes) -> bytes:
    """Send bytes through the proxy to an echo server, and return the answer, which a cut connection makes shorter."""
    host, port = proxies.bootstrap_servers.split(":")
    received = b""
    with socket.create_connection((host, int(port)), timeout=20) as client:
        client.sendall(sent)
        while len(received) < len(sent) and (more := client.recv(1 << 16)):
            received += more
    return received


def test_half_of_a_response_arrives_before_the_connection_ends(address):
    """After ``cut(2)``, the proxy ends the connection in the middle of each of the next two responses.

    Later responses, slow responses, and responses after ``heal()`` are complete.
    """
    proxies = Proxies([address])
    assert answer(proxies, b"whole") == b"whole"
    proxies.cut(2)
    assert [answer(proxies, b"response") for _ in range(3)] == [b"resp", b"resp", b"response"]
    proxies.slow(0.001)
    assert answer(proxies, bytes(1000)) == bytes(1000)
    proxies.cut(1)
    proxies.heal()
    assert answer(proxies, b"whole") == b"whole"


def test_a_server_that_is_down_ends_the_connection():
    """If the broker is down, the proxy ends the client's connection without sending a byte."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        down = "{}:{}".format(*server.getsockname())
    assert answer(Proxies([down]), b"request") == b""
