"""The command that reads the log of the offsets topic, to prove a hand-over or to show the history of groups: audit."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection, open_offsets_topic
from migrate_groups.cli.console import show
from migrate_groups.cli.progress import bar
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.errors import HandOverBroken, Undetermined, UsageError
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.cli.commands.history import HistoryRequest
    from migrate_groups.migration.ports import GroupReader, OffsetsTopicReader
    from migrate_groups.migration.reading.landing import Landing
    from migrate_groups.model.fence import Fence
    from migrate_groups.planning.execution import Execution
    from migrate_groups.spark.offsets_topic.audit_job import Audit

Group = tuple[str, int, int]


def audit(
    run_dir: Annotated[
        Path | None, typer.Argument(metavar="RUN_DIR", help="The run directory of migrate; none with --history.")
    ] = None,
    *,
    history: Annotated[
        bool,
        typer.Option("--history", help="Instead of a proof: lag over time, and who committed when; --log and -o."),
    ] = False,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="With --history: this group alone; may be repeated.")
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", help="With --history: how far apart its moments are; 1h where not said.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="With --history: a new folder for its outcome.")
    ] = None,
    bootstrap_server: options.BootstrapServer = None,
    command_config: options.CommandConfig = None,
    properties: options.Properties = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="DIR", help="Keep the landed log here; a later audit goes on from it."),
    ] = None,
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", help="How the proof is shown.")
    ] = "table",
    timeout: options.Timeout = "60s",
) -> None:
    """Prove a hand-over from the log of the offsets topic, with Spark.

    Exit 6 where the old group has committed since, or a new one did not start at what was handed over or went back; 7
    where the log does not tell.

    With --history the log of all groups, as far as compaction has left it, makes a table (history.parquet) and a page
    with a curve for each group (history.html): what each had committed at each moment, against where the topics' logs
    ended then. Run now and then with the same --log, it loses nothing more.

    Example: migrate-groups audit split.toml.run

    Example: migrate-groups audit --history --log audit-log -o history
    """
    require_spark()
    connection = Connection(bootstrap_server, command_config, properties, timeout)
    if history:
        from migrate_groups.cli.commands.history import write_history

        write_history(connection, _asked(run_dir, group, every, log, output), output_format)
        return
    if run_dir is None:
        raise UsageError("name the run directory of migrate, or pass --history for all groups")
    if group or every or output:
        raise UsageError("--group, --every and -o go with --history")
    from migrate_groups.files.runs import fence_parquet, receipt_json
    from migrate_groups.files.runs.run_dir import RunDir, receipt_in

    run = RunDir(run_dir)
    execution, fences = receipt_json.load(receipt_in(run_dir)).to_judge(), fence_parquet.load(run.fence)
    _check_fences(run_dir, execution, fences)
    groups = _groups(execution, fences)
    partitions = len(fences[-1].ends)
    with _folder(log) as folder:
        landed = _land(connection, execution.cluster_id, partitions, folder, groups)
        found = _prove(execution, groups, landed)
    from migrate_groups.show import audit as shown

    if output_format == "json":
        sys.stdout.write(json.dumps(shown.document(found), indent=1) + "\n")
    else:
        show(shown.terminal(found))
    if found.problems:
        raise HandOverBroken(f"{counted(found.problems, 'partition')} committed late, started elsewhere or went back")
    if found.undetermined:
        raise Undetermined(f"the log does not tell of {counted(found.undetermined, 'partition')}: see the evidence")


def _asked(
    run_dir: Path | None, groups: list[str] | None, every: str | None, log: Path | None, output: Path | None
) -> HistoryRequest:
    from migrate_groups.cli.commands.history import HistoryRequest
    from migrate_groups.snapshots.times import parse_span

    if run_dir is not None:
        raise UsageError("--history is of all groups: no run directory goes with it; --group names some")
    if log is None or output is None:
        raise UsageError("--history needs --log DIR, where the log is kept, and -o OUT, a new folder")
    if "" in (groups or []):
        raise UsageError("a group name is empty")
    return HistoryRequest(sorted(set(groups or [])), parse_span(every or "1h", "--every"), log, output)


def _check_fences(run_dir: Path, execution: Execution, fences: list[Fence]) -> None:
    """Raise `Undetermined` if a run of this migration left no fence (the log end offsets just before its snapshot).

    The records of that run's own writes may lie before the first fence that is known.
    """
    of_earlier_runs = any(entry.own for entry in execution.entries)
    if not fences or (of_earlier_runs and len(fences) < 2):
        raise Undetermined(
            f"{run_dir} has no fence of each run: commits from before the cut-over can't be told from later ones "
            f"(migrate keeps one where it may describe {OFFSETS_TOPIC})"
        )


def _groups(execution: Execution, fences: list[Fence]) -> list[Group]:
    """Return each group, its partition of ``__consumer_offsets``, and its fence: the offset in that partition's log.

    The group's records from this offset on are judged. A source group has the fence of the last run, because that run
    read its committed offsets again. A target group has the fence of the first run, because each run may have written
    to it.
    """
    from migrate_groups.model.offsets_topic import log_partition

    changes = [entry.change for entry in execution.entries]
    counting = {change.source_group: fences[-1] for change in changes if change.source_group}
    counting |= {change.group: fences[0] for change in changes}
    found = []
    for group, fence in sorted(counting.items()):
        number = log_partition(group, len(fence.ends))
        end = fence.ends[number]
        if end is None:
            raise Undetermined(f"{OFFSETS_TOPIC}-{number}, which holds group {group!r}, had no leader at the cut-over")
        found.append((group, number, end))
    return found


@contextmanager
def _folder(log: Path | None) -> Iterator[Path]:
    if log is not None:
        yield log
        return
    with tempfile.TemporaryDirectory(prefix="migrate-groups-") as name:
        yield Path(name)


def _land(connection: Connection, cluster_id: str, partitions: int, folder: Path, groups: list[Group]) -> Landing:
    from migrate_groups.files.runs.landed_log import LandedLog
    from migrate_groups.migration.reading.landing import land

    starts = _fenced(groups)
    with _open_log(connection, cluster_id, partitions) as (reader, topic):
        log = LandedLog.opened(folder, cluster_id, starts)
        with bar(f"reading {OFFSETS_TOPIC} {some(starts)}") as progress:
            return land(reader, topic, log, starts, progress)


def _fenced(groups: list[Group]) -> dict[int, int]:
    """Return the partitions of ``__consumer_offsets`` that hold these groups, each with its groups' lowest fence."""
    starts: dict[int, int] = {}
    for _, number, fence in groups:
        starts[number] = min(fence, starts.get(number, fence))
    return starts


