"""Find out which security protocol a listener speaks, to explain why a client could not connect.

A listener gives no reason to a client that speaks another protocol: it closes the connection, and a TLS listener sends
an alert first (docs/kafka-behaviour.md#kafka-python). So this module sends a SaslHandshake without TLS, because each
kind of listener answers it differently.
"""

from __future__ import annotations

import socket
import ssl
import struct

from migrate_groups.kafka.credentials.security import Security

_SECONDS = 2.0
_TLS_ALERT = 0x15
_CORRELATION_ID = 7
_ILLEGAL_SASL_STATE, _UNSUPPORTED_SASL_MECHANISM = 34, 33
# SaslHandshake (key 17, version 1) with an unknown mechanism: a header, the client id and the mechanism.
_QUESTION = struct.pack(">hhih1sh1s", 17, 1, _CORRELATION_ID, 1, b"?", 1, b"?")


def mismatch(host: str, port: int, security: Security, seconds: float) -> str | None:
    """Return how a listener's TLS or SASL differs from ``security``, as text after its address; None if not known."""
    try:
        plain = _ask(host, port, seconds)
        if plain[:1] == bytes([_TLS_ALERT]):
            if not security.tls:
                return f"speaks TLS, and security.protocol is {security.protocol}"
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
            return f"does not speak TLS, and security.protocol is {security.protocol}"
        return _sasl(plain, security)
    except ssl.SSLError as error:
        return f"broke TLS off ({error.reason}): it refuses the keystore's certificate, or wants one"
    except OSError:
        return None


def _ask(host: str, port: int, seconds: float, context: ssl.SSLContext | None = None) -> bytes:
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
        return f"does not ask who a client is, and security.protocol is {security.protocol}"
    if error != _UNSUPPORTED_SASL_MECHANISM:
        return None
    mechanisms = _strings(content[10:])
    if security.login is None:
        return f"takes SASL ({', '.join(mechanisms)}), and security.protocol is {security.protocol}"
    if security.login.mechanism not in mechanisms:
        return f"takes SASL with {', '.join(mechanisms)}, and sasl.mechanism is {security.login.mechanism}"
    return None


def _strings(content: bytes) -> list[str]:
    """Return the strings of an array in Kafka's protocol, sorted."""
    (count,), at, strings = struct.unpack_from(">i", content), 4, []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", content, at)
        strings.append(content[at + 2 : at + 2 + length].decode())
        at += 2 + length
    return sorted(strings)
