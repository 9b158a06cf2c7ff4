"""The command that verifies that groups have stopped: verify."""

from __future__ import annotations

from typing import Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk, warn_of_hidden_topics
from migrate_groups.cli.terminal import Terminal
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import shell_command


def verify(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    topic: options.TopicGlobs = None,
    wait: Annotated[
        str,
        typer.Option(
            "--wait", metavar="DURATION", help="How long to wait until the groups have stopped; 0s: look once."
        ),
    ] = options.WAIT,
    settle: options.Settle = "10s",
    events: options.Events = None,
    output_format: options.Format = "table",
    connection: Connection,
) -> None:
    """Verify that groups have stopped: no members, and no commits.

    With --topic: no member is assigned or subscribed to these topics, and no offset is committed for them.

    Example: migrate-groups verify big-group --bootstrap-server localhost:9092
    """
    wanted = options.all_groups(groups, group)
    seconds, quiet = parse_duration(wait, "--wait"), parse_duration(settle, "--settle")
    from migrate_groups.snapshots.selection import TopicPattern

    patterns = [TopicPattern(each) for each in topic or []]
    with connection.open_reader() as reader:
        from migrate_groups.migration.stop import Wait, prove_stopped

        terminal = Terminal(events=events)
        how = Wait(wait=seconds, settle=quiet, offsets=True, progress=terminal.still_running, doing=terminal.doing)
        prove_stopped(reader, wanted, SystemClock(), how, patterns=patterns)
        left_out = warn_of_hidden_topics(reader)
    from migrate_groups.show.short_results import VerifyDocument, verified

    found = VerifyDocument(groups=tuple(wanted), topics=tuple(topic or []), settle=quiet, sees_every_topic=not left_out)
    show_as(output_format, verified(found, settle))
    talk(f"next: migrate-groups {shell_command('snapshot', wanted, '-o before.parquet')}")
