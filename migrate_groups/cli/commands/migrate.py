"""The whole cut-over in one command: migrate."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from migrate_groups.cli import options, plans
from migrate_groups.cli.connect import Connection, open_reader, open_writer
from migrate_groups.cli.console import SystemClock, talk, who_is_there
from migrate_groups.cli.writing import (
    agree,
    carry_out,
    check_can_ask,
    finish,
    is_over,
    open_journal,
    refuse_other_run,
)
from migrate_groups.errors import MigrateGroupsError, Refused, UsageError
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.snapshots.times import parse_duration
from migrate_groups.text import some

if TYPE_CHECKING:
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.files.split_toml import SplitFile
    from migrate_groups.migration.cutover import Prepared
    from migrate_groups.migration.ports import GroupReader, GroupWriter, HeldGroup
    from migrate_groups.model.fence import Fence
    from migrate_groups.planning.options import WriteOptions
    from migrate_groups.planning.plan import Plan
    from migrate_groups.planning.receipt import Deed, Receipt

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="The split: a TOML file.")]

# Whoever was kept out tries again within seconds (measured), and would process from where the group was handed over.
_WATCHED_AFTER_HOLD = 10.0


def migrate(
    spec: Spec,
    *,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    dry_run: options.DryRun = False,
    output_format: plans.FormatOption = "table",
    plan_out: plans.PlanOut = None,
    approved: Annotated[
        Path | None, typer.Option("--approved", metavar="PLAN", help="The plan that was reviewed.")
    ] = None,
    wait: Annotated[str, typer.Option("--wait", help="How long to wait for the old group's stop.")] = "10m",
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Default: <SPEC>.run beside the spec.")] = None,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", metavar="GROUP=NAME", help="Another name for a group: a rehearsal.")
    ] = None,
    on_existing: Annotated[
        Literal["refuse", "forward", "overwrite"] | None, typer.Option(help="Overrules the spec.")
    ] = None,
    uncommitted: Annotated[
        Literal["refuse", "end", "start", "leave"] | None, typer.Option(help="Overrules the spec.")
    ] = None,
    out_of_range: Annotated[Literal["refuse", "start"] | None, typer.Option(help="Overrules the spec.")] = None,
    vanished: Annotated[Literal["refuse", "restore"] | None, typer.Option(help="Overrules the spec.")] = None,
    any_kind: plans.AnyKind = False,
    witness: plans.WitnessOption = None,
    hold: Annotated[
        bool, typer.Option("--hold", help="Keep everybody out of the stopped old group until the guard is over.")
    ] = False,
    settle: Annotated[str | None, typer.Option(help="Overrules the spec.")] = None,
    guard: Annotated[str | None, typer.Option(help="Overrules the spec.")] = None,
    yes: options.Yes = False,
    detailed_exitcode: plans.DetailedExitcode = False,
    force: plans.ForcePlan = False,
    timeout: options.Timeout = "60s",
) -> None:
    """Do the whole cut-over in one process.

    Ask first, wait for the stop, snapshot, split, check, write, read back with both clients, watch the old group.

    Example: migrate-groups migrate split.toml --dry-run --bootstrap-server localhost:9092
    """
    # Tables are small here, for which Arrow's own pool takes 25 MB more (measured); it is chosen at pyarrow's import.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from migrate_groups.files import split_toml
    from migrate_groups.files.runs.run_dir import RunDir
    from migrate_groups.migration.cutover import CutOver, cut_over
    from migrate_groups.migration.ways_back import refuse_by_record
    from migrate_groups.planning.run_states import Verb

    file = _renamed(split_toml.load(spec), rename)
    chosen = _overruled(
        file.options,
        on_existing=on_existing,
        uncommitted=uncommitted,
        out_of_range=out_of_range,
        vanished=vanished,
        any_kind=any_kind or None,
        witness=witness,
        settle=settle,
        guard=guard,
    )
    seconds = parse_duration(wait, "--wait")
    connection = Connection(bootstrap_server, command_config, properties, timeout)
    plans.check_dry_run_options(plan_out, force=force, dry_run=dry_run, detailed=detailed_exitcode)
    run = RunDir(run_dir) if run_dir else RunDir.beside(spec)
    if hold and file.spec.stay:
        raise UsageError("--hold keeps everybody out of the old group, which lives on with what stays; drop --hold")
    if dry_run:
        with open_journal(run.receipt, dry_run=True) as journal:
            refuse_by_record(journal.receipt, Verb.HAND_OVER)
        with open_reader(connection) as reader:
            if is_over(reader, journal):
                return
            prepared = _prepare(reader, file, chosen, approved, journal.receipt, run, hold=hold)
        refuse_other_run(journal, prepared.plan)
        plans.show_plan(prepared.plan, lambda: prepared.rows, output_format, plan_out, force=force)
        if prepared.plan.verdict == "pending":
            talk("the offsets are provisional: the old group still moves")
        plans.conclude_dry_run(prepared.plan, detailed=detailed_exitcode)
        return
    check_can_ask(yes=yes)
    run.make()
    with open_journal(run.receipt) as journal, open_writer(connection) as cluster:
        writer = cluster[0]
        refuse_by_record(journal.receipt, Verb.HAND_OVER)
        if is_over(writer, journal):
            return
        resumed = journal.receipt.hand_over is not None
        shown = _prepare(writer, file, chosen, approved, journal.receipt, run, hold=hold)
        refuse_other_run(journal, shown.plan)

        def show_plan(plan: Plan) -> None:
            plans.show_plan(plan, lambda: shown.rows, output_format, plan_out, force=force)

        agree(shown.plan, yes=yes, provisional=True, show_plan=show_plan)
        run.keep_baseline(shown.reading.rows())
        talk(f"waiting up to {wait} for {file.spec.source} to stop: stop its applications now")

        def now(once_stopped: Callable[[], object]) -> Deed:
            fences: list[Fence | None] = []
            how = CutOver(
                wait=seconds,
                progress=who_is_there(),
                once_stopped=_fencing(writer, once_stopped, fences),
                keep_baseline=run.keep_baseline,
                receipt=journal.receipt,
            )
            final = cut_over(writer, file.spec, shown, SystemClock(), how)
            refuse_other_run(journal, final.plan)
            run.keep_fence(fences[0], resumed=resumed)
            done = "written and read back: START THE NEW GROUPS NOW"
            return carry_out(cluster, final.plan, journal, done, keep=partial(keep, writer, file.content, final, run))

        deed = _holding(writer, file.spec.source, now) if hold else now(lambda: None)
        journal.record(deed)
    finish(deed, journal, apart=output_format != "table")
    groups, folder = shlex.join(target.group for target in file.spec.targets), shlex.quote(str(run.folder))
    if deed.wrote_nothing:
        talk(
            "nothing was written: every offset was in place already, written by another run, whose receipt can undo it"
        )
    talk(
        f"next: migrate-groups reconcile {folder}",
        f"later: migrate-groups snapshot {groups} -o later.parquet, reconcile {folder} later.parquet",
        f"back: migrate-groups rollback {folder} (before the new groups commit), hand-back {folder} (after"
        + (f": all of {file.spec.source} must stop for it)" if file.spec.stay else ")"),
    )


def _holding(writer: GroupWriter, source: str, now: Callable[[Callable[[], object]], Deed]) -> Deed:
    """Return the deed of a cut-over that holds the old group from its stop to the end of the guard.

    The guard has seen nobody, since nobody could come: so it goes on for a while once the group is let go.
    """
    from migrate_groups.migration.guard import guard

    held: list[HeldGroup] = []
    with ExitStack() as holding:
        deed = now(lambda: held.append(holding.enter_context(writer.held(source))))
    deed = deed.with_moved(each.lost for each in held if each.lost)
    seconds = min(deed.options.guard, _WATCHED_AFTER_HOLD)
    if not (seconds and deed.is_whole):
        return deed
    talk(f"{source} is let go, and watched for {seconds:g} s more")
    return guard(writer, deed, seconds, SystemClock())


def _fencing(
    reader: GroupReader, once_stopped: Callable[[], object], fences: list[Fence | None]
) -> Callable[[], object]:
    """Return ``once_stopped``, with the offsets topic's ends read after it: what `audit` reads the log from."""

    def stopped() -> None:
        from migrate_groups.migration.fence import take_fence

        once_stopped()
        fences.append(take_fence(reader, SystemClock()))
        if fences[0] is None:
            talk(f"audit will not be able to prove this cut-over: {OFFSETS_TOPIC} needs Describe (and Read, then)")

    return stopped


