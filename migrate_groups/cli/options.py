"""Options that several commands share, and functions that check and read their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from migrate_groups.cli.event_log import EventLog
from migrate_groups.errors import UsageError
from migrate_groups.text import is_unicode, some

REVIEW, APPLICATIONS, SAFETY = "Review", "Applications", "Safety"
"""Titles of options in the help of a command, by when one needs them."""

Groups = Annotated[list[str] | None, typer.Argument(metavar="GROUP...", help="Consumer groups.", show_default=False)]
GroupOption = Annotated[
    list[str] | None, typer.Option("--group", metavar="GROUP", help="A consumer group; may be repeated.")
]
InputFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A snapshot (.csv, .parquet), a kafka-consumer-groups CSV, or - for stdin."),
]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="OUT", help="The file to write: .csv or .parquet, or - for CSV on stdout."),
]
ExportOutput = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT", help="The .csv or .json file to write, or - for stdout.")
]
Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run: the run directory of migrate, or the receipt of apply.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an output file that exists.")]
TimeLag = Annotated[
    bool, typer.Option("--time-lag", help="Show lag as time too: the age of each partition's oldest unread record.")
]
TopicGlobs = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="A topic, or a quoted glob such as 'payments.*'; may be repeated."),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="N[-N]", help="A partition or range, such as 7 or 3-5; may be repeated."),
]
Format = Annotated[
    Literal["table", "json"],
    typer.Option("--format", help="How the result is shown: as text, or as one JSON document on stdout."),
]
TableFormat = Annotated[
    Literal["table", "json", "csv"],
    typer.Option(
        "--format",
        help="How the result is shown: as text, as one JSON document on stdout, or as CSV on stdout. The CSV has the "
        "main table, and is no snapshot.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and its checks, and write nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
Reference = Annotated[
    str,
    typer.Option(
        "--reference",
        metavar="TEXT",
        rich_help_panel=REVIEW,
        show_default=False,
        help="Why, such as the number of a change ticket: recorded with user, host and version.",
    ),
]
Events = Annotated[
    EventLog | None,
    typer.Option(
        "--events",
        metavar="FILE",
        parser=EventLog,
        help="Append what happens, while it happens, to this file as JSON lines: planned, waiting, stopped, written, "
        "START, moved, done; - for stdout, and then all else goes to stderr.",
        show_default=False,
    ),
]
Settle = Annotated[
    str,
    typer.Option(
        "--settle",
        metavar="DURATION",
        rich_help_panel=SAFETY,
        help="How long a group must neither commit nor change its members; 0s: look once.",
    ),
]

WAIT = "10m"
"""How long commands wait by default until groups have stopped."""


def one_group(option: list[str], name: str = "--group") -> str:
    """Return the group given with the option ``name``.

    Raises `UsageError` if no group or several groups are given, or if the name is empty or not UTF-8.
    """
    groups = all_groups(None, option)
    if len(groups) > 1:
        raise UsageError(f"{name} takes one group, not several: {some(groups)}")
    return groups[0]


def all_groups(arguments: list[str] | None, option: list[str] | None) -> list[str]:
    """Return the groups given as arguments and with ``--group``, each once.

    Raises `UsageError` if no group is given, or if a name is empty or not UTF-8.
    """
    groups = list(dict.fromkeys([*(arguments or []), *(option or [])]))
    if not groups:
        raise UsageError("no group given: name at least one; migrate-groups list shows their names")
    if "" in groups:
        raise UsageError("a group name is empty")
    wrong = [group for group in groups if not is_unicode(group)]
    if wrong:
        raise UsageError(
            f"group {some(wrong)} is not UTF-8 text, as every group name in Kafka is: name the group in UTF-8"
        )
    return groups
