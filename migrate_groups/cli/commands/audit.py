"""The command that proves a hand-over from the log of ``__consumer_offsets``: audit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli import audited_logs, options
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.cli.target_cluster import TargetCluster
from migrate_groups.errors import HandOverBroken, Undetermined, UsageError
from migrate_groups.model.topics import is_same_topic
from migrate_groups.text import counted, did_you_mean, shell_command, some

if TYPE_CHECKING:
    from migrate_groups.cli.audited_logs import LogSide
    from migrate_groups.files.runs.copied_log import CopiedLog
    from migrate_groups.planning.execution import Execution
    from migrate_groups.spark.offsets_topic.audit_result import Audit


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
    without_membership: Annotated[
        list[str] | None,
        typer.Option(
            "--without-membership",
            metavar="GROUP",
            help="A new group whose consumers use assign(), so that they are not members of it: its commits count "
            "although no member made them. May be repeated.",
        ),
    ] = None,
    output_format: options.TableFormat = "table",
    target: TargetCluster,
    connection: Connection,
) -> None:
    """Prove a hand-over from Kafka's own log of commits, with Spark.

    It copies the log of __consumer_offsets, and judges every commit of the old group and the new ones. Run it once
    members of the new groups have committed: before that it proves nothing (exit code 7). It needs Java 17 or later. If
    the new groups are on another cluster, pass it with --to-bootstrap-server or --to-command-config: both logs are
    copied.

    Each partition has a verdict on the old group and one on the new group. No problem: stopped (the old group), and
    starts-at-snapshot (the new group continued at the offset that was handed over), no-commit-yet or not-in-snapshot
    (not handed over). A problem, with exit code 6: late-commit (the old group has committed since), earlier or later
    (the new group's first commit is below or above the offset handed over), missing (that offset is not in place), or a
    rewind (a commit below the previous one).

    Example: migrate-groups audit split.toml.run
    """
    require_spark()
    from migrate_groups.files.runs import receipt_json
    from migrate_groups.files.runs.run_dir import RunDir, receipt_in
    from migrate_groups.migration.receipt_refusals import check_clusters_named

    target.check()
    execution = receipt_json.load(receipt_in(run_dir)).hand_over_to_judge()
    checkpoints = RunDir(run_dir).checkpoints(execution.content)
    check_clusters_named(execution, is_target_named=target.is_named)
    vouched = _vouched(execution, without_membership or [])
    written_to = target.connection(connection) if target.is_named else connection
    sides = audited_logs.log_sides(run_dir, execution, checkpoints, (connection, written_to))
    with _folder(log) as folder:
        folders = audited_logs.log_folders(folder, sides)
        copied = [audited_logs.copy_side(side, path) for side, path in zip(sides, folders, strict=True)]
        # Read after the logs: a topic that has its old id now had it when each of their commits was made.
        now = audited_logs.current_topic_ids(written_to, {change.topic for change in execution.changes})
        found = _prove(_handed_over(execution, now), sides, copied, vouched)
    from migrate_groups.show import audit as shown

    show_as(output_format, shown.result(found))
    if found.problems:
        raise HandOverBroken(f"{counted(found.problems, 'partition')} committed late, started elsewhere or went back")
    if found.undetermined:
        raise Undetermined(shown.undetermined(found))
    if reason := shown.not_proven(found):
        raise Undetermined(reason)
    talk(shown.conclusion(found))
    if not found.new.get("no-commit-yet"):
        talk(f"next: a day later, migrate-groups {shell_command('delete-offsets', [str(run_dir)])}")


def _vouched(execution: Execution, groups: list[str]) -> frozenset[str]:
    """Return the new groups that ``--without-membership`` names. Raises `UsageError` if one is not of this run."""
    targets = {change.group for change in execution.changes}
    for group in groups:
        if group not in targets:
            near = did_you_mean([group], targets) or f"they are {some(sorted(targets))}"
            raise UsageError(f"--without-membership {group!r} is not one of the new groups of this run: {near}")
    return frozenset(groups)


@contextmanager
def _folder(log: Path | None) -> Iterator[Path]:
    """Yield the folder for the copied log: ``log``, or a temporary folder if ``log`` is None."""
    if log is not None:
        yield log
        return
    with tempfile.TemporaryDirectory(prefix="migrate-groups-") as name:
        yield Path(name)


def _prove(
    handed_over: list[tuple[object, ...]], sides: list[LogSide], copied: list[CopiedLog], vouched: frozenset[str]
) -> Audit:
    """Return the verdicts of ``audit`` on the commits of source and target groups since the hand-over. Uses Spark.

    handed_over: the result of `_handed_over`. sides, copied: for each cluster, the groups to judge, and the copied log
    of ``__consumer_offsets``. vouched: the groups that ``--without-membership`` names.
    """
    with spark_here(sum(each.offsets for each in copied)) as spark:
        from migrate_groups.spark.offsets_topic.audit_job import Log, run_audit
        from migrate_groups.spark.offsets_topic.offsets_log import copied_log

        logs = [
            Log(copied_log(spark, str(each.folder)), side.groups, each.ranges)
            for side, each in zip(sides, copied, strict=True)
        ]
        return run_audit(spark, handed_over, *logs, without_membership=vouched)


def _handed_over(execution: Execution, now: Mapping[str, str]) -> list[tuple[object, ...]]:
    """Return one row for each partition of the hand-over, as input for the Spark job of ``audit``.

    A row has these columns:

    - source group, and the topic's name on the source group's cluster
    - target group, topic and partition number
    - the source group's committed offset at the hand-over; if it had none, the offset that the target group gets
    - the target group's committed offset before the write, and the one that was to be written
    - all offsets that the runs of this migration wrote, or may have written, for this partition
    - the topic's id at the hand-over, and whether the topic has this id now; None if not known

    An offset of None means: no committed offset. now: topic ids by topic, as they are now.
    """
    topic_ids = {topic: each.replace("-", "").upper() for topic, each in execution.topic_ids.items()}
    sources = execution.sources()
    rows: list[tuple[object, ...]] = []
    for change in execution.changes:
        # A partition that was added during a run has no source group in its change, and is judged without one.
        is_handed_over = change.source_group is not None or execution.translation is not None
        source = next(iter(sources[change.order]), None) if is_handed_over else None
        rows.append(
            (
                source.group if source else None,
                source.partition.topic if source else None,
                *change.order,
                source.stopped_at if source else change.handed_over_at,
                change.before.offset if change.before else None,
                change.after.offset if change.after else None,
                sorted({offset.offset for offset in change.written if offset}),
                topic_ids.get(change.topic),
                is_same_topic(execution.topic_ids.get(change.topic), now.get(change.topic)),
            )
        )
    return rows
