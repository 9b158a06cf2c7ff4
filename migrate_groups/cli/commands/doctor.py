"""The command that says what a cluster offers, and tries a hand-over on it: doctor."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options, written
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import confirm, show_as, talk
from migrate_groups.cli.terminal import Terminal
from migrate_groups.cli.verbose import shown_logs
from migrate_groups.errors import Refused, UsageError
from migrate_groups.snapshots.times import parse_duration

_CLIENTS = ("kafka-python", "confluent-kafka")


def doctor(
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Also make a topic and two groups, hand over, roll back and hand back between these groups, and "
            "delete all of it. Asks first.",
        ),
    ] = False,
    settle: options.Settle = "10s",
    yes: options.Yes = False,
    *,
    output_format: options.TableFormat = "table",
    connection: Connection,
) -> None:
    """Say what this tool can do on a cluster, and why not the rest.

    It logs in with both clients, and reads what the brokers offer and what the principal may do. Without --write it
    writes nothing. The output has no secret, so that you can send it on.

    Example: migrate-groups doctor --bootstrap-server localhost:9092
    """
    quiet = parse_duration(settle, "--settle")
    if write and not (yes or sys.stdin.isatty()):
        raise UsageError("stdin is not a terminal: pass --yes to write, or leave out --write to look")
    from migrate_groups import __version__
    from migrate_groups.api.cluster import Cluster
    from migrate_groups.api.trial import throwaway_name, try_out
    from migrate_groups.show import doctor as views

    trial = None
    with shown_logs(connection.verbose), Cluster(connection.config(), Terminal(yes=True), SystemClock()) as cluster:
        found = cluster.doctor()
        if write:
            name = throwaway_name()
            talk(f"topic {name} and groups {name}.old and {name}.new will be made, and deleted at the end")
            if not (yes or confirm("Make them, and move offsets between these groups?")):
                raise Refused("the answer was no; nothing was written")
            written.so_far.set("what the trial made is deleted, unless a line above says what is left")
            trial = try_out(cluster, settle=quiet, name=name)
            if trial.error is None:  # now the offsets topic has a record
                found = cluster.doctor()
    versions = {"migrate-groups": __version__} | {client: version(client) for client in _CLIENTS}
    show_as(output_format, views.doctor(found, trial, versions))
    if trial is not None:
        trial.check()
