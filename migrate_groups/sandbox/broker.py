"""Start the sandbox, a throwaway Kafka cluster on this machine, and run Kafka's own tools on it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.sandbox.archive import archive_options
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.node import JVM_OPTIONS, Node, PortTaken, Setup, run_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A Kafka cluster on this machine, with one or more brokers.

    nodes: the brokers, ordered by id. tool_command: the start of a command that runs one of Kafka's tools: Java, its
    options and the class path.
    """

    nodes: tuple[Node, ...]
    tool_command: tuple[str, ...]

    @property
    def node(self) -> Node:
        """The first broker."""
        return self.nodes[0]

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers for clients, as ``host:port,host:port``."""
        return ",".join(node.bootstrap_servers for node in self.nodes)

    @property
    def cluster_id(self) -> str:
        """The cluster id, as the brokers report it."""
        return self.node.cluster_id

    def run_tool(
        self, main_class: str, *arguments: str, bootstrap_server: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own tools on this cluster, and return its output and exit code.

        bootstrap_server: by default the PLAINTEXT listeners of all brokers. Several of Kafka's tools exit with 0 when
        they fail. Raises ``subprocess.TimeoutExpired`` after ``timeout`` seconds.
        """
        return subprocess.run(
            [
                *self.tool_command,
                main_class,
                "--bootstrap-server",
                bootstrap_server or self.bootstrap_servers,
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def wait(self) -> None:
        """Wait until every broker has ended, then raise `ClusterUnavailable`. This method never returns."""
        ends = [node.kept.hear(None) for node in self.nodes]
        raise ClusterUnavailable(f"Kafka has ended ({ends[-1]}): run the command again")


@contextmanager
def start_sandbox(
    jars: KafkaJars,
    *,
    java: Java,
    settings: Mapping[str, str] = MappingProxyType({}),
    timeout: float = 60,
    listeners: Mapping[str, str] = MappingProxyType({}),
    scram_credentials: Sequence[str] = (),
    brokers: int = 1,
) -> Iterator[Sandbox]:
    """Run a Kafka cluster for the length of a ``with`` block, which begins when all brokers answer.

    When the block or this process ends, the brokers are killed and their data is deleted.

    settings: further properties of ``server.properties``. listeners: the security protocol of each listener besides
    PLAINTEXT, by listener name. scram_credentials: SCRAM users, as for ``kafka-storage format --add-scram``.

    Raises `ClusterUnavailable` if a broker does not answer within ``timeout`` seconds.
    """
    archive = archive_options(jars, java=java)
    with ExitStack() as running:
        for attempt in Retrying(retry=retry_if_exception_type(PortTaken), stop=stop_after_attempt(3), reraise=True):
            with attempt:
                nodes = running.enter_context(
                    run_nodes(
                        brokers,
                        jars,
                        java=java,
                        setup=Setup(settings=settings, listeners=listeners, scram_credentials=scram_credentials),
                        timeout=timeout,
                        jvm_options=archive,
                    )
                )
        command = (str(java.executable), *JVM_OPTIONS, *jars.jvm_options, *archive, "-cp", jars.classpath)
        yield Sandbox(nodes=nodes, tool_command=command)
