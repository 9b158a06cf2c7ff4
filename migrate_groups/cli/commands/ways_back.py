"""Commands that revert a hand-over, or clean up after it: rollback, hand-back, delete-offsets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection, open_reader, open_writer
from migrate_groups.cli.console import talk
from migrate_groups.cli.person import Person, show_result
from migrate_groups.cli.plans import show_table
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import some

if TYPE_CHECKING:
    from migrate_groups.planning.receipt import Receipt
    from migrate_groups.planning.run_states import Verb

ReceiptArgument = Annotated[Path, typer.Argument(metavar="RECEIPT", help="A receipt, or a run directory.")]


def rollback(
    receipt: ReceiptArgument,
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Restore what was there before a write.

    Deletes the offsets that the write created; first sets those again that the source group has lost since. Refused
    once a new group has committed: see hand-back.

    Example: migrate-groups rollback split.toml.run --dry-run
    """
    from migrate_groups.planning.run_states import Verb

    connection = Connection(bootstrap_server, command_config, properties, timeout)
    done = _go(receipt, Verb.ROLLBACK, connection, dry_run=dry_run, yes=yes)
    sources = {source for lane in done.lanes.values() for source in lane.sources} if done else set()
    if sources:
        talk(f"next: start the old applications again, in {some(sources)}")


def hand_back(
    receipt: ReceiptArgument,
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    wait: Annotated[str, typer.Option("--wait", help="How long to wait for all these groups to stop.")] = "10m",
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Give the topics back to the old group.

    Waits until the new groups and the old one have stopped, and moves the old group forward to where the new ones are:
    brokers take offsets for a group without members only. An old group that lives on with other topics stops meanwhile.

    Example: migrate-groups hand-back split.toml.run --wait 10m
    """
    from migrate_groups.planning.run_states import Verb

    seconds = parse_duration(wait, "--wait")
    connection = Connection(bootstrap_server, command_config, properties, timeout)
    done = _go(receipt, Verb.HAND_BACK, connection, dry_run=dry_run, yes=yes, wait=seconds)
    if done:
        groups = shlex.join(sorted({group for group, *_ in done.lanes}))
        talk(
            f"next: start the old applications; not the new ones: {groups} keeps its offsets until you delete them "
            "(migrate-groups delete GROUP), or migrate again"
        )


def delete_offsets(
    receipt: ReceiptArgument,
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Delete the moved topics' offsets from the old group.

    For the day after, so that the old group's lag is true.

    Refused until every new group is at or after what it was handed. Only hand-back takes it back, which needs the old
    group stopped: brokers take no offsets for a group with members.

    Example: migrate-groups delete-offsets split.toml.run --dry-run
    """
    from migrate_groups.planning.run_states import Verb

    connection = Connection(bootstrap_server, command_config, properties, timeout)
    _go(receipt, Verb.DELETE_OFFSETS, connection, dry_run=dry_run, yes=yes)


def _go(
    receipt: Path, verb: Verb, connection: Connection, *, dry_run: bool, yes: bool, wait: float = 0.0
) -> Receipt | None:
    """Show the plan of a rollback, hand-back or delete-offsets, and write it unless this is a dry run.

    Returns the receipt with the new execution; None if nothing was written.
    """
    from migrate_groups.files.runs.receipt_file import open_receipt
    from migrate_groups.files.runs.run_dir import receipt_in
    from migrate_groups.migration.prepare import refuse_forbidden
    from migrate_groups.migration.result import result_of
    from migrate_groups.migration.ways_back.go_back import go_back, is_done, plan_way_back

    person, path = Person(yes=yes), receipt_in(receipt)
    if not dry_run:
        person.check_can_be_asked()
    with open_receipt(path, read_only=dry_run, must_exist=True) as file:
        if is_done(file, verb, person):
            return None
        if dry_run:
            with open_reader(connection) as reader:
                plan = plan_way_back(reader, verb, file, SystemClock())
            show_table(plan)
            refuse_forbidden(plan.refusals(at_the_write=False))
            return None
        with open_writer(connection) as clients:
            execution = go_back(clients, verb, file, SystemClock(), person, wait=wait)
        if execution is None:
            return None
        show_result(result_of(execution, file))
        return file.receipt
