"""`ClientConfig`: the settings of a connection to Kafka, as configuration for kafka-python and for confluent-kafka."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from migrate_groups.errors import UsageError
from migrate_groups.kafka.credentials.security import PLAINTEXT, Security

_ADDRESS = re.compile(r"(?:\[([^\s\0\[\]]+)\]|([^\s\0\[\]]+)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The bootstrap servers, security settings and time-out of a connection to Kafka. Its ``repr`` contains no secret.

    bootstrap_servers: ``host:port[,host:port…]``. timeout: seconds for one request, including its retries. side:
    ``source`` or ``target`` if a command connects to two clusters; else empty. Raises `UsageError` if there is no
    bootstrap server, or if one is not ``host:port``.
    """

    bootstrap_servers: str
    timeout: float = 60.0
    security: Security = PLAINTEXT
    side: Literal["", "source", "target"] = ""
    client_id: str = "migrate-groups"

    def __post_init__(self) -> None:
        if not self.addresses():
            raise UsageError(f"no bootstrap server: pass {self.option('bootstrap-server')} host:port")

    @property
    def cluster(self) -> str:
        """A name of the cluster for texts: ``the cluster``, or ``the source cluster`` if there are two."""
        return f"the {self.side} cluster" if self.side else "the cluster"

    @property
    def principal(self) -> str:
        """The client's principal, such as ``User:alice`` or ``User:alice on the source cluster``."""
        return f"{self.security.principal}{f' on {self.cluster}' if self.side else ''}"

    def option(self, name: str) -> str:
        """Return the command-line option for this cluster: ``--NAME``, or ``--to-NAME`` for the target cluster."""
        return f"--to-{name}" if self.side == "target" else f"--{name}"

    def addresses(self) -> list[tuple[str, int]]:
        """Return host and port of each bootstrap server. Raises `UsageError` if one is not ``host:port``."""
        return [self._address(part.strip()) for part in self.bootstrap_servers.split(",") if part.strip()]

    def kafka_python(self) -> dict[str, Any]:
        """Return these settings as the configuration of kafka-python's admin client, secrets included.

        Raises `InvalidInput` if a certificate or key can't be used.
        """
        milliseconds = int(self.timeout * 1000)
        return {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "client_id": self.client_id,
            "request_timeout_ms": milliseconds,
            "bootstrap_timeout_ms": milliseconds,
            **self.security.kafka_python(),
        }

    def confluent(self) -> dict[str, Any]:
        """Return these settings as the configuration of confluent-kafka's clients, secrets included.

        Raises `ClusterUnavailable` if an OAuth token can't be fetched, or if the login uses Kerberos.
        """
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": "migrate-groups-second",
            **self.security.confluent(),
        }

    def _address(self, text: str) -> tuple[str, int]:
        if "@" in text:  # the message does not quote the text, because it may contain a password
            where = self.option("command-config")
            raise UsageError(f"a bootstrap server has an @: pass host:port, and put user and password into {where}")
        if ";" in text or "://" in text:
            advice = "separate brokers with commas" if ";" in text else "leave out the protocol"
            raise UsageError(f"not a bootstrap server: {text[:300]!r}: {advice}; expected host:port[,host:port]")
        match = _ADDRESS.fullmatch(text)
        host, port = (match[1] or match[2], int(match[3])) if match else ("", 0)
        try:
            host.encode("idna")  # as the resolver does, which fails if a label is empty or too long
        except UnicodeError:
            host = ""
        if not host or not 0 < port < 65536:
            raise UsageError(f"not a bootstrap server: {text[:300]!r}; expected host:port, for instance localhost:9092")
        return host, port