def keep(reader: GroupReader, spec: bytes, final: Prepared, run: RunDir, deed: Deed) -> None:
    """Keep in the run directory what was written from, and, where that is in place whole, the new groups as they are.

    They may start meanwhile: nothing waits for this, and so the ends of the logs, for the lag of the old group, are
    read only now. Raises `InvalidInput` where the files can't be written.
    """
    from migrate_groups.migration.take import take_snapshot
    from migrate_groups.snapshots.snapshot import Snapshot

    reading, groups = final.reading, sorted({change.group for change in final.plan.changes})
    try:
        # The starts were read beside the write; the ends may be those from before the stop.
        reading = replace(reading, bounds=reader.log_bounds(reading.look.committed, starts=reading.starts))
        after = take_snapshot(reader, groups, SystemClock(), reading) if deed.is_whole else None
    except MigrateGroupsError as error:
        after = None
        talk(f"{run.after} was not written: {error}")
    before = Snapshot.of_rows(reading.rows())
    run.save(spec, before, final.rows, final.plan, after)


def _prepare(
    reader: GroupReader,
    file: SplitFile,
    chosen: WriteOptions,
    approved: Path | None,
    receipt: Receipt,
    run: RunDir,
    *,
    hold: bool,
) -> Prepared:
    from migrate_groups.migration.cutover import prepare

    baseline = run.load_baseline(file.spec.source)
    prepared = prepare(reader, file.spec, chosen, SystemClock(), receipt, baseline, hold=hold)
    _check_approved(approved, prepared.plan, resumed=receipt.hand_over is not None)
    return prepared


