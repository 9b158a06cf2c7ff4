"""Find out which security protocol a listener speaks, to explain why a client could not connect."""

from __future__ import annotations

import socket
import ssl
import struct

from migrate_groups.kafka.credentials.security import Security

HTTP = "is not a Kafka listener: it speaks HTTP"
"""The result of `mismatch` for the port of an HTTP server."""
_SECONDS = 2.0
_TLS_ALERT = 0x15
_CORRELATION_ID = 7
_ILLEGAL_SASL_STATE, _UNSUPPORTED_SASL_MECHANISM = 34, 33
# A listener closes the connection of a client with another security protocol without a reason; a TLS listener sends an
# alert first (docs/kafka-behaviour.md#kafka-python). But each kind of listener answers this request differently.
# SaslHandshake (key 17, version 1) with an unknown mechanism: a header, the client id and the mechanism.
_QUESTION = struct.pack(">hhih1sh1s", 17, 1, _CORRELATION_ID, 1, b"?", 1, b"?")


def mismatch(host: str, port: int, security: Security, seconds: float) -> str | None:
    """Connect to a listener, and return how its TLS or SASL differs from the client's settings ``security``.

    The result is a text such as ``does not speak TLS, but security.protocol is SSL``. None: no difference was found.
    seconds: how long to wait for each answer; limited to 2 s.
    """
    try:
        plain = _ask(host, port, seconds)
        if plain[:5] == b"HTTP/":
            return HTTP
        if plain[:1] == bytes([_TLS_ALERT]):
            if not security.tls:
                return f"speaks TLS, but security.protocol is {security.protocol}"
            return _sasl(
                _ask(
                    host,
                    port,
                    seconds,
                    security.tls.context(),
                ),
                security,
            )
        if security.tls and _is_answer(plain):
            return f"does not speak TLS, but security.protocol is {security.protocol}"
        return _sasl(plain, security)
    except ssl.SSLError as error:
        return (
            f"closed the TLS connection ({error.reason}): it refuses the certificate of ssl.keystore, or requires one"
        )
    except OSError:
        return HTTP if _speaks_http(host, port, seconds) else None


def _speaks_http(host: str, port: int, seconds: float) -> bool:
    """Send an HTTP request, and return whether the server answers with HTTP."""
    limit = max(0.1, min(_SECONDS, seconds))
    try:
        with socket.create_connection((host, port), timeout=limit) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False


def _ask(host: str, port: int, seconds: float, context: ssl.SSLContext | None = None) -> bytes:
    """Connect to a listener, send a SaslHandshake, and return the first bytes of the answer.

    The result is empty if the listener closes the connection. context: the TLS settings; None: no TLS. seconds: how
    long to wait; limited to 2 s. Raises ``OSError``.
    """
    limit = max(0.1, min(_SECONDS, seconds))
    with socket.create_connection((host, port), timeout=limit) as plain:
        if context is None:
            return _answer(plain)
        with context.wrap_socket(plain, server_hostname=host) as encrypted:
            return _answer(encrypted)


def _answer(connection: socket.socket) -> bytes:
    connection.sendall(struct.pack(">i", len(_QUESTION)) + _QUESTION)
    return connection.recv(4096)


def _is_answer(content: bytes) -> bool:
    return len(content) >= 10 and struct.unpack_from(">i", content, 4) == (_CORRELATION_ID,)


def _sasl(content: bytes, security: Security) -> str | None:
    if not _is_answer(content):
        return None
    (error,) = struct.unpack_from(">h", content, 8)
    if error == _ILLEGAL_SASL_STATE and security.login:
        return f"does not use SASL, but security.protocol is {security.protocol}"
    if error != _UNSUPPORTED_SASL_MECHANISM:
        return None
    mechanisms = _strings(content[10:])
    if security.login is None:
        return f"requires SASL ({', '.join(mechanisms)}), but security.protocol is {security.protocol}"
    if security.login.mechanism not in mechanisms:
        return f"supports SASL with {', '.join(mechanisms)}, but sasl.mechanism is {security.login.mechanism}"
    return None


def _strings(content: bytes) -> list[str]:
    """Decode an array of strings in Kafka's protocol, and return the strings, sorted."""
    (count,), at, strings = struct.unpack_from(">i", content), 4, []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", content, at)
        strings.append(content[at + 2 : at + 2 + length].decode())
        at += 2 + length
    return sorted(strings)
