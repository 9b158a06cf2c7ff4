"""The command that runs a local Kafka cluster, or two clusters and a mirror between them: sandbox."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import kafka_here, options
from migrate_groups.cli.console import show_as, talk
from migrate_groups.cli.kafka_here import find_kafka, find_mirror_maker
from migrate_groups.errors import UsageError
from migrate_groups.sandbox.versions import DEFAULT_VERSION

if TYPE_CHECKING:
    from migrate_groups.sandbox.restart import Servers
    from migrate_groups.show.result import Result


def sandbox(
    kafka_version: kafka_here.KafkaVersion = DEFAULT_VERSION,
    kafka_home: kafka_here.KafkaHome = None,
    maven_mirror: kafka_here.MavenMirror = None,
    brokers: Annotated[
        int, typer.Option("--brokers", min=1, max=9, help="How many brokers. Of three, any one may fail.")
    ] = 1,
    mirror: Annotated[
        bool,
        typer.Option(
            "--mirror",
            help="Run two clusters, A and B, and a MirrorMaker 2 that copies topics from A to B.",
        ),
    ] = False,
    output_format: options.Format = "table",
) -> None:
    """Run a Kafka on this machine until Ctrl-C.

    Its data is deleted when it ends. The first line on stdout is its address; with --mirror the second line is that of
    B. If you kill a broker, Enter starts it again with its data. It needs Java 17 or later.

    Example: migrate-groups sandbox
    """
    if mirror and brokers > 1:
        raise UsageError("--mirror runs two clusters of one broker each: leave out --brokers")
    kafka, java = find_kafka(version=kafka_version, home=kafka_home, maven_mirror=maven_mirror)
    from migrate_groups.sandbox.restart import addresses
    from migrate_groups.show import short_results

    if mirror:
        maker = find_mirror_maker(kafka, java, home=kafka_home, maven_mirror=maven_mirror)
        from migrate_groups.sandbox.mirrored import CAREFUL, start_mirrored

        talk(f"starting two Kafka {kafka.version} and a MirrorMaker 2")
        with start_mirrored(kafka, maker, java=java, settings=CAREFUL) as both:
            source, target = both.source.bootstrap_servers, both.target.bootstrap_servers
            servers: Servers = {
                "cluster A": both.source.node,
                "cluster B": both.target.node,
                "MirrorMaker 2": both.maker,
            }
            talk(
                *addresses(servers),
                "MirrorMaker 2 copies from A to B, from some 20 s on, until you press Ctrl-C; all data goes with them. "
                "Until it copies, compare finds no such partition on the target. In another terminal, say:",
                f"  migrate-groups compare GROUP --bootstrap-server {source} --to-bootstrap-server {target}",
            )
            _run(short_results.sandbox(both.source, kafka.version, both.target), output_format, servers)
        return
    from migrate_groups.sandbox.broker import start_sandbox

    talk(f"starting Kafka {kafka.version} (the very first start takes some seconds more)")
    with start_sandbox(kafka, java=java, brokers=brokers) as running:
        servers = {f"broker {node.node_id}": node for node in running.nodes}
        talk(
            *(addresses(servers) if brokers > 1 else ()),
            f"Kafka {kafka.version} runs until you press Ctrl-C; its data goes with it. In another terminal, say:",
            f"  migrate-groups snapshot GROUP -o before.csv --bootstrap-server {running.bootstrap_servers}",
        )
        _run(short_results.sandbox(running, kafka.version), output_format, servers)


def _run(shown: Result, output_format: str, servers: Servers) -> None:
    """Print the addresses of the brokers, and wait for Ctrl-C."""
    from migrate_groups.sandbox.restart import serve

    with suppress(KeyboardInterrupt):  # no failure, because it is the way to stop the sandbox
        show_as(output_format, shown)
        serve(servers, sys.stdin, talk)