def _check_approved(path: Path | None, plan: Plan, *, resumed: bool) -> None:
    """Raise `Refused` naming each difference between the plan that was reviewed and the one of now.

    Partitions that were added while the run that this one resumes waited claim no old group, and are none.
    """
    if path is None:
        return
    from migrate_groups.files.runs import plan_json
    from migrate_groups.planning.intent import intent_differences

    if resumed:
        plan = replace(plan, changes=tuple(change for change in plan.changes if change.source_group))
    differences = intent_differences(plan_json.load(path).plan, plan)
    if differences:
        raise Refused(f"not what {path} says: {some(differences)}; have it reviewed again; nothing was written")


def _renamed(file: SplitFile, renames: list[str] | None) -> SplitFile:
    pairs = [each.partition("=") for each in renames or []]
    wrong = ["".join(pair) for pair in pairs if not all(pair)]
    if wrong:
        raise UsageError(f"--rename {wrong[0]!r}; expected GROUP=NAME")
    return replace(file, spec=file.spec.renamed({old: new for old, _, new in pairs}))


def _overruled(chosen: WriteOptions, *, settle: str | None, guard: str | None, **named: object) -> WriteOptions:
    changes: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    durations = {"settle": settle, "guard": guard}
    changes |= {name: parse_duration(text, f"--{name}") for name, text in durations.items() if text is not None}
    return replace(chosen, **changes)
