"""Commands that go back, or tidy up after: rollback, hand-back, delete-offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection, open_reader, open_writer
from migrate_groups.cli.console import SystemClock, talk, who_is_there
from migrate_groups.cli.plans import show_table
from migrate_groups.cli.writing import Journal, agree, carry_out, check_can_ask, finish
from migrate_groups.errors import Refused
from migrate_groups.offsets.times import parse_duration
from migrate_groups.text import some

if TYPE_CHECKING:
    from migrate_groups.cluster.ports import GroupReader
    from migrate_groups.plan.plan import Plan
    from migrate_groups.plan.receipt import Receipt

ReceiptFile = Annotated[Path, typer.Argument(metavar="RECEIPT", help="A receipt, or a run directory.")]


def rollback(
    receipt: ReceiptFile,
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Restore what was there before a write.

    Deletes the offsets that the write created. Refused once somebody has committed since: see hand-back.

    Example: migrate-groups rollback split.toml.run --dry-run
    """
    path, original = _load_receipt(receipt)
    from migrate_groups.migration.ways_back import plan_rollback

    if original.purpose.deed == "rollback":
        raise Refused(f"{path} is a rollback's receipt: to move the groups again, migrate again; nothing was written")
    way_back = _WayBack(path=path, original=original, name="rollback", dry_run=dry_run, yes=yes)
    way_back.go(
        Connection(bootstrap_server, command_config, properties, timeout),
        lambda cluster: plan_rollback(cluster, original),
    )


def hand_back(
    receipt: ReceiptFile,
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    wait: Annotated[str, typer.Option("--wait", help="How long to wait for the new groups' stop.")] = "10m",
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Give the topics back to the old group.

    Waits until the new groups stop, and moves the stopped old group forward to where they are.

    Example: migrate-groups hand-back split.toml.run --wait 10m
    """
    path, original = _load_receipt(receipt)
    seconds, clock = parse_duration(wait, "--wait"), SystemClock()
    from migrate_groups.migration.prepare import make_plan
    from migrate_groups.migration.stop import Wait, prove_stopped
    from migrate_groups.migration.ways_back import hand_back as offsets_now

    def plan_now(cluster: GroupReader) -> Plan:
        return make_plan(cluster, *offsets_now(cluster, original, clock))

    def plan_once_stopped(cluster: GroupReader) -> Plan:
        groups = sorted({entry.change.group for entry in original.entries})
        talk(f"waiting up to {wait} for {some(groups)} to stop: stop their applications now")
        how = Wait(wait=seconds, settle=original.options.settle, progress=who_is_there())
        prove_stopped(cluster, groups, clock, how)
        return plan_now(cluster)

    way_back = _WayBack(path=path, original=original, name="hand-back", dry_run=dry_run, yes=yes)
    way_back.go(
        Connection(bootstrap_server, command_config, properties, timeout), plan_now, once_agreed=plan_once_stopped
    )


def delete_offsets(
    receipt: ReceiptFile,
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

    Refused until every new group stands at or after what it was handed. It can't be undone while the old group lives:
    brokers take no offsets for a group with members.

    Example: migrate-groups delete-offsets split.toml.run --dry-run
    """
    path, original = _load_receipt(receipt)
    from migrate_groups.migration.ways_back import delete_source_offsets

    handed_back = _WayBack(path=path, original=original, name="hand-back", dry_run=True, yes=True).journal()
    if handed_back.read() is not None:
        raise Refused(f"the old group has the topics again, as {handed_back.path} says; nothing was written")
    way_back = _WayBack(path=path, original=original, name="delete-offsets", dry_run=dry_run, yes=yes)
    way_back.go(
        Connection(bootstrap_server, command_config, properties, timeout),
        lambda cluster: delete_source_offsets(cluster, original),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WayBack:
    """A command that plans from a receipt, and leaves a receipt of its own beside it."""

    path: Path
    original: Receipt
    name: str
    dry_run: bool
    yes: bool

    def journal(self) -> Journal:
        """Return the journal of this way back's own receipt, beside the one that it answers."""
        from migrate_groups.plan.receipt import Deed, Purpose

        purpose = Purpose(deed=Deed(self.name), answers=self.original.started_at)
        path = self.path.with_name(f"{self.path.stem}.{self.name}.json")
        return Journal(path, purpose, dry_run=self.dry_run)

    def go(
        self,
        connection: Connection,
        make: Callable[[GroupReader], Plan],
        once_agreed: Callable[[GroupReader], Plan] | None = None,
    ) -> None:
        """Plan and show; unless it is a dry run, ask, plan anew (``once_agreed`` may wait before it), and write."""
        from migrate_groups.migration.prepare import refuse_forbidden

        journal = self.journal()
        if self.dry_run:
            with open_reader(connection) as reader:
                plan = make(reader)
            journal.earlier(plan)
            show_table(plan)
            refuse_forbidden(plan.refusals(at_the_write=False))
            return
        check_can_ask(yes=self.yes)
        with open_writer(connection) as (writer, second):
            agree(make(writer), journal, yes=self.yes, provisional=once_agreed is not None)
            plan = (once_agreed or make)(writer)
            refuse_forbidden(plan.refusals(at_the_write=True))
            receipt = carry_out(writer, second, plan, journal, "written and read back")
        finish(receipt, journal)


def _load_receipt(path: Path) -> tuple[Path, Receipt]:
    from migrate_groups.files import receipt_json
    from migrate_groups.files.run_dir import receipt_in

    return receipt_in(path), receipt_json.load(receipt_in(path))
