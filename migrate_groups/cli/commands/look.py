"""Commands that read from a cluster and write nothing to it: snapshot, describe, verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection, open_reader
from migrate_groups.cli.console import check_output, save_table, show, talk, warn_of_hidden_topics
from migrate_groups.cli.person import Person
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.snapshots.snapshot import Snapshot


def snapshot(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    output: options.Output,
    time_lag: options.TimeLag = False,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    force: options.Force = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Save committed offsets and log ends of groups, live too.

    Example: migrate-groups snapshot big-group -o before.parquet --bootstrap-server localhost:9092
    """
    wanted = options.all_groups(groups, group)
    check_output(output, force=force)
    with open_reader(Connection(bootstrap_server, command_config, properties, timeout)) as reader:
        from migrate_groups.migration.reading.take import take_snapshot

        taken = take_snapshot(reader, wanted, SystemClock())
        if time_lag:
            taken = _with_time_lag(reader, taken)
        warn_of_hidden_topics(reader)
    save_table(taken, output, force=force)
    talk(f"{counted(len(taken), 'partition')} of {some(wanted)} written to {output}")


def describe(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    time_lag: options.TimeLag = False,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    timeout: options.Timeout = "60s",
) -> None:
    """Show members, committed offsets and lag of groups, now.

    Example: migrate-groups describe big-group --bootstrap-server localhost:9092
    """
    wanted = options.all_groups(groups, group)
    with open_reader(Connection(bootstrap_server, command_config, properties, timeout)) as reader:
        from migrate_groups.migration.reading.take import existing_group, take_snapshot
        from migrate_groups.show import terminal

        described = [existing_group(reader, name) for name in wanted]
        taken = take_snapshot(reader, wanted, SystemClock())
        if time_lag:
            taken = _with_time_lag(reader, taken)
        warn_of_hidden_topics(reader)
    for each in described:
        show(terminal.members(each), terminal.lag_by_partition(list(taken.keep({"group": [each.group]}).rows())), "")


def verify(
    groups: options.Groups = None,
    group: options.GroupOption = None,
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    topic: options.TopicGlobs = None,
    wait: Annotated[str, typer.Option("--wait", help="How long to wait for the stop, for instance 5m.")] = "0s",
    settle: options.Settle = "10s",
    timeout: options.Timeout = "60s",
) -> None:
    """Verify that groups have stopped, and no offset moves.

    With --topic: that no member is assigned or subscribed to these topics.

    Example: migrate-groups verify big-group --wait 5m --bootstrap-server localhost:9092
    """
    wanted = options.all_groups(groups, group)
    seconds, quiet = parse_duration(wait, "--wait"), parse_duration(settle, "--settle")
    with open_reader(Connection(bootstrap_server, command_config, properties, timeout)) as reader:
        from migrate_groups.migration.stop import Wait, prove_stopped
        from migrate_groups.snapshots.selection import TopicPattern

        how = Wait(wait=seconds, settle=quiet, offsets=True, progress=Person().still_running)
        prove_stopped(reader, wanted, SystemClock(), how, patterns=[TopicPattern(each) for each in topic or []])
        warn_of_hidden_topics(reader)
    if topic:
        which = f"{some(topic)} of {some(wanted)}; no member on these topics, and no offset of theirs"
    else:
        which = f"{some(wanted)}; no member, and no offset"
    show(f"stopped: {which} moved within {settle}")


def _with_time_lag(reader: GroupReader, taken: Snapshot) -> Snapshot:
    from migrate_groups.migration.reading.time_lag import with_time_lag

    found = with_time_lag(reader, taken)
    if found.remark:
        talk(f"warning: {found.remark}")
    return found.snapshot
