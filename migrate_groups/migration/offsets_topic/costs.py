"""Measure what rebalances cost applications that share a group, from the log of ``__consumer_offsets``."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from migrate_groups.clock import Clock
from migrate_groups.errors import Undetermined, UsageError
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.run_dir import receipt_in
from migrate_groups.files.safe_write import new_folder
from migrate_groups.migration.advise import propose
from migrate_groups.migration.advise.after import AfterSplit, Split, compare
from migrate_groups.migration.advise.predicted_costs import GroupCost, judge_costs
from migrate_groups.migration.events import Events
from migrate_groups.migration.offsets_topic.copied import LogWithEnds, OpenLog, copy_with_ends
from migrate_groups.migration.ports import GroupReader
from migrate_groups.snapshots.times import moment_before, moment_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from migrate_groups.spark.offsets_topic.advice_result import Costs, SharedCost
    from migrate_groups.spark.reconciliation.result import Moment
    from migrate_groups.spark.session import OpenSpark

_MOST_GROUPS = 50
"""The largest number of groups with lag over time and a proposed split."""
_MOMENTS = 48


class CostsRequest(NamedTuple):
    """The input of `measure` and `compare_after`.

    groups: the consumer groups; None: all groups. log: the folder for the copied log of ``__consumer_offsets``. out: a
    new folder for the tables. since: the age of the oldest records to use; None: all records.
    """

    groups: Collection[str] | None
    log: Path
    out: Path
    since: timedelta | None

    def begin(self, copied: LogWithEnds) -> datetime | None:
        """Return the time of the oldest records to use; None: all records. Raises `UsageError` for one before 1970."""
        return None if self.since is None else moment_of(moment_before(copied.taken_at, self.since, "--since"))


class MeasuredCosts(NamedTuple):
    """What sharing a group costs its applications, and what to do about it.

    - costs: what the log shows.
    - groups: the cost and the advice for each group, the highest cost first.
    - lag: the lag over time of the 50 groups with the highest cost that several applications share.
    - suggestions: what to do about each of these groups, as far as it exists.
    """

    costs: Costs
    groups: tuple[GroupCost, ...]
    lag: tuple[Moment, ...]
    suggestions: Mapping[str, propose.Suggestion]


def measure(
    asked: CostsRequest, open_log: OpenLog, open_spark: OpenSpark, clock: Clock, events: Events
) -> MeasuredCosts:
    """Measure what sharing a group costs its applications, and write the tables to the folder ``asked.out``.

    If it fails before the tables are complete, the folder is deleted again.

    Raises `Undetermined` if the log has no record of a member of these groups, or was recreated or truncated since the
    last copy; `InvalidInput` if a folder can't be used; `Refused` if another command copies to the folder
    ``asked.log``.
    """
    with new_folder(asked.out, events.said) as complete, open_log() as clients:
        copied = copy_with_ends(clients, asked.groups, asked.log, clock, events)
        reader = clients.reader
        with open_spark(copied.log.offsets) as spark:
            from migrate_groups.spark.offsets_topic.advice_job import measure_costs, write_costs

            measured = measure_costs(spark, copied.log.for_spark, groups=asked.groups, since=asked.begin(copied))
            delay = reader.initial_rebalance_delay()
            judged = judge_costs(measured.applications, copied.taken_at, delay)
            worst = [each for each in judged if len(each.applications) > 1][:_MOST_GROUPS]
            with _lag(spark, reader, copied, worst, events) as (lag, timeline):
                costs = write_costs(measured, asked.out, timeline)
        complete("tables")
        judged = judge_costs(costs.applications, copied.taken_at, delay)
        suggested = propose.suggestions(reader, clock, [each.group for each in worst])
    return MeasuredCosts(costs, judged, lag, suggested)


@contextmanager
def _lag(
    spark: SparkSession, reader: GroupReader, copied: LogWithEnds, worst: Sequence[GroupCost], events: Events
) -> Iterator[tuple[tuple[Moment, ...], DataFrame | None]]:
    """Yield the lag of the groups in ``worst`` at about 48 points in time, as a tuple and as a DataFrame.

    Yields an empty tuple and None if ``worst`` is empty or the copied log has no commits of these groups.
    """
    from migrate_groups.spark.files import spark_path
    from migrate_groups.spark.offsets_topic.history_job import run_history

    groups, now = [each.group for each in worst], copied.taken_at
    since = min((row.since for each in worst for row in each.applications), default=now)
    every = max((now - since) / _MOMENTS, timedelta(seconds=1))
    with tempfile.TemporaryDirectory(prefix="migrate-groups-") as scratch:
        out, moments = Path(scratch) / "history.parquet", None
        with suppress(Undetermined), copied.past_log_ends(reader, events) as ends:
            if groups:
                found = run_history(
                    spark, copied.log.for_spark, ends, groups=groups, every=every, now=now, out=out, since=since
                )
                moments = found.timeline
        yield (moments, spark.read.parquet(spark_path(str(out)))) if moments is not None else ((), None)


def compare_after(
    asked: CostsRequest, run_dir: Path, open_log: OpenLog, open_spark: OpenSpark, clock: Clock, events: Events
) -> tuple[AfterSplit, ...]:
    """Compare the predicted with the measured cost of each application since its group was split.

    The cost is the time in which the application's partitions have no owner. The tables are written to the folder
    ``asked.out``, which is deleted again if it fails. run_dir: the run directory of the migration that split the group.
    The groups are those of the split; ``asked.groups`` is ignored.

    Raises `UsageError` if the split is of another cluster or of two clusters; `Undetermined` if the log has no record
    of the source group's members before the split; and the errors of `measure`.
    """
    execution = receipt_json.load(receipt_in(run_dir)).hand_over_to_judge()
    split = Split.of(execution)
    with new_folder(asked.out, events.said):
        with open_log() as clients:
            reader = clients.reader
            if reader.cluster_id() != execution.cluster_id:
                raise UsageError(f"{run_dir} is of another cluster, {execution.cluster_id}: check --bootstrap-server")
            copied = copy_with_ends(clients, split.source_groups | split.target_groups, asked.log, clock, events)
            delay = reader.initial_rebalance_delay()
        with open_spark(copied.log.offsets) as spark:
            span = asked.begin(copied), split.written_at
            before = _applications(spark, copied, split.source_groups, span, asked.out / "before")
            after = _applications(spark, copied, split.target_groups, (split.written_at, None), asked.out / "after")
        if not before:
            raise Undetermined(
                "the log has no record of the source group's members before the split: pass the --log that you used "
                "before the split, or a longer --since"
            )
        return compare(before, after, split, delay=delay, read_at=copied.taken_at)


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
        measured = measure_costs(spark, copied.log.for_spark, groups=sorted(groups), since=since, until=until)
        return write_costs(measured, out).applications
    return ()
