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
    """A Kafka cluster on this machine, with one or more brokers. A test can make each broker fail.

    nodes: the brokers, ordered by id. tool_command: the first words of a command that runs one of Kafka's tools: Java,
    its options and the class path.
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
        """Run one of Kafka's own tools on this cluster, with the same jars, and return its output and exit code.

        main_class: the Java class of the tool. arguments: the tool's arguments; ``--bootstrap-server`` is added.
        bootstrap_server: the addresses to use; None: the PLAINTEXT listeners of all brokers. Several of Kafka's tools
        exit with 0 when they fail. Raises ``subprocess.TimeoutExpired`` after ``timeout`` seconds.
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

    The brokers are killed and their data is deleted when the block or this process ends.

    jars: the jars of the Kafka version to run. settings: properties that replace or complement those of the sandbox in
    ``server.properties``. timeout: the number of seconds within which all brokers must answer. listeners: the security
    protocol of each listener besides PLAINTEXT, by name; the properties that a listener needs (certificates,
    ``listener.name.…``) belong in ``settings``. scram_credentials: SCRAM users that exist from the first start, written
    as for ``kafka-storage format --add-scram``. brokers: the number of brokers; each is also a controller.

    Raises `ClusterUnavailable`, with the end of Kafka's log, if a broker does not start or does not answer in time.
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
