"""Open kafka-python's admin client within a time limit; if that fails, raise an error with the reason."""

from __future__ import annotations

import os
import re
import time

import kafka.errors as kafka_errors

from migrate_groups.errors import ClusterUnavailable, NotAuthorized
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.listener import HTTP, mismatch
from migrate_groups.kafka.private import BootstrapFailed, CertificateRefused, Client


class Unreachable(ClusterUnavailable):
    """No bootstrap server can be reached at the moment; a later attempt may succeed."""


# kafka-python refuses a request if so many wait for an answer on its connection; its default is 5.
_MOST_IN_FLIGHT = 1000
_HOPELESS = (kafka_errors.SaslAuthenticationFailedError, CertificateRefused)


def open_client(config: ClientConfig, seconds: float) -> Client:
    """Return a connected client of kafka-python, or raise an error after at most ``seconds``.

    Raises `Unreachable` if no bootstrap server can be reached; `NotAuthorized` if the login fails; `ClusterUnavailable`
    if a broker's certificate, TLS or SASL does not fit ``config``; `InvalidInput` if a certificate or key in ``config``
    can't be used.
    """
    deadline = time.monotonic() + seconds
    milliseconds = max(1, int(seconds * 1000))
    properties = config.kafka_python() | {
        "bootstrap_timeout_ms": milliseconds,
        "request_timeout_ms": milliseconds,
        "max_in_flight_requests_per_connection": _MOST_IN_FLIGHT,
    }
    try:
        return Client(**properties)
    except BootstrapFailed as error:
        raise _explained(error, config, deadline) from error


def refused(error: Exception, config: ClientConfig) -> ClusterUnavailable:
    """Return the error to raise if a broker's certificate is not trusted, or if a broker refuses the login.

    The result is `ClusterUnavailable` for a `CertificateRefused`, and `NotAuthorized` for kafka-python's
    ``SaslAuthenticationFailedError``.
    """
    if isinstance(error, CertificateRefused):
        where = config.option("bootstrap-server")
        return ClusterUnavailable(f"{_text(error)}; check ssl.truststore, and the host name in {where}")
    said = _text(error).removeprefix("SaslAuthenticationFailedError: ")
    mechanism = config.security.login.mechanism if config.security.login else "SASL"
    where = config.option("command-config")
    return NotAuthorized(f"login as {config.principal} ({mechanism}) failed: {said}; check {where}")


def _explained(error: BootstrapFailed, config: ClientConfig, deadline: float) -> ClusterUnavailable:
    for failure in error.failures.values():
        if isinstance(failure, _HOPELESS):
            return refused(failure, config)
    reasons = []
    for (host, port), failure in error.failures.items():
        found = mismatch(host, port, config.security, deadline - time.monotonic())
        if found:
            also = "" if config.side == "target" else " and --property"
            place = config.option("bootstrap-server") if found == HTTP else f"{config.option('command-config')}{also}"
            return ClusterUnavailable(f"{host}:{port} {found}; check {place}")
        reasons.append(f"{host}:{port}: {_text(failure)}")
    which = f"no bootstrap server{f' of {config.cluster}' if config.side else ''}"
    where = config.option("bootstrap-server")
    return Unreachable(f"{which} can be reached ({'; '.join(reasons)}); check {where}")


def _text(failure: Exception) -> str:
    """Return the text of a connection failure on one line, without the class name that kafka-python puts before it."""
    said = str(failure.args[0] if failure.args else failure)
    if number := re.fullmatch(r"(\d+) E[A-Z]+", said):
        return os.strerror(int(number[1]))
    return " ".join(said.split()) or type(failure).__name__
