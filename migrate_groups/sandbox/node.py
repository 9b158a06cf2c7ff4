"""Start Kafka processes, each a broker and a controller, on free ports of 127.0.0.1, and wait until they answer."""

from __future__ import annotations

import base64
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.kept import Ended, KeptServer, ServerStarted, end_of_log, keep
from migrate_groups.sandbox.properties import server_properties
from migrate_groups.sandbox.supervisor import LOG

HOST = "127.0.0.1"
# These options make a JVM start quickly rather than run fast later. Without -Xlog:disable the JVM would report on
# stdout a class-data archive that it can't use.
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m", "-Xlog:disable")
_SECONDS_TO_END = 20.0


class PortTaken(ClusterUnavailable):
    """Another process has taken the port that was chosen for Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Kafka process, broker and controller in one, of a temporary cluster on this machine.

    bootstrap_servers: the address of its PLAINTEXT listener. listeners: the addresses of its other listeners for
    clients, by listener name. folder: for its data and log. kept: the child process that runs Kafka and can start it
    again.
    """

    node_id: int
    bootstrap_servers: str
    listeners: Mapping[str, str]
    cluster_id: str
    folder: Path
    kept: KeptServer

    @property
    def pid(self) -> int:
        """The id of Kafka's process (Java). It changes with each restart."""
        return self.kept.server_pid

    def kill(self) -> None:
        """Kill the process, as ``kill -9`` does, and wait until it has ended.

        Raises `ClusterUnavailable` if it has not ended after 20 s.
        """
        os.kill(self.pid, signal.SIGKILL)
        self._await_end()

    def stop(self) -> None:
        """Stop the broker with SIGTERM, so that it first moves the leadership of its partitions to other brokers.

        If the broker has not ended after 20 s, it is killed.
        """
        os.kill(self.pid, signal.SIGTERM)
        if not isinstance(
            self.kept.hear(_SECONDS_TO_END), Ended
        ):  # the broker does not end if too few controllers are left
            self.kill()

    def hang(self) -> None:
        """Pause the process (SIGSTOP). Its connections stay open, but it does not answer."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue the process after `hang` (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def start(self) -> None:
        """Start the process again after it has ended. Does not wait until the broker answers.

        Raises `ClusterUnavailable` if the process does not start.
        """
        self.kept.serve_again()
        match self.kept.hear(_SECONDS_TO_END):
            case ServerStarted():
                return
            case end:
                raise ClusterUnavailable(f"Kafka could not be started again ({end})")

    def await_answer(self, timeout: float = 60) -> None:
        """Wait until the broker has joined its cluster and answers.

        If another process took Kafka's port, Kafka is started again. Raises `ClusterUnavailable` if Kafka has ended for
        another reason, or does not answer within about ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        for attempt in Retrying(
            retry=retry_if_exception_type(PortTaken), stop=stop_after_delay(timeout), wait=wait_fixed(0.2), reraise=True
        ):
            with attempt:
                if attempt.retry_state.attempt_number > 1:
                    self.start()
                _await_answer(self, deadline)

    def _await_end(self) -> None:
        end = self.kept.hear(_SECONDS_TO_END)
        if not isinstance(end, Ended):
            raise ClusterUnavailable(f"Kafka has not ended: stop process {self.pid}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of all brokers of a temporary cluster.

    settings: properties of ``server.properties`` to add or replace. listeners: the security protocol of each listener
    besides PLAINTEXT, by listener name. scram_credentials: SCRAM users, as for ``kafka-storage format --add-scram``.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, str] = field(default_factory=dict)
    scram_credentials: Sequence[str] = ()


