"""The command that runs a Kafka on this machine: sandbox."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import kafka_here, options
from migrate_groups.cli.console import show, talk
from migrate_groups.cli.documents import print_document
from migrate_groups.cli.kafka_here import find_kafka
from migrate_groups.sandbox.versions import DEFAULT_VERSION

if TYPE_CHECKING:
    from migrate_groups.sandbox.broker import Sandbox
    from migrate_groups.show.documents import SandboxDocument


def sandbox(
    kafka_version: kafka_here.KafkaVersion = DEFAULT_VERSION,
    kafka_home: kafka_here.KafkaHome = None,
    mirror: kafka_here.Mirror = None,
    brokers: Annotated[
        int, typer.Option("--brokers", min=1, max=9, help="How many brokers. Of three, any one may fail and come back.")
    ] = 1,
    output_format: options.Format = "table",
) -> None:
    """Run a Kafka on this machine until Ctrl-C.

    Its data is deleted when it ends. The first line on stdout is its address. It needs Java 17 or later.

    Example: migrate-groups sandbox
    """
    jars, java = find_kafka(version=kafka_version, home=kafka_home, mirror=mirror)
    from migrate_groups.sandbox.broker import start_sandbox

    talk(f"starting Kafka {jars.version} (the very first start takes some seconds more)")
    with start_sandbox(jars, java=java, brokers=brokers) as kafka:
        for node in kafka.nodes if brokers > 1 else ():
            talk(f"broker {node.node_id} is {node.bootstrap_servers}, process {node.pid}")
        talk(
            f"Kafka {jars.version} runs until you press Ctrl-C; its data goes with it. In another terminal, say:",
            f"  migrate-groups snapshot GROUP -o before.csv --bootstrap-server {kafka.bootstrap_servers}",
        )
        document = _document(kafka, jars.version) if output_format == "json" else None
        # Ctrl-C is the way to stop the sandbox, so once the address is printed, an interrupt is not a failure.
        with suppress(KeyboardInterrupt):
            if document is None:
                show(kafka.bootstrap_servers)
            else:
                print_document(document)
            kafka.wait()


def _document(kafka: Sandbox, version: str) -> SandboxDocument:
    from migrate_groups.show.documents import Broker, SandboxDocument

    brokers = tuple(
        Broker(node_id=node.node_id, bootstrap_servers=node.bootstrap_servers, pid=node.pid) for node in kafka.nodes
    )
    return SandboxDocument(bootstrap_servers=kafka.bootstrap_servers, kafka_version=version, brokers=brokers)
