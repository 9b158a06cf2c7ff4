"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from migrate_groups.errors import UsageError
from migrate_groups.text import is_unicode, some

BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        envvar="MIGRATE_GROUPS_BOOTSTRAP_SERVER",
        help="host:port[,host:port…] of the cluster; default: bootstrap.servers of --command-config.",
        show_default=False,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        envvar="MIGRATE_GROUPS_COMMAND_CONFIG",
        help="A client.properties, as Kafka's own tools take it: security.protocol, sasl.jaas.config and so on.",
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="KEY=VALUE",
        help="Overrules --command-config; may be repeated. Secrets: in MIGRATE_GROUPS_PROPERTIES, a properties text.",
    ),
]
Mirror = Annotated[
    str | None,
    typer.Option(
        "--mirror",
        metavar="URL",
        envvar="MIGRATE_GROUPS_MAVEN_MIRROR",
        help="A Maven repository to fetch from instead of Maven Central.",
    ),
]
Timeout = Annotated[
    str,
    typer.Option("--timeout", envvar="MIGRATE_GROUPS_TIMEOUT", help="How long one request may take, for instance 60s."),
]
Groups = Annotated[list[str] | None, typer.Argument(metavar="GROUP...", help="Consumer groups.", show_default=False)]
GroupOption = Annotated[list[str] | None, typer.Option("--group", help="A consumer group; may be repeated.")]
InputFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A snapshot (.csv, .parquet), a kafka-consumer-groups CSV, or - for stdin."),
]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="OUT", help="Where to write: .csv or .parquet, or - for CSV on stdout."),
]
CsvOutput = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT", help="Where to write: a .csv, or - for stdout.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an output file that exists already.")]
TimeLag = Annotated[
    bool, typer.Option("--time-lag", help="Lag as time too: the age of the oldest record that is left to read.")
]
TopicGlobs = Annotated[list[str] | None, typer.Option("--topic", help="A topic or glob such as 'payments.*'.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and its checks; write nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]
Settle = Annotated[
    str, typer.Option("--settle", help="How long the group must be quiet, for instance 10s; 0s is none.")
]


def all_groups(arguments: list[str] | None, option: list[str] | None) -> list[str]:
    """Return the groups given as arguments and with ``--group``, each once.

    Raises `UsageError` if no group is given, or if a name is empty or not UTF-8.
    """
    groups = list(dict.fromkeys([*(arguments or []), *(option or [])]))
    if not groups:
        raise UsageError("no group given; name at least one")
    if "" in groups:
        raise UsageError("a group name is empty")
    wrong = [group for group in groups if not is_unicode(group)]
    if wrong:
        raise UsageError(f"group {some(wrong)} is no UTF-8 text; Kafka has no such name")
    return groups
