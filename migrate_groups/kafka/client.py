"""Open kafka-python's admin client within a time, and say why where it can't be.

By itself kafka-python 3.0 tries one bootstrap server after the other until its time-out and then says only that; a
server that hangs may take all of that time, or, in its TLS handshake, hang for good (measured).
"""

from __future__ import annotations

import os
import re
import ssl
import time
from typing import Any

import kafka.errors as kafka_errors
from kafka import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from migrate_groups.errors import ClusterUnavailable, NotAuthorized
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.security import Security
from migrate_groups.kafka.listener import mismatch


class Unreachable(ClusterUnavailable):
    """No bootstrap server could be reached. One may be soon."""


class CertificateRefused(kafka_errors.KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """A broker's certificate is not to be trusted, or not for its name. Trying again will not help."""


_HOPELESS = (kafka_errors.SaslAuthenticationFailedError, CertificateRefused)


def open_client(config: ClientConfig, seconds: float) -> KafkaAdminClient:
    """Return an admin client that is connected, within these seconds.

    Each bootstrap server gets an equal share of the time that is left, in turn. Raises `Unreachable`; `NotAuthorized`
    where the principal is refused, `ClusterUnavailable` where TLS or SASL do not fit; `InvalidInput` where a
    certificate or key can't be used.
    """
    deadline = time.monotonic() + seconds
    opened: list[KafkaNetClient] = []

    def net_client(**configs: Any) -> KafkaNetClient:
        milliseconds = configs["request_timeout_ms"]
        configs["socket_connection_setup_timeout_ms"] = configs["socket_connection_setup_timeout_max_ms"] = milliseconds
        net = NetworkSelector(**configs)
        opened.append(KafkaNetClient(net=net, manager=_Manager(net, **configs)))
        return opened[-1]

    milliseconds = max(1, int(seconds * 1000))
    properties = config.kafka_python() | {"bootstrap_timeout_ms": milliseconds, "request_timeout_ms": milliseconds}
    try:
        return KafkaAdminClient(kafka_client=net_client, **properties)
    except BaseException as error:
        for client in opened:
            client.close()
        if isinstance(error, _BootstrapFailed):
            raise _explained(error, config, deadline) from error
        raise


def refused(error: Exception, security: Security) -> ClusterUnavailable:
    """Return what says that TLS or SASL came to nothing, for an error after which trying again is hopeless."""
    if isinstance(error, CertificateRefused):
        return ClusterUnavailable(f"{_text(error)}; check ssl.truststore, and the name in --bootstrap-server")
    said = _text(error).removeprefix("SaslAuthenticationFailedError: ")
    mechanism = security.login.mechanism if security.login else "SASL"
    return NotAuthorized(f"the cluster refused {security.principal} ({mechanism}): {said}; check the --command-config")


class _BootstrapFailed(kafka_errors.KafkaError):  # type: ignore[misc]
    """What each bootstrap server, as host and port, was found to fail with."""

    def __init__(self, failures: dict[tuple[str, int], Exception]) -> None:
        super().__init__("no bootstrap server could be used")
        self.failures = failures


class _Manager(KafkaConnectionManager):  # type: ignore[misc]
    """Connections that are made within their time, and whose failures keep their reason."""

    async def _do_bootstrap(self, deadline: float) -> bool:
        failures: dict[tuple[str, int], Exception] = {}
        servers = self.cluster.bootstrap_brokers()
        for left, server in zip(range(len(servers), 0, -1), servers, strict=True):
            seconds = max(0.001, (deadline - time.monotonic()) / left)
            try:
                await self.wait_for(self.call_soon(self._bootstrap_from, server.node_id, seconds), seconds * 1000)
            except kafka_errors.KafkaTimeoutError:
                silence = f"nothing within {seconds:.0f} s"
                failures[server.host, server.port] = kafka_errors.KafkaConnectionError(silence)
            except Exception as error:  # noqa: BLE001  the next server may do
                failures[server.host, server.port] = error
                if isinstance(error, kafka_errors.SaslAuthenticationFailedError):
                    break  # one wrong password is enough: accounts get locked
            else:
                self.cluster.start_refresh_loop()
                return True
        raise _BootstrapFailed(failures)

    async def _bootstrap_from(self, node_id: str, seconds: float) -> None:
        connection = self.get_connection(
            node_id,
            timeout_ms=seconds * 1000,
            pop_on_close=False,
            refresh_metadata_on_err=False,
            reset_backoff_on_connect=False,
        )
        try:
            await connection
            await self.cluster.refresh_metadata(node_id)
            if not self.cluster.brokers():
                raise kafka_errors.KafkaConnectionError("it does not know of any broker yet")
        finally:
            self._conns.pop(node_id, connection).close()

    async def _build_transport(self, node: Any, timeout_at: float) -> Any:
        milliseconds = max(1, (timeout_at - time.monotonic()) * 1000)
        try:
            built = self.call_soon(super()._build_transport, node, timeout_at)
            return _last_words_first(await self.wait_for(built, milliseconds))
        except kafka_errors.KafkaConnectionError as error:
            if isinstance(error.__context__, ssl.SSLCertVerificationError):
                where, reason = f"{node.host}:{node.port}", error.__context__.verify_message.rstrip(".")
                raise CertificateRefused(f"the certificate of {where} can't be trusted: {reason}") from error
            raise


def _last_words_first(transport: Any) -> Any:
    """Have a transport hand over what it has read before it says that the connection is closed.

    kafka-python 3.0 throws away what comes together with the end: the reason why a broker refuses a login (measured).
    """
    receive = transport._sock_recv

    def received() -> tuple[bytes, Exception | None]:
        content, error = receive()
        return content, None if content else error  # the next look finds the end again

    transport._sock_recv = received
    return transport


def _explained(error: _BootstrapFailed, config: ClientConfig, deadline: float) -> ClusterUnavailable:
    for failure in error.failures.values():
        if isinstance(failure, _HOPELESS):
            return refused(failure, config.security)
    reasons = []
    for (host, port), failure in error.failures.items():
        found = mismatch(host, port, config.security, deadline - time.monotonic())
        if found:
            return ClusterUnavailable(f"{host}:{port} {found}; check the --command-config")
        reasons.append(f"{host}:{port}: {_text(failure)}")
    return Unreachable(f"no bootstrap server can be reached ({'; '.join(reasons)}); check --bootstrap-server")


def _text(failure: Exception) -> str:
    """Return what a failure says, without the class that kafka-python puts before it."""
    said = str(failure.args[0] if failure.args else failure)
    if number := re.fullmatch(r"(\d+) E[A-Z]+", said):
        return os.strerror(int(number[1]))
    return " ".join(said.split()) or type(failure).__name__
