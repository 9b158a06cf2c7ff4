"""The command that proves a hand-over from the log of ``__consumer_offsets``: audit."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk
from migrate_groups.cli.progress import bar
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.errors import HandOverBroken, Undetermined, UsageError
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.text import counted, some

if TYPE_CHECKING:
    from migrate_groups.migration.log_ports import OffsetsTopicReader
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.migration.reading.landing import Landing
    from migrate_groups.model.fence import Fence
    from migrate_groups.planning.execution import Execution
    from migrate_groups.spark.offsets_topic.audit_job import Audit

Group = tuple[str, int, int]
"""A consumer group, its partition of ``__consumer_offsets``, and the offset from which its records there are judged."""


def audit(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="The run directory of migrate.")],
    *,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="DIR",
            help="Keep the copied log in this folder. A later audit with the same folder copies only what is new.",
            show_default="a temporary folder",
        ),
    ] = None,
    output_format: options.Format = "table",
    connection: Connection,
) -> None:
    """Prove a hand-over from Kafka's own log of commits, with Spark.

    It copies the log of __consumer_offsets, and judges every commit of the old group and the new ones. Run it once the
    new groups have committed: before that it proves nothing (exit code 7). It needs Java 17 or later.

    Fine: the old group has stopped; a partition of a new group starts-at-snapshot (the group continued at the offset
    that was handed over), has no-commit-yet, or is not-in-snapshot (it was not handed over). A problem is exit code 6:
    late-commit (the old group has committed since), earlier or later (the new group's first commit is below or above
    the offset handed over), missing (that offset is not in place), or a rewind (a commit below the previous one).

    Example: migrate-groups audit split.toml.run
    """
    require_spark()
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

    show_as(output_format, lambda: shown.document(found), lambda: shown.terminal(found))
    if found.problems:
        raise HandOverBroken(f"{counted(found.problems, 'partition')} committed late, started elsewhere or went back")
    if found.undetermined:
        raise Undetermined(f"the log does not tell of {counted(found.undetermined, 'partition')}: see the evidence")
    if shown.is_too_early(found):
        raise Undetermined(
            "not proven yet: no new group has committed since the hand-over: start the new applications, and run audit "
            "again once they have committed"
        )
    talk(shown.conclusion(found))
    talk(f"next: a day later, migrate-groups delete-offsets {shlex.quote(str(run_dir))}")


def _check_fences(run_dir: Path, execution: Execution, fences: list[Fence]) -> None:
    """Raise `Undetermined` if the fence of a run of this migration is missing.

    A fence is the log end offset of each partition of ``__consumer_offsets`` when a run found the source group stopped.
    Records before the first fence are not judged. If the fence of an earlier run is missing, commits that the earlier
    run wrote may be before the first fence.
    """
    if execution.translation is not None:
        raise Undetermined(
            f"the old group is on another cluster, {execution.translation.cluster_id}, and audit reads the commits of "
            "one cluster only: reconcile compares the offsets with a later snapshot"
        )
    of_earlier_runs = any(entry.own for entry in execution.entries)
    if not fences or (of_earlier_runs and len(fences) < 2):
        raise Undetermined(
            f"{run_dir} has no fence of each run: commits from before the cut-over can't be told from later ones "
            f"(migrate keeps one where it may describe {OFFSETS_TOPIC})"
        )


def _groups(execution: Execution, fences: list[Fence]) -> list[Group]:
    """Return each group with its partition of ``__consumer_offsets``, and the offset from which its records are judged.

    For a source group it is the log end offset when the last run found the group stopped, because that run read its
    committed offsets again. For a target group it is the log end offset at the first run, because each run may have
    written to the group.

    Raises `Undetermined` if a partition had no leader when its log end offset was to be read.
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
    """Yield the folder for the copied log: ``log`` or, if it is None, a temporary folder."""
    if log is not None:
        yield log
        return
    with tempfile.TemporaryDirectory(prefix="migrate-groups-") as name:
        yield Path(name)


def _land(connection: Connection, cluster_id: str, partitions: int, folder: Path, groups: list[Group]) -> Landing:
    """Copy the partitions of ``__consumer_offsets`` that hold these groups into ``folder``, and return what was copied.

    Records that the folder has already are not copied again. partitions: the number of partitions of
    ``__consumer_offsets`` at the hand-over.

    Raises `UsageError` if the cluster's id is not ``cluster_id``; `Undetermined` if ``__consumer_offsets`` does not
    have ``partitions`` partitions; `InvalidInput` if the folder can't be used.
    """
    from migrate_groups.files.runs.copied_log import CopiedLog
    from migrate_groups.migration.reading.landing import land

    starts = _first_offsets(groups)
    with _open_log(connection, cluster_id, partitions) as (reader, topic):
        log = CopiedLog.load_with_starts(folder, cluster_id, starts)
        with bar(f"reading {OFFSETS_TOPIC} {some(starts)}") as progress:
            return land(reader, topic, log, starts, progress)


def _first_offsets(groups: list[Group]) -> dict[int, int]:
    """Return, by partition number of ``__consumer_offsets``, the first offset to copy for these groups.

    If a partition holds several groups, it is the lowest of the offsets from which their records are judged.
    """
    starts: dict[int, int] = {}
    for _, number, fence in groups:
        starts[number] = min(fence, starts.get(number, fence))
    return starts


@contextmanager
def _open_log(
    connection: Connection, cluster_id: str, partitions: int
) -> Iterator[tuple[GroupReader, OffsetsTopicReader]]:
    """Yield a client that reads groups and topics, and a client that reads the log of ``__consumer_offsets``.

    Raises `UsageError` if the cluster's id is not ``cluster_id``; `Undetermined` if ``__consumer_offsets`` does not
    have ``partitions`` partitions.
    """
    with connection.open_offsets_topic() as (reader, topic):
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
    """Start Spark, judge the hand-over from the copied log of ``__consumer_offsets``, and return the verdicts."""
    with spark_here(landed.offsets) as spark:
        from migrate_groups.spark.offsets_topic.audit_job import run_audit
        from migrate_groups.spark.offsets_topic.offsets_log import landed_log

        return run_audit(
            spark, landed_log(spark, str(landed.log.folder)), _handed_over(execution), groups, landed.ranges
        )


def _handed_over(execution: Execution) -> list[tuple[object, ...]]:
    """Return one row for each partition of the hand-over, for the Spark job that judges it.

    A row has the columns of `spark.offsets_topic.audit.HANDED_OVER`:

    - source group, target group, topic and partition number
    - the source group's committed offset at the hand-over or, if it had none, the offset that the target group gets
    - the target group's committed offset before the write, and after it
    - all offsets that the runs of this migration wrote or may have written
    - the topic's id

    None in place of an offset means: no committed offset.
    """
    topic_ids = {topic: each.replace("-", "").upper() for topic, each in execution.topic_ids.items()}
    return [
        (
            change.source_group,
            *change.order,
            change.handed_over_at,
            change.before.offset if change.before else None,
            change.after.offset if change.after else None,
            sorted({offset.offset for offset in entry.written if offset}),
            topic_ids.get(change.topic),
        )
        for entry in execution.entries
        for change in [entry.change]
    ]