@contextmanager
def run_nodes(
    count: int,
    kafka: KafkaJars,
    *,
    java: Java,
    setup: Setup,
    timeout: float,
    jvm_options: Sequence[str] = (),
    serve_options: Sequence[str] = (),
) -> Iterator[tuple[Node, ...]]:
    """Run a cluster of ``count`` brokers for the length of a ``with`` block, which begins when all brokers answer.

    When the block ends, the brokers are killed and their data is deleted. jvm_options: for the brokers and for the tool
    that formats their storage. serve_options: for the brokers only.

    Raises `PortTaken` if another process took a port; `ClusterUnavailable` if a broker does not answer within
    ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    names = ("PLAINTEXT", "CONTROLLER", *setup.listeners)
    ports = iter(_free_ports(len(names) * count))
    all_addresses = [{name: f"{HOST}:{next(ports)}" for name in names} for _ in range(count)]
    # A cluster id may begin with "-", so that it must be in the same argument as its option.
    cluster_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    command = [str(java.executable), *JVM_OPTIONS, *kafka.jvm_options, *jvm_options, "-Djava.io.tmpdir={folder}"]
    command += ["-cp", kafka.classpath]
    scram = [argument for credential in setup.scram_credentials for argument in ("--add-scram", credential)]
    with ExitStack() as keeping:
        all_kept = [
            keeping.enter_context(
                keep(
                    files={
                        "server.properties": server_properties(
                            node_id=node_id,
                            controllers=[each["CONTROLLER"] for each in all_addresses],
                            addresses=addresses,
                            protocols=setup.listeners,
                            settings=setup.settings,
                        )
                    },
                    prepare=[
                        *[*command, "kafka.tools.StorageTool", "format", f"-t={cluster_id}"],
                        *["-c", "server.properties", *scram],
                    ],
                    serve=[*command, *serve_options, "kafka.Kafka", "server.properties"],
                )
            )
            for node_id, addresses in enumerate(all_addresses, 1)
        ]
        nodes = tuple(
            Node(
                node_id=node_id,
                bootstrap_servers=addresses["PLAINTEXT"],
                listeners={name: addresses[name] for name in setup.listeners},
                cluster_id=cluster_id,
                folder=_formatted(kept, deadline, timeout),
                kept=kept,
            )
            for node_id, (addresses, kept) in enumerate(zip(all_addresses, all_kept, strict=True), 1)
        )
        for node in nodes:
            _await_answer(node, deadline)
        yield nodes


def _formatted(kept: KeptServer, deadline: float, timeout: float) -> Path:
    """Wait until Kafka's storage is formatted and Kafka is started, and return the folder of the storage.

    deadline: a time of `time.monotonic`. timeout: the seconds from the start to the deadline, for the error message.
    Raises `ClusterUnavailable` at the deadline, or if the process ends before.
    """
    match kept.hear(max(0.0, deadline - time.monotonic())):
        case ServerStarted(folder=folder):
            return folder
        case Ended() as end:
            raise ClusterUnavailable(f"Kafka's storage could not be formatted ({end})")
        case None:
            raise ClusterUnavailable(f"Kafka's storage was not formatted within {timeout:g} s: try again")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def _await_answer(node: Node, deadline: float) -> None:
    """Wait until the broker ``node`` answers with its cluster id and node id.

    deadline: a time of `time.monotonic`. Raises `PortTaken` if Kafka has ended because another process took its port;
    `ClusterUnavailable` if Kafka has ended for another reason, or does not answer in time.
    """
    from confluent_kafka import KafkaException

    patience = Retrying(
        retry=retry_if_exception_type((OSError, KafkaException)),
        stop=stop_after_delay(deadline - time.monotonic()),
        wait=wait_fixed(0.02),
    )
    try:
        for attempt in patience:
            with attempt:
                _check_alive(node.kept)
                _ask(node)
    except RetryError as error:
        log = (node.folder / LOG).read_text(encoding="utf-8", errors="replace")
        raise ClusterUnavailable(
            f"Kafka was started but did not answer in time ({end_of_log(log)}): try again"
        ) from error


def _check_alive(kept: KeptServer) -> None:
    match kept.hear(0):
        case Ended(log=log) as end if "Address already in use" in log:
            raise PortTaken(f"another process uses Kafka's port ({end}): try again")
        case Ended() as end:
            raise ClusterUnavailable(f"Kafka did not start ({end})")


def _ask(node: Node) -> None:
    """Raise ``OSError`` or ``KafkaException`` if the broker does not answer with its cluster id and node id."""
    # Not kafka-python, because version 3.0.12 can't read the cluster id of Kafka 2.8.
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    host, port = node.bootstrap_servers.split(":")
    socket.create_connection((host, int(port)), timeout=1).close()  # otherwise librdkafka logs each refused connection
    cluster = AdminClient({"bootstrap.servers": node.bootstrap_servers}).list_topics(timeout=2)
    if cluster.cluster_id != node.cluster_id or node.node_id not in cluster.brokers:
        raise KafkaException(KafkaError(KafkaError.BROKER_NOT_AVAILABLE))
