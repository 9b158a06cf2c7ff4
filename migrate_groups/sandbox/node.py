"""One Kafka process (broker and controller) on free ports of 127.0.0.1, from its settings to its first answer."""

from __future__ import annotations

import base64
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.keeper import LOG
from migrate_groups.sandbox.kept import Ended, Kept, Started, end_of_log, keep

HOST = "127.0.0.1"
# For a JVM that is to be there soon rather than be fast later. -Xlog:disable: what the JVM says of a class-data
# archive that it can't use would be on stdout.
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m", "-Xlog:disable")


class PortTaken(ClusterUnavailable):
    """Somebody else took a port between its choice and Kafka's start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Kafka process that answers; ``pid`` is Java's, ``folder`` has its data and log.

    ``bootstrap_servers`` is the address of its PLAINTEXT listener, ``listeners`` has those of the others, by name.
    """

    bootstrap_servers: str
    listeners: Mapping[str, str]
    cluster_id: str
    folder: Path
    pid: int
    kept: Kept


def server_properties(
    *, addresses: Mapping[str, str], protocols: Mapping[str, str], settings: Mapping[str, str]
) -> str:
    """Return the text of ``server.properties`` for a small, quick Kafka; ``settings`` overrule what is here.

    ``addresses`` are by the name of the listener, CONTROLLER and PLAINTEXT among them, and ``protocols`` those that a
    listener speaks whose name is not one already.
    """
    listeners = {name: f"{name}://{address}" for name, address in addresses.items()}
    spoken = {name: protocols.get(name, name) for name in addresses} | {"CONTROLLER": "PLAINTEXT"}
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{addresses['CONTROLLER']}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": ",".join(each for name, each in listeners.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in spoken.items()),
        "log.dirs": "data",
        # Kafka's own topics: one replica, since there is one broker, and few partitions, which are quicker to make.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "4",
        # Members come and go at once, and a mistyped topic is an error.
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "100",
        "auto.create.topics.enable": "false",
        # Otherwise a start fills 128 MB of the heap.
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
    escaped = ((name, value.replace("\\", "\\\\")) for name, value in (properties | dict(settings)).items())
    return "".join(f"{name}={value}\n" for name, value in escaped)


@contextmanager
def run_node(
    kafka: KafkaJars,
    *,
    java: Java,
    settings: Mapping[str, str],
    timeout: float,
    jvm_options: Sequence[str] = (),
    serve_options: Sequence[str] = (),
    listeners: Mapping[str, str] = MappingProxyType({}),
    scram_credentials: Sequence[str] = (),
) -> Iterator[Node]:
    """Format and start Kafka, and yield it once it answers; at the end it is killed and its folder removed.

    ``timeout`` is in seconds, for all of it. ``serve_options`` are ``jvm_options`` that are not for formatting.
    ``listeners`` and ``scram_credentials``: see `broker.start_sandbox`.

    Raises ClusterUnavailable with the end of Kafka's log if it doesn't start or answer; PortTaken if that is why.
    """
    deadline = time.monotonic() + timeout
    names = ("PLAINTEXT", "CONTROLLER", *listeners)
    addresses = {name: f"{HOST}:{port}" for name, port in zip(names, _free_ports(len(names)), strict=True)}
    # An id may begin with "-": that is why it is one argument with its option.
    cluster_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    command = [str(java.executable), *JVM_OPTIONS, *kafka.jvm_options, *jvm_options, "-Djava.io.tmpdir={folder}"]
    command += ["-cp", kafka.classpath]
    properties = server_properties(addresses=addresses, protocols=listeners, settings=settings)
    scram = [argument for credential in scram_credentials for argument in ("--add-scram", credential)]
    with keep(
        files={"server.properties": properties},
        prepare=[*command, "kafka.tools.StorageTool", "format", f"-t={cluster_id}", "-c", "server.properties", *scram],
        serve=[*command, *serve_options, "kafka.Kafka", "server.properties"],
    ) as kept:
        match kept.hear(deadline - time.monotonic()):
            case Started(folder=folder, pid=pid):
                node = Node(
                    bootstrap_servers=addresses["PLAINTEXT"],
                    listeners={name: addresses[name] for name in listeners},
                    cluster_id=cluster_id,
                    folder=folder,
                    pid=pid,
                    kept=kept,
                )
                _await_answer(node, deadline)
                yield node
            case Ended() as end:
                raise ClusterUnavailable(f"Kafka's storage could not be formatted ({end})")
            case None:
                raise ClusterUnavailable(f"Kafka's storage was not formatted within {timeout:g} s")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def _await_answer(node: Node, deadline: float) -> None:
    """Return when this very cluster answers at its address, and has its broker."""
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
                _ask(node.bootstrap_servers, node.cluster_id)
    except RetryError as error:
        log = (node.folder / LOG).read_text(encoding="utf-8", errors="replace")
        raise ClusterUnavailable(f"Kafka was started and gave no answer ({end_of_log(log)})") from error


def _check_alive(kept: Kept) -> None:
    match kept.hear(0):
        case Ended(log=log) as end if "Address already in use" in log:
            raise PortTaken(f"Kafka found its port taken ({end})")
        case Ended() as end:
            raise ClusterUnavailable(f"Kafka did not start ({end})")


def _ask(address: str, cluster_id: str) -> None:
    """Raise OSError or KafkaException unless the cluster's broker is there.

    With confluent-kafka: it tells the cluster's id on every version of Kafka (kafka-python 3.0.12 fails on 2.8).
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    host, port = address.split(":")
    socket.create_connection((host, int(port)), timeout=1).close()  # librdkafka would log each refusal
    cluster = AdminClient({"bootstrap.servers": address}).list_topics(timeout=2)
    if cluster.cluster_id != cluster_id or not cluster.brokers:
        raise KafkaException(KafkaError(KafkaError.BROKER_NOT_AVAILABLE))
