"""The command that deletes groups: delete-group."""

from __future__ import annotations

from typing import Annotated

import typer

from migrate_groups.api.operator import written_by
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import warn_of_hidden_topics
from migrate_groups.cli.json_output import print_document
from migrate_groups.cli.terminal import Terminal


def delete_groups(
    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="GROUP...", help="Consumer groups without members.", show_default=False),
    ] = None,
    group: options.GroupOption = None,
    *,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    reference: options.Reference = "",
    events: options.Events = None,
    output_format: options.Format = "table",
    connection: Connection,
) -> None:
    """Delete groups without members, and their committed offsets.

    All groups are checked before the first one is deleted. This can't be undone. If you take a snapshot first, apply
    --restore brings the committed offsets back.

    Example: migrate-groups delete-group replay --dry-run
    """
    from migrate_groups.migration.delete_groups import delete_groups as delete
    from migrate_groups.migration.delete_groups import what_would_go
    from migrate_groups.show.short_results import deleted

    wanted, clock = options.all_groups(groups, group), SystemClock()
    by = written_by(reference)
    terminal = Terminal(yes=yes, output_format=output_format, events=events)
    if dry_run:
        with connection.open_reader() as reader:
            warn_of_hidden_topics(reader)
            committed = what_would_go(reader, wanted, clock)
        terminal.would_delete(committed)
        if output_format == "json":
            print_document(deleted(committed, by=by))
        return
    terminal.check_can_be_asked()
    with connection.open_writer() as clients:
        warn_of_hidden_topics(clients.writer)
        terminal.would_delete(what_would_go(clients.writer, wanted, clock))
        terminal.ask_to_delete(wanted)
        done = delete(clients.writer, wanted, clock, terminal.writing, terminal.deleted)
    if output_format == "json":
        print_document(deleted(done.committed, done.deleted, done.failures, by=by))
    done.check()
