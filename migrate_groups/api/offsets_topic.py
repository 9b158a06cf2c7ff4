"""The methods of the Python API's cluster that read the log of ``__consumer_offsets``, with Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.api.clients import open_offsets_topic
from migrate_groups.api.reading import ReadingCluster
from migrate_groups.api.snapshot import Snapshot
from migrate_groups.arguments import check_moment, check_span, checked_texts
from migrate_groups.errors import UsageError
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.migration.advise.after import AfterSplit
from migrate_groups.migration.offsets_topic import at_moment, audit, costs, history
from migrate_groups.migration.offsets_topic.at_moment import NotKnown
from migrate_groups.migration.ports import LogClients
from migrate_groups.migration.reading.examine import examine
from migrate_groups.planning.examination import Examination
from migrate_groups.snapshots.times import checked_moment, milliseconds_of
from migrate_groups.spark.session import opener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from migrate_groups.spark.offsets_topic.audit_result import Audit
    from migrate_groups.spark.offsets_topic.history_job import History

_HOUR = timedelta(hours=1)


class LogCluster(ReadingCluster):
    """The base class of `Cluster` with the methods that copy the log of ``__consumer_offsets``, and run Spark on it.

    They need Read on ``__consumer_offsets``, and write nothing to the cluster. Their common arguments:

    - log: the folder for the copied log. A later call with this folder copies only new records.
    - output: a new folder for the tables of the result. It is deleted again if the call fails before they are complete.
    - spark: a Spark session. If None, a session of the active Spark is used, or of a local Spark that is started for
      this call.

    They raise `MissingDependency` if Spark or Java is not installed; `InvalidInput` if ``output`` exists or a folder
    can't be used; `Refused` if another command copies to ``log``; and `Undetermined` if ``__consumer_offsets`` does not
    exist, or was recreated since an earlier call with ``log``.
    """

    def doctor(self) -> Examination:
        """Return what the brokers show of this cluster, and what this tool can do there. Needs no Spark.

        Raises `ClusterUnavailable` or `NotAuthorized` if the cluster can't be reached or refuses the login. What else
        can't be read is in the result.
        """
        with self._open_log() as clients, closing(SecondClient(self._config)) as second:
            return examine(clients, second)

    def history(
        self, *groups: str, log: Path, output: Path, every: timedelta = _HOUR, spark: SparkSession | None = None
    ) -> History:
        """Write the commits and the lag of groups over time to ``history.parquet``, and return a summary.

        groups: no group means all groups. every: the time between two points of the history. log, output, spark:
        `LogCluster`.

        Raises `Undetermined` if the log has no commit of these groups, and `UsageError` if there would be too many
        points.
        """
        check_span("every", every)
        asked = history.HistoryRequest(sorted({*groups}) or None, Path(log), Path(output), every)
        return history.history(asked, self._open_log, opener(spark), self._clock, self._events)

    def past_snapshot(
        self,
        *groups: str,
        log: Path,
        at: datetime | None = None,
        known_only: bool = False,
        spark: SparkSession | None = None,
    ) -> tuple[Snapshot, Sequence[NotKnown]]:
        """Return the committed offsets of groups at a moment, and the partitions whose offset then is not known.

        No coordinator is asked. at: None for the last offsets. known_only: leave out partitions whose offset is not
        known, in place of an error. log, spark: `LogCluster`.

        Raises `Undetermined` if an offset is not known, or if the log has no commit of a group; `UsageError` if ``at``
        is in the future or has no UTC offset, or if no group is named.
        """
        if not groups:
            raise UsageError("no group given: name at least one")
        if at is not None:
            check_moment("at", at)
            checked_moment(milliseconds_of(at), self._clock.now(), f"at is {at.isoformat()}")
        asked = at_moment.MomentRequest(groups, Path(log), at, known_only)
        found = at_moment.snapshot_at(asked, self._open_log, opener(spark), self._clock, self._events)
        return Snapshot(found.snapshot), found.not_known

    def costs(
        self,
        *groups: str,
        log: Path,
        output: Path,
        since: timedelta | None = None,
        spark: SparkSession | None = None,
    ) -> costs.MeasuredCosts:
        """Measure what sharing a group costs its applications, and return the costs with advice.

        groups: no group means all groups. since: the age of the oldest records to use; None: all records. log, output,
        spark: `LogCluster`.

        Raises `Undetermined` if the log has no record of a member of these groups.
        """
        asked = costs.CostsRequest([*groups] or None, Path(log), Path(output), _checked(since))
        return costs.measure(asked, self._open_log, opener(spark), self._clock, self._events)

    def costs_after(
        self,
        run_dir: Path,
        *,
        log: Path,
        output: Path,
        since: timedelta | None = None,
        spark: SparkSession | None = None,
    ) -> Sequence[AfterSplit]:
        """Compare the predicted with the measured cost of each application since its group was split.

        run_dir: the run directory of `migrate`. since: the age of the oldest records to use; None: all records. log,
        output, spark: `LogCluster`.

        Raises `UsageError` if the split is of another cluster or of two clusters, and `Undetermined` if the log has no
        record of the source group's members before the split.
        """
        asked = costs.CostsRequest(None, Path(log), Path(output), _checked(since))
        return costs.compare_after(asked, Path(run_dir), self._open_log, opener(spark), self._clock, self._events)

    def audit(
        self,
        run_dir: Path,
        *,
        to: LogCluster | None = None,
        log: Path | None = None,
        without_membership: Sequence[str] = (),
        spark: SparkSession | None = None,
    ) -> Audit:
        """Judge every commit of the source group and the target groups since a hand-over, and return the verdicts.

        A problem raises no error. ``check()`` of the result raises `HandOverBroken` or `Undetermined` unless the log
        proves the hand-over.

        Args:
            run_dir: the run directory of `migrate`.
            to: the cluster of the target groups, if they are on another cluster.
            log: as in `LogCluster`; None: a temporary folder.
            without_membership: target groups whose consumers use ``assign()``, so that they are not members of them.
            spark: as in `LogCluster`.

        Raises:
            UsageError: the run is of another cluster, ``to`` is missing or not needed, or a group of
                ``without_membership`` is not a target group.
            InvalidInput: a file of the run can't be read.
            Refused: the run wrote nothing, or was rolled back or handed back.
            Undetermined: the run has not finished or has no stop checkpoint, or ``__consumer_offsets`` has another
                number of partitions since.
        """
        groups = checked_texts("without_membership", without_membership)
        asked = audit.AuditRequest(Path(run_dir), None if log is None else Path(log), groups)
        return audit.audit(asked, self._open_log, to._open_log if to else None, opener(spark), self._events)

    def _open_log(self) -> AbstractContextManager[LogClients]:
        return open_offsets_topic(self._config)


def _checked(since: timedelta | None) -> timedelta | None:
    if since is not None:
        check_span("since", since)
    return since
