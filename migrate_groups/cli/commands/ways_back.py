"""Commands that go back, or tidy up after: rollback, hand-back, delete-offsets."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection, open_reader, open_writer
from migrate_groups.cli.console import SystemClock, talk, who_is_there
from migrate_groups.cli.plans import show_table
from migrate_groups.cli.writing import agree, carry_out, check_can_ask, finish, open_journal
from migrate_groups.errors import PartlyApplied
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import some

if TYPE_CHECKING:
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.receipt import Receipt
    from migrate_groups.planning.run_states import Verb

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

    Deletes the offsets that the write created; first sets those again that the source group has lost since. Refused
    once a new group has committed: see hand-back.

    Example: migrate-groups rollback split.toml.run --dry-run
    """
    from migrate_groups.migration.ways_back import plan_rollback
    from migrate_groups.planning.run_states import Verb

    way_back = _WayBack(receipt, Verb.ROLLBACK, "is rolled back already", dry_run=dry_run, yes=yes)
    done = way_back.go(Connection(bootstrap_server, command_config, properties, timeout), plan_rollback)
    sources = {source for lane in done.lanes.values() for source in lane.sources} if done else set()
    if sources:
        talk(f"next: start the old applications again, in {some(sources)}")


def hand_back(
    receipt: ReceiptFile,
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
    seconds, clock = parse_duration(wait, "--wait"), SystemClock()
    from migrate_groups.migration.prepare import make_plan
    from migrate_groups.migration.stop import Wait, prove_stopped
    from migrate_groups.migration.ways_back import hand_back as offsets_now
    from migrate_groups.planning.run_states import Verb

    def plan_now(cluster: GroupReader, record: Receipt) -> Plan:
        return make_plan(cluster, *offsets_now(cluster, record, clock))

    def plan_provisional(cluster: GroupReader, record: Receipt) -> Plan:
        return plan_now(cluster, record).provisional(("targets", "not moved"))

    def plan_once_stopped(cluster: GroupReader, record: Receipt, shown: Plan) -> Plan:
        new = sorted({change.source_group for change in shown.changes if change.source_group})
        old = sorted({change.group for change in shown.changes if cluster.describe_group(change.group).exists})
        settle = shown.options.settle
        talk(
            f"waiting up to {wait} for {some(new)} to stop, and {some(old) or 'nobody else'}: stop their applications "
            f"now; once they have, this takes {settle:g} s to settle, and reading and writing"
        )
        prove_stopped(cluster, [*new, *old], clock, Wait(wait=seconds, settle=settle, progress=who_is_there()))
        return plan_now(cluster, record)

    way_back = _WayBack(receipt, Verb.HAND_BACK, "is handed back already", dry_run=dry_run, yes=yes)
    done = way_back.go(
        Connection(bootstrap_server, command_config, properties, timeout), plan_provisional, plan_once_stopped
    )
    if done:
        groups = shlex.join(sorted({group for group, *_ in done.lanes}))
        talk(
            f"next: start the old applications; not the new ones: {groups} keeps its offsets until you delete them "
            "(migrate-groups delete GROUP), or migrate again"
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

    Refused until every new group is at or after what it was handed. Only hand-back takes it back, which needs the old
    group stopped: brokers take no offsets for a group with members.

    Example: migrate-groups delete-offsets split.toml.run --dry-run
    """
    from migrate_groups.migration.ways_back import delete_source_offsets
    from migrate_groups.planning.run_states import Verb

    way_back = _WayBack(receipt, Verb.DELETE_OFFSETS, "has no offsets left to delete", dry_run=dry_run, yes=yes)
    way_back.go(Connection(bootstrap_server, command_config, properties, timeout), delete_source_offsets)


PlanOf = Callable[["GroupReader", "Receipt"], "Plan"]
OnceAgreed = Callable[["GroupReader", "Receipt", "Plan"], "Plan"]


@dataclass(frozen=True, slots=True)
class _WayBack:
    """A command that plans from the record of a run, and adds a deed to it."""

    receipt: Path
    verb: Verb
    already: str
    dry_run: bool = field(kw_only=True)
    yes: bool = field(kw_only=True)

    def go(self, connection: Connection, make: PlanOf, once_agreed: OnceAgreed | None = None) -> Receipt | None:
        """Plan and show; unless it is a dry run, ask, plan once more after a wait, and write.

        Without ``once_agreed`` nothing may have moved over ``settle`` by then. Returns the record of the run with the
        deed, None where nothing was written.
        """
        from migrate_groups.files.runs.run_dir import receipt_in
        from migrate_groups.migration.prepare import refuse_forbidden

        if not self.dry_run:
            check_can_ask(yes=self.yes)
        with open_journal(receipt_in(self.receipt), dry_run=self.dry_run, must_exist=True) as journal:
            if journal.receipt.is_done(self.verb):
                self._refuse_moved(journal.receipt)
                talk(f"{self.receipt} {self.already}; nothing was written")
                return None
            if self.dry_run:
                with open_reader(connection) as reader:
                    plan = make(reader, journal.receipt)
                show_table(plan)
                refuse_forbidden(plan.refusals(at_the_write=False))
                return None
            with open_writer(connection) as cluster:
                shown = make(cluster[0], journal.receipt)
                agree(shown, yes=self.yes, provisional=once_agreed is not None)
                plan = (once_agreed or _once_quiet(make))(cluster[0], journal.receipt, shown)
                refuse_forbidden(plan.refusals(at_the_write=True))
                deed = carry_out(cluster, plan, journal, "written and read back", self.verb)
            finish(deed, journal)
            return journal.receipt

    def _refuse_moved(self, record: Receipt) -> None:
        """Raise `PartlyApplied` where a group went on during the guard of the deed that did all of it."""
        moved = next((deed.moved for deed in reversed(record.deeds) if deed.verb is self.verb), ())
        if moved:
            raise PartlyApplied(
                f"{self.receipt} {self.already}, but {moved[0]}: what it processed from there on is processed twice; "
                "nothing was written"
            )


def _once_quiet(make: PlanOf) -> OnceAgreed:
    """Return what plans again after ``settle``: a consumer without membership shows only by what it commits."""

    def plan_again(cluster: GroupReader, record: Receipt, shown: Plan) -> Plan:
        if shown.options.settle:
            talk(f"looking again in {shown.options.settle:g} s: nothing may be committed meanwhile")
            SystemClock().sleep(shown.options.settle)
        return make(cluster, record)

    return plan_again
