"""One connection to the cluster through kafka-python: bounded attempts, and Kafka's errors in this package's words."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import kafka.errors as kafka_errors
import tenacity
from kafka import KafkaAdminClient

from migrate_groups.cluster.client_config import ClientConfig
from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, NotAuthorized

T = TypeVar("T")

# A new client for each attempt: kafka-python keeps a coordinator that has moved for the client's life (measured).
_RETRIABLE = (kafka_errors.RetriableError, OSError)
_CONNECT_SECONDS = 5.0


class KafkaConnection:
    """Runs coroutines against a `KafkaAdminClient`, with a new client for each attempt, until the time-out.

    Raises `ClusterUnavailable` from the constructor where no bootstrap server accepts a connection: kafka-python
    would try again until its time-out and not say why.
    """

    def __init__(self, config: ClientConfig) -> None:
        _check_that_somebody_listens(config)
        self._config = config
        self._client: KafkaAdminClient | None = None

    def run(self, request: Callable[[KafkaAdminClient], Awaitable[T]], *, doing: str) -> T:
        """Return what ``request`` returns; ``doing`` says in the error what was tried.

        Only for requests that may be sent twice. Raises `ClusterUnavailable` or `NotAuthorized`.
        """
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_RETRIABLE),
            stop=tenacity.stop_after_delay(self._config.timeout),
            wait=tenacity.wait_exponential(multiplier=0.05, max=1.0),
            after=lambda _: self.close(),
            reraise=True,
        )
        try:
            result: T = attempts(self._attempt, request)
        except (kafka_errors.KafkaError, OSError) as error:
            raise explain(error, doing) from error
        return result

    def run_once(self, request: Callable[[KafkaAdminClient], Awaitable[T]]) -> T:
        """Return what ``request`` returns, from one attempt. Raises kafka-python's own errors: for writes."""
        try:
            return self._attempt(request)
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Close the client; the next request opens a new one."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _attempt(self, request: Callable[[KafkaAdminClient], Awaitable[T]]) -> T:
        if self._client is None:
            self._client = KafkaAdminClient(**self._config.kafka_python())
        result: T = self._client._manager.run(request, self._client)
        return result


def explain(error: BaseException, doing: str) -> MigrateGroupsError:
    """Turn an error of kafka-python into one of this package; ``doing`` completes "while …"."""
    if isinstance(error, kafka_errors.AuthorizationError):
        return NotAuthorized(f"not authorized: {_name(error)} while {doing}; grant this principal the missing ACL")
    if isinstance(error, kafka_errors.UnsupportedVersionError | kafka_errors.IncompatibleBrokerVersion):
        return ClusterUnavailable(f"these brokers are too old for {doing}: {error}")
    return ClusterUnavailable(f"the cluster did not answer while {doing}: {_text(error)}")


def _name(error: BaseException) -> str:
    return type(error).__name__.removesuffix("Error")


def _text(error: BaseException) -> str:
    return " ".join(str(error).split()) or _name(error)


def _check_that_somebody_listens(config: ClientConfig) -> None:
    refusals = []
    for host, port in config.addresses():
        try:
            socket.create_connection((host, port), timeout=min(_CONNECT_SECONDS, config.timeout)).close()
        except OSError as error:
            refusals.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    raise ClusterUnavailable(f"no bootstrap server can be reached ({'; '.join(refusals)}); check --bootstrap-server")


def in_kafkas_words(error_class: Any) -> str:
    """Return the name of one of kafka-python's error classes as Kafka's documentation spells it."""
    message: str = getattr(error_class, "message", "") or error_class.__name__
    return message
