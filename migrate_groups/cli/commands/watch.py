"""Commands for the end of a replay: watch, delete."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection, open_reader, open_writer
from migrate_groups.cli.console import confirm, load_table, show, talk, warn_of_hidden_topics
from migrate_groups.cli.person import Person
from migrate_groups.errors import Refused
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.migration.ports import GroupReader


def watch(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="A consumer group.")],
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    until: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A rewind or a snapshot: the log ends noted there; without it those of now."),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(help="Give up after this long (exit 3), for instance 2h.", show_default="never")
    ] = None,
    request_timeout: Annotated[
        str, typer.Option(envvar="MIGRATE_GROUPS_TIMEOUT", help="How long one request may take.")
    ] = "60s",
) -> None:
    """Watch a replay, or the drain of an old group, to its end.

    Exit 0 once every partition has reached the log end that FILE notes; what is produced later is not waited for.

    Example: migrate-groups watch replay --until replay.csv --timeout 2h
    """
    from migrate_groups.cli.progress import shown_progress

    options.all_groups([group], None)
    seconds, clock = math.inf if timeout is None else parse_duration(timeout, "--timeout"), SystemClock()
    from migrate_groups.migration.watch import goals

    noted = None if until is None else goals(load_table(until), group)
    with open_reader(Connection(bootstrap_server, command_config, properties, request_timeout)) as reader:
        from migrate_groups.migration.reading.take import take_snapshot
        from migrate_groups.migration.watch import watch as follow

        wanted = noted
        if wanted is None:
            wanted = goals(take_snapshot(reader, [group], clock), group)
            warn_of_hidden_topics(reader)
        if wanted.unset:
            talk(f"not watched, without an offset to begin with: {some(wanted.unset)}")
        with shown_progress(group) as tell:
            done = follow(reader, group, wanted.spans, clock, tell, timeout=seconds)
    show(
        f"reached: {counted(done.total.partitions, 'partition')} of {group}, {counted(done.total.records, 'record')}, "
        f"watched for {done.seconds:.0f} s"
    )


def delete(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="A consumer group without members.")],
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Delete a group that has no members, with its offsets.

    The end of a replay. It can't be undone; a snapshot taken before, and apply --restore, bring the offsets back.

    Example: migrate-groups delete replay --dry-run
    """
    options.all_groups([group], None)
    if dry_run:
        with open_reader(Connection(bootstrap_server, command_config, properties, timeout)) as reader:
            _show_what_would_go(reader, group)
        return
    person = Person(yes=yes)
    person.check_can_be_asked()
    with open_writer(Connection(bootstrap_server, command_config, properties, timeout)) as (writer, _):
        from migrate_groups.migration.delete import delete_group, what_would_go

        _show_what_would_go(writer, group)
        if not yes:
            if not confirm(f"Delete group {group}?"):
                raise Refused("the answer was no; nothing was deleted")
            what_would_go(writer, group, SystemClock())  # a member may have joined since the first check
        person.writing(f"group {group} may be gone: migrate-groups describe {shlex.quote(group)} tells")
        delete_group(writer, group)
    show(f"deleted: {group}")


def _show_what_would_go(reader: GroupReader, group: str) -> None:
    from migrate_groups.migration.delete import what_would_go
    from migrate_groups.show import terminal

    going = what_would_go(reader, group, SystemClock())
    warn_of_hidden_topics(reader)
    show(terminal.lag_by_partition(list(going.rows())))
    talk(
        f"group {group}: {counted(len(going), 'committed offset')} would be gone; "
        f"to keep them: migrate-groups snapshot {shlex.quote(group)} -o kept.csv"
    )
