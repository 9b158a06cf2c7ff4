"""A worker of Kafka Connect with Kafka's file sink, which writes the value of each record as a line of a file."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from migrate_groups.sandbox.fetch import Fetch
from migrate_groups.sandbox.jars import user_cache
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.kept import Ended, KeptServer, ServerStarted, keep
from migrate_groups.sandbox.node import JVM_OPTIONS
from tests.support.broker_world import until

_SECONDS = 120.0
_SETTINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "scheduled.rebalance.max.delay.ms": "0",
    "plugin.discovery": "service_load",
}


class Refused(Exception):
    """A worker has refused a request. The text begins with the HTTP status."""


def connect_jars(java: Java, version: str, mirror: str | None) -> tuple[Path, ...]:
    """Return the jars of a Connect worker and of the file sink; download them first if they are missing."""

    def retrieve(ivy: Any, new: Path) -> set[str]:
        ivy.retrieve("org.apache.kafka", "connect-runtime", version, new, transitive=True)
        ivy.retrieve("org.apache.kafka", "connect-file", version, new)
        return {f"connect-runtime-{version}", f"connect-file-{version}"}

    return Fetch(java=java, mirror=mirror).jars(user_cache() / "kafka" / f"connect-{version}", "Connect", retrieve)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker of Kafka Connect in distributed mode, and requests to its REST API."""

    kept: KeptServer
    port: int

    def request(self, method: str, path: str, body: bytes | object = None) -> Any:
        """Send a request; return the JSON of the answer. Raises `Refused` if the worker refuses it."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(connection):
            connection.request(method, f"/connectors{path}", data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        if answer.status >= 400:
            raise Refused(f"{answer.status} {content.decode()}")
        return json.loads(content or b"null")

    def create(self, name: str, topics: Sequence[str], file: Path, *, state: str = "RUNNING", **config: str) -> None:
        """Create a connector that writes topics to a file, with one task. state: its initial state."""
        given = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": "1",
            "topics": ",".join(topics),
            "file": str(file),
            **config,
        }
        self.request("POST", "", {"name": name, "config": given, "initial_state": state})
        self.await_state(name, state)

    def change(self, name: str, request: str, state: str) -> None:
        """Stop, pause or resume a connector; return when it and its tasks have the state."""
        self.request("PUT", f"/{name}/{request}")
        self.await_state(name, state)

    def await_state(self, name: str, state: str) -> None:
        """Wait until a connector has the state, and its tasks too. A STOPPED connector has no tasks."""
        until(lambda: self._states(name) == ({state} if state == "STOPPED" else {state, f"task {state}"}), seconds=60)

    def _states(self, name: str) -> set[str]:
        try:
            status = self.request("GET", f"/{name}/status")
        except Refused:  # not known yet
            return set()
        return {status["connector"]["state"]} | {f"task {each['state']}" for each in status["tasks"]}

    def offsets(self, name: str) -> dict[tuple[str, int], int]:
        """Return the offsets of a sink as Connect shows them, by topic and partition."""
        shown = self.request("GET", f"/{name}/offsets")["offsets"]
        return {
            (each["partition"]["kafka_topic"], each["partition"]["kafka_partition"]): each["offset"]["kafka_offset"]
            for each in shown
        }

    def kill(self) -> None:
        """Kill the worker, as ``kill -9`` does, and wait until it has ended."""
        os.kill(self.kept.server_pid, signal.SIGKILL)
        assert isinstance(self.kept.hear(_SECONDS), Ended)

    def start_again(self) -> None:
        """Start the worker again after it was killed; return when its REST API answers."""
        self.kept.serve_again()
        self.await_start()

    def await_start(self) -> None:
        assert isinstance(started := self.kept.hear(_SECONDS), ServerStarted), started
        until(self._answers, seconds=_SECONDS)

    def _answers(self) -> bool:
        ended = self.kept.hear(0)
        assert ended is None, ended
        try:
            return self.request("GET", "") is not None
        except (OSError, Refused):
            return False


@contextmanager
def connect_worker(
    jars: Sequence[Path], bootstrap_servers: str, name: str, *, java: Java, settings: Mapping[str, str]
) -> Iterator[Worker]:
    """Run a worker of Kafka Connect for the length of a ``with`` block.

    name: of the group of its workers, and the beginning of the names of its topics. settings: further properties.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": name,
        "listeners": f"http://127.0.0.1:{port}",
        **{f"{each}.storage.topic": f"{name}-{each}" for each in ("config", "offset", "status")},
        **_SETTINGS,
        **settings,
    }
    properties = "".join(f"{key}={value}\n" for key, value in given.items())
    classpath = os.pathsep.join(map(str, jars))
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    java_command = [str(java.executable), *JVM_OPTIONS, logging, "-cp", classpath]
    serve = [*java_command, "org.apache.kafka.connect.cli.ConnectDistributed", "worker.properties"]
    with keep(files={"worker.properties": properties}, prepare=[], serve=serve) as kept:
        worker = Worker(kept=kept, port=port)
        worker.await_start()
        yield worker
