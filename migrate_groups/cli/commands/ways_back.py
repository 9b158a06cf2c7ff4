"""Commands that revert a hand-over, or clean up after it: rollback, hand-back, delete-offsets."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from migrate_groups.api.operator import written_by
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import options, written
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import talk, warn_of_hidden_topics
from migrate_groups.cli.plans import conclude_dry_run
from migrate_groups.cli.target_cluster import MOST_RECORDS, MaxRecords, TargetCluster
from migrate_groups.cli.terminal import Terminal
from migrate_groups.errors import UsageError
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import counted, named, shell_command, some

if TYPE_CHECKING:
    from migrate_groups.migration.ways_back.delete_group_offsets import OffsetsToDelete
    from migrate_groups.planning.receipt import Receipt
    from migrate_groups.planning.run_states import Verb

_SETTLE = "10s"
_NO_TARGET = TargetCluster()
Format = Annotated[
    Literal["table", "json", "csv"],
    typer.Option(
        "--format",
        help="How the outcome is shown. csv has the plan's partitions. json prints one document on stdout: the "
        "plan of a dry run, or the receipt of a write.",
    ),
]


def rollback(
    run: options.Run,
    *,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    reference: options.Reference = "",
    events: options.Events = None,
    output_format: Format = "table",
    target: TargetCluster,
    connection: Connection,
) -> None:
    """Undo a hand-over before the new groups have committed.

    It restores the committed offsets that the new groups had before, and deletes an offset where a group had none.
    Offsets that the old group has lost since are written to it again. Once a new group has committed, use hand-back.
    With the receipt of delete-offsets --group, it restores the offsets of the last deletion, unless the group has
    committed since; run it again for the deletion before that.

    If the new groups are on another cluster, pass it with --to-bootstrap-server or --to-command-config, and the old
    group's as --bootstrap-server. If the old cluster can't be reached, pass only the new groups' as --bootstrap-server:
    then the claims on the old one stay.

    Example: migrate-groups rollback split.toml.run --dry-run
    """
    from migrate_groups.planning.run_states import Verb

    by = written_by(reference)
    terminal = Terminal(yes=yes, output_format=output_format, write="Restore", by=by, events=events)
    target.check()
    done = _go(run, _WayBack(Verb.ROLLBACK), connection, terminal, dry_run=dry_run, target=target)
    if done and not done.is_of_deletion:
        changes = [*done.executions[-1].changes]
        kept = {change.group for change in changes if change.after is not None or change.is_share}
        emptied = {group for group, *_ in done.partition_states} - kept
        talk(f"later: {_delete_groups(emptied)}; or migrate again" if emptied else "later: migrate again")
    if done and (left := done.deleted):
        offsets = f"{counted(len(left), 'offset')} of {named('topic', {change.topic for change in left})}"
        talk(f"next: the same command again restores {offsets}, deleted before those")


def hand_back(
    run: options.Run,
    *,
    wait: Annotated[
        str,
        typer.Option("--wait", metavar="DURATION", help="How long to wait until the new groups and the old one stop."),
    ] = options.WAIT,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    reference: options.Reference = "",
    events: options.Events = None,
    output_format: Format = "table",
    max_records: MaxRecords = MOST_RECORDS,
    target: TargetCluster,
    connection: Connection,
) -> None:
    """Undo a hand-over after the new groups have committed.

    It waits until the new groups and the old group have stopped. Then it writes the committed offsets of the new groups
    to the old group. An old group that consumes other topics must stop too, because brokers accept offsets only for a
    group without members.

    If the new group is on another cluster, pass it with --to-bootstrap-server or --to-command-config, and the old
    group's as --bootstrap-server. The offsets in the mirror's copies are translated to the topics that were copied,
    without another mirror. It is refused while there are unread records in a copy that are not of its topic, and waits
    only for the new group: the old one must have no members.

    Example: migrate-groups hand-back split.toml.run --wait 10m
    """
    from migrate_groups.planning.run_states import State, Verb

    seconds = parse_duration(wait, "--wait")
    terminal = Terminal(yes=yes, output_format=output_format, by=written_by(reference), events=events)
    target.check(alone="--max-records" if max_records != MOST_RECORDS else None)
    way = _WayBack(Verb.HAND_BACK, seconds, max_records=max_records)
    if target.is_named:
        _move_back(run, way, connection, terminal, dry_run=dry_run, target=target)
        return
    done = _go(run, way, connection, terminal, dry_run=dry_run)
    if done:
        left = {
            group for (group, *_), partition in done.partition_states.items() if partition.state is State.HANDED_BACK
        }
        talk(f"later: {_delete_groups(left)}; or migrate again, which replaces their offsets")


def delete_offsets(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="A run: the run directory of migrate, or the receipt of apply."),
    ] = None,
    *,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="GROUP", help="In place of RUN: delete offsets of this group."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="With --group: a topic whose offsets are deleted, or a quoted glob; may be repeated.",
        ),
    ] = None,
    settle: Annotated[
        str | None,
        typer.Option(
            "--settle",
            metavar="DURATION",
            rich_help_panel=options.SAFETY,
            help="With --group: how long the group must not commit before the deletion.",
            show_default=_SETTLE,
        ),
    ] = None,
    receipt: Annotated[
        Path | None,
        typer.Option(
            "--receipt",
            metavar="FILE",
            help="With --group: the file for the receipt, which holds the deleted offsets and which rollback reads.",
            show_default="<GROUP>.delete-offsets.receipt.json",
        ),
    ] = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    reference: options.Reference = "",
    events: options.Events = None,
    output_format: Format = "table",
    target: TargetCluster,
    connection: Connection,
) -> None:
    """Delete the offsets of the topics that moved from the old group, or of any topics from a group.

    Do this a day after a hand-over, so that the old group shows no lag for topics that it no longer consumes. It is
    refused if a new group has a lower committed offset than was handed over. It warns if a new group has no members and
    still has exactly the offsets that were handed over. With RUN, settle and guard are those of the hand-over, and
    only hand-back can undo the deletion. If the new groups are on another cluster, pass that cluster with
    --to-bootstrap-server or --to-command-config; it is only read.

    With --group and --topic there need not be a hand-over. No member of the group may be assigned or subscribed to the
    topics. Rollback of the new receipt restores the offsets, if the group has no members and has not committed again.

    Example: migrate-groups delete-offsets split.toml.run --dry-run

    Example: migrate-groups delete-offsets --group orders --topic 'old.*' --dry-run
    """
    from migrate_groups.planning.run_states import Verb

    terminal = Terminal(yes=yes, output_format=output_format, by=written_by(reference), events=events)
    if run is not None:
        if group:
            raise UsageError(f"RUN ({run}) and --group {some(group)} contradict each other: pass one of them")
        if topic or settle or receipt:
            raise UsageError("--topic, --settle and --receipt go with --group, not with RUN")
        target.check()
        _go(run, _WayBack(Verb.DELETE_OFFSETS), connection, terminal, dry_run=dry_run, target=target)
        return
    if target.is_named:
        raise UsageError("--to-bootstrap-server and --to-command-config go with RUN, not with --group")
    if not group:
        raise UsageError("name the RUN that handed over, or a group and its topics with --group and --topic")
    if not topic:
        raise UsageError("--group says whose offsets are deleted: name the topics with --topic, or all with '*'")
    if receipt is not None and str(receipt) == "-":
        raise UsageError("--receipt -: rollback reads the receipt; name a file")
    named = options.one_group(group)
    from migrate_groups.files.runs.run_dir import IN_RECEIPT, file_name
    from migrate_groups.migration.ways_back.delete_group_offsets import OffsetsToDelete
    from migrate_groups.snapshots.selection import TopicPattern

    path = receipt or Path(f"{file_name(named, most=IN_RECEIPT)}.delete-offsets.receipt.json")
    patterns, seconds = tuple(map(TopicPattern, topic)), parse_duration(settle or _SETTLE, "--settle")
    deletion = OffsetsToDelete(group=named, topics=patterns, settle=seconds)
    if _go(path, _WayBack(Verb.DELETE_OFFSETS, deletion=deletion), connection, terminal, dry_run=dry_run):
        talk(f"back: migrate-groups {shell_command('rollback', [str(path)])} (before the group commits again)")


def _delete_groups(groups: Collection[str]) -> str:
    """Return advice for the user: the command that deletes these groups, to run only if nothing else uses them."""
    return (
        f"migrate-groups {shell_command('delete-group', sorted(groups))}, if nothing else uses "
        f"{'it' if len(groups) == 1 else 'them'}"
    )


class _WayBack(NamedTuple):
    """A rollback, hand-back or delete-offsets.

    wait: seconds that a hand-back waits for the groups to stop. deletion: what ``delete-offsets --group`` deletes.
    max_records: as in `Mirror`, if the group moves back to another cluster.
    """

    verb: Verb
    wait: float = 0.0
    deletion: OffsetsToDelete | None = None
    max_records: int = MOST_RECORDS


def _go(
    run: Path,
    way: _WayBack,
    connection: Connection,
    terminal: Terminal,
    *,
    dry_run: bool,
    target: TargetCluster = _NO_TARGET,
) -> Receipt | None:
    """Show the plan of a way back, and write it unless this is a dry run.

    run: the run directory of ``migrate``, or the file that records the hand-over; of a deletion without a hand-over the
    file for the receipt. target: the cluster of the new groups, if it is another one. Returns the receipt; None:
    nothing was written.
    """
    from migrate_groups.cli.fleet_back import FleetBack
    from migrate_groups.files.runs.receipt_file import open_receipt
    from migrate_groups.files.runs.run_dir import RunDir, receipt_in
    from migrate_groups.migration.ways_back.go_back import go_back, left_to_do
    from migrate_groups.migration.write_result import result_of
    from migrate_groups.planning.run_states import Verb

    verb, wait, deletion, _ = way
    if deletion is None and (several := RunDir(run).several()):
        fleet = FleetBack(verb=verb, runs=several, terminal=terminal, clock=SystemClock(), wait=wait)
        if dry_run:
            fleet.dry_run(target.open_readers(connection))
        else:
            terminal.check_can_be_asked()
            fleet.write(target.open_writers(connection))
        return None
    written.run.set(run)
    path = receipt_in(run) if deletion is None else run
    with open_receipt(path, read_only=dry_run, must_exist=deletion is None, by=terminal.by) as file:
        if not dry_run:
            terminal.check_can_be_asked()
        terminal.sources = file.receipt.source_groups if deletion is None else [deletion.group]
        has_stopped = bool(file.receipt.source_groups) and not file.receipt.is_copy
        terminal.old_may_start = verb is Verb.ROLLBACK and has_stopped
        if dry_run:
            with target.open_readers(connection) as readers:
                if deletion is not None:
                    warn_of_hidden_topics(readers.source)
                plan = left_to_do(readers, verb, file, SystemClock(), terminal, deletion)
            if plan is None:
                terminal.show_receipt(file.receipt)
                return None
            terminal.dry_run(plan, lambda: ())
            conclude_dry_run(plan)
            return None
        with target.open_writers(connection) as clusters:
            if deletion is not None:
                warn_of_hidden_topics(clusters.source.writer)
            execution = go_back(clusters, verb, file, SystemClock(), terminal, wait=wait, deletion=deletion)
        if execution is None:
            terminal.show_receipt(file.receipt)
            return None
        terminal.show_result(result_of(execution, file))
        return file.receipt


def _move_back(
    run: Path, way: _WayBack, connection: Connection, terminal: Terminal, *, dry_run: bool, target: TargetCluster
) -> None:
    """Show the plan to move a group back to its cluster, and carry it out unless this is a dry run.

    run: the run directory of the move. target: the cluster to which the run has moved the group.
    """
    from migrate_groups.cli.hand_over import HandOver
    from migrate_groups.files.runs import receipt_json
    from migrate_groups.files.runs.run_dir import receipt_in
    from migrate_groups.migration.clusters import Mirror
    from migrate_groups.migration.ways_back.move_back import move_back

    path = receipt_in(run)
    receipt = receipt_json.load(path)
    written.run.set(run)  # its status names the run of the return, which has the clusters the other way round
    terminal.start = "START THE OLD APPLICATIONS NOW"
    if not dry_run:
        terminal.check_can_be_asked()
    with ExitStack() as stack:
        there = stack.enter_context(target.connection(connection).open_side(writes=not dry_run))
        here = stack.enter_context(connection.open_side())
        mirror = Mirror(there, here, most_records=way.max_records)
        wanted = move_back(receipt, path.parent, mirror)
        wanted = replace(wanted, wait=way.wait, by=terminal.by)
        one = HandOver(wanted=wanted, terminal=terminal, clock=SystemClock())
        if dry_run:
            if plan := one.dry_run(stack.enter_context(connection.open_reader())):
                conclude_dry_run(plan)
            return
        one.conclude(one.write(stack.enter_context(connection.open_writer())))
