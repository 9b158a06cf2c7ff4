"""Measure with Spark what rebalances cost applications that share a group (``advise --log`` and ``--after``)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.console import show_as, talk
from migrate_groups.cli.log_with_ends import LogWithEnds, copy_with_ends, lag_over_time
from migrate_groups.cli.new_folder import new_folder
from migrate_groups.cli.spark_here import require_spark, spark_here
from migrate_groups.errors import Undetermined, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from migrate_groups.migration.advise.predicted_costs import GroupCost
    from migrate_groups.migration.advise.proposals import Suggestion
    from migrate_groups.migration.ports import GroupReader
    from migrate_groups.show.costs_page import Drawn
    from migrate_groups.spark.offsets_topic.advice_result import SharedCost
    from migrate_groups.spark.reconciliation.result import Moment

_MOST_GROUPS = 50
"""The largest number of groups for which advice.html shows the lag and proposes a split."""
_MOMENTS = 48


class CostsRequest(NamedTuple):
    """The input of ``advise --log``.

    groups: the consumer groups; None: all groups. log: the folder for the copied log of ``__consumer_offsets``. out: a
    new folder for the results. since: the age of the oldest records to use; None: all records.
    """

    groups: list[str] | None
    log: Path
    out: Path
    since: timedelta | None
    output_format: str


def measure(connection: Connection, asked: CostsRequest) -> None:
    """Measure what sharing a group costs its applications, print the result, and write it to the folder ``asked.out``.

    The costs are measured in the log of ``__consumer_offsets``, which is copied first.
    """
    require_spark()
    from migrate_groups.migration.advise.predicted_costs import judge_costs
    from migrate_groups.migration.advise.proposals import suggestions

    with new_folder(asked.out) as complete:
        with connection.open_offsets_topic() as opened:
            copied = copy_with_ends(opened, asked.groups, asked.log)
            reader = opened[0]
            with spark_here(copied.log.offsets) as spark:
                from migrate_groups.spark.offsets_topic.advice_job import measure_costs, write_costs

                since = _begin(asked, copied)
                measured = measure_costs(spark, copied.for_spark, groups=asked.groups, since=since)
                delay = reader.initial_rebalance_delay()
                judged = judge_costs(measured.applications, copied.taken_at, delay)
                worst = [each for each in judged if len(each.applications) > 1][:_MOST_GROUPS]
                with _lag(spark, reader, copied, worst) as (lag, timeline):
                    costs = write_costs(measured, asked.out, timeline)
                complete("tables")
                judged = judge_costs(costs.applications, copied.taken_at, delay)
            suggested = suggestions(reader, SystemClock(), [each.group for each in worst])
        from migrate_groups.show import markdown
        from migrate_groups.show.costs import result
        from migrate_groups.show.costs_page import page

        shown = result(costs, judged)
        _write(asked.out / "advice.md", markdown.draw(shown))
        _write(
            asked.out / "advice.html", page(costs, judged, lag, {name: _drawn(of) for name, of in suggested.items()})
        )
    show_as(asked.output_format, shown)
    talk(f"tables, advice.md and advice.html written to {asked.out}")


@contextmanager
def _lag(
    spark: SparkSession, reader: GroupReader, copied: LogWithEnds, worst: Sequence[GroupCost]
) -> Iterator[tuple[tuple[Moment, ...], DataFrame | None]]:
    """Yield the lag of the groups in ``worst`` at about 48 points in time, as a tuple and as a DataFrame.

    Yields an empty tuple and None if ``worst`` is empty or the copied log has no commits of these groups.
    """
    groups = [each.group for each in worst]
    since = min((row.since for each in worst for row in each.applications), default=copied.taken_at)
    every = max((copied.taken_at - since) / _MOMENTS, timedelta(seconds=1))
    from migrate_groups.spark.reconciliation.snapshots import spark_path

    with tempfile.TemporaryDirectory(prefix="migrate-groups-") as scratch:
        out, moments = Path(scratch) / "history.parquet", None
        with suppress(Undetermined):
            if groups:
                found = lag_over_time(spark, reader, copied, groups=groups, every=every, out=out, since=since)
                moments = found.timeline
        yield (moments, spark.read.parquet(spark_path(str(out)))) if moments is not None else ((), None)


def _drawn(of: Suggestion) -> Drawn:
    from migrate_groups.files.split_toml import to_toml
    from migrate_groups.show.costs_page import Drawn

    made = of.proposal
    return Drawn(of.settings, to_toml(made.spec, made.heading, made.notes) if made else "", of.why_not)


def compare_after(connection: Connection, asked: CostsRequest, run_dir: Path) -> None:
    """Compare the predicted with the measured cost of each application since its group was split.

    The cost is the time in which the application's partitions have no owner. Prints the result, and writes it to the
    folder ``asked.out``. run_dir: the run directory of the migration that split the group.
    """
    require_spark()
    from migrate_groups.files.runs import receipt_json
    from migrate_groups.files.runs.run_dir import receipt_in
    from migrate_groups.migration.advise.after import Split, compare
    from migrate_groups.show import after_split as views

    execution = receipt_json.load(receipt_in(run_dir)).hand_over_to_judge()
    split = Split.of(execution)
    with new_folder(asked.out) as complete:
        with connection.open_offsets_topic() as opened:
            if opened[0].cluster_id() != execution.cluster_id:
                raise UsageError(f"{run_dir} is of another cluster, {execution.cluster_id}: check --bootstrap-server")
            copied = copy_with_ends(opened, split.source_groups | split.target_groups, asked.log)
            delay = opened[0].initial_rebalance_delay()
        with spark_here(copied.log.offsets) as spark:
            span = _begin(asked, copied), split.written_at
            before = _applications(spark, copied, split.source_groups, span, asked.out / "before")
            after = _applications(spark, copied, split.target_groups, (split.written_at, None), asked.out / "after")
        if not before:
            raise Undetermined(
                "the log has no record of the source group's members before the split: pass the --log that you used "
                "before the split, or a longer --since"
            )
        complete("tables")
        found = compare(before, after, split, delay=delay, read_at=copied.taken_at)
        shown = views.result(found)
        _write(asked.out / "after.html", views.page(shown))
    show_as(asked.output_format, shown)
    talk(f"tables and after.html written to {asked.out}")


def _applications(
    spark: SparkSession,
    copied: LogWithEnds,
    groups: frozenset[str],
    span: tuple[datetime | None, datetime | None],
    out: Path,
) -> tuple[SharedCost, ...]:
    """Return what rebalances of these groups cost each application, and write the result as tables to ``out``.

    Members of a group that share topics are one application. span: use only records between these times. The result is
    empty if the log has no record of the groups' members.
    """
    from migrate_groups.spark.offsets_topic.advice_job import measure_costs, write_costs

    out.mkdir()
    with suppress(Undetermined):
        since, until = span
        measured = measure_costs(spark, copied.for_spark, groups=sorted(groups), since=since, until=until)
        return write_costs(measured, out).applications
    return ()


def _begin(asked: CostsRequest, copied: LogWithEnds) -> datetime | None:
    return None if asked.since is None else copied.taken_at - asked.since


def _write(path: Path, text: str) -> None:
    from migrate_groups.files.safe_write import write_whole

    write_whole(path, lambda file: file.write(text.encode()))