@contextmanager
def _open_log(
    connection: Connection, cluster_id: str, partitions: int
) -> Iterator[tuple[GroupReader, OffsetsTopicReader]]:
    """Yield readers of the cluster and of its offsets topic.

    Raises `UsageError` if the cluster has another id, `Undetermined` if the offsets topic no longer has this number of
    partitions.
    """
    with open_offsets_topic(connection) as (reader, topic):
        if reader.cluster_id() != cluster_id:
            raise UsageError(f"this is cluster {reader.cluster_id()}; the receipt is of cluster {cluster_id}")
        described = reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if described is None or len(described.partitions) != partitions:
            now = len(described.partitions) if described else 0
            raise Undetermined(
                f"{OFFSETS_TOPIC} had {partitions} partitions, and has {now}: its groups are in other partitions now"
            )
        yield reader, topic


def _prove(execution: Execution, groups: list[Group], landed: Landing) -> Audit:
    with spark_here(landed.offsets) as spark:
        from migrate_groups.spark.offsets_topic.audit_job import run_audit
        from migrate_groups.spark.offsets_topic.offsets_log import landed_log

        return run_audit(
            spark, landed_log(spark, str(landed.log.folder)), _handed_over(execution), groups, landed.ranges
        )


def _handed_over(execution: Execution) -> list[tuple[object, ...]]:
    """Return the partitions that were handed over, with their offsets before and after the write.

    They are rows of `spark.offsets_topic.audit.HANDED_OVER`.
    """
    return [
        (
            change.source_group,
            *change.order,
            change.handed_over_at,
            change.before.offset if change.before else None,
            change.after.offset if change.after else None,
            sorted({offset.offset for offset in entry.written if offset}),
        )
        for entry in execution.entries
        for change in [entry.change]
    ]
