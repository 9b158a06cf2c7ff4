"""The execution plans that Spark makes for the jobs. How long a job takes depends on its plan."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.offsets_topic import audit, audit_job, history_job, offsets_at
from migrate_groups.spark.offsets_topic.audit import hand_over
from migrate_groups.spark.offsets_topic.audit_job import Log, run_audit
from migrate_groups.spark.offsets_topic.commits_over_time import commits
from migrate_groups.spark.offsets_topic.evidence import REASONS
from migrate_groups.spark.offsets_topic.offsets_log import RAW, copied_log, decode, in_place
from migrate_groups.spark.reconciliation.job import run_reconcile
from migrate_groups.spark.reconciliation.reconcile import group_topic_summary, partition_verdict
from tests.spark.test_audit import CHECKPOINT, NOON, Case, Tables, of_members
from tests.spark.test_history import HOUR
from tests.support.offsets_records import commit_key, commit_value, group_key
from tests.support.raw_log import raw_log

OURS = ("new", 10)


def operators(table: DataFrame) -> Counter[str]:
    """Return the number of times that each operator occurs in the table's physical plan."""
    plan: str = table._jdf.queryExecution().executedPlan().toString()
    return Counter(line.strip("+-:* ()0123456789").split(" ")[0] for line in plan.splitlines())


def test_large_reconcile_sorts_no_row(snapshot: Callable[..., DataFrame]) -> None:
    """If a partition has one row in BEFORE and one in AFTER, reconcile exchanges rows once, by topic, and sorts none.

    Spark broadcasts nothing here, because AFTER has no other groups, and a summary does not show the source groups.
    """
    side = snapshot({}).withColumn("cluster_id", F.lit("a"))
    found = operators(group_topic_summary(partition_verdict(side, side, single=True, other_groups=False)))
    assert (found["Exchange"], found["BroadcastExchange"], found["BroadcastHashJoin"]) == (1, 0, 0)
    assert found["Sort"] + found["SortAggregate"] + found["SortMergeJoin"] == 0


def test_hand_over_exchanges_commits_once(spark: SparkSession) -> None:
    """If no commit is late and the log has no gaps, the audit exchanges the commits once.

    It sorts them by member, by group and by partition, and aggregates them by hash. The only join is a broadcast join,
    which adds to each group the offset from which it is judged.
    """
    tables = Tables(spark, [Case((OURS, ("new", 13)))])
    found = operators(hand_over(tables.chains, None, local_table(spark, [], REASONS)))
    assert (found["Exchange"], found["Sort"], found["Window"]) == (1, 3, 4)
    assert (found["BroadcastHashJoin"], found["SortMergeJoin"], found["SortAggregate"]) == (1, 0, 0)


def test_commits_need_one_window(spark: SparkSession) -> None:
    """To find the commit before each commit, the history needs one shuffle and one window.

    Sums are made by hash, without sorting.
    """
    row = (0, CHECKPOINT, NOON, "record", commit_key("new"), commit_value(10))
    log = decode(raw_log(spark, [row])).localCheckpoint()
    found = operators(commits(log, HOUR, NOON))
    assert (found["Window"], found["Exchange"], found["Sort"], found["SortAggregate"]) == (1, 1, 1, 0)


@pytest.mark.skipif(
    pyspark.__version__.startswith("4.0."),
    reason="PySpark 4.0 makes a larger method (8,647 bytes), so decoding is slower",
)
def test_decoding_is_compiled(compiled: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In each job, the method that Spark generates to decode a log is small enough for the JVM to compile.

    Otherwise the JVM would interpret the method, which takes three times as long.
    """
    compiled.createDataFrame([], RAW).write.parquet(str(tmp_path / "log"))
    rows = decode(copied_log(compiled, str(tmp_path / "log")))
    of_audit = audit.of_groups(rows, local_table(compiled, [], audit.GROUPS)).select(*audit_job._COLUMNS)
    of_history = rows.where(in_place(F.col("problem").isNotNull())).select(*history_job._COLUMNS)
    of_moment = decode(copied_log(compiled, str(tmp_path / "log")), "producer_id").select(*offsets_at._COLUMNS)
    for table in (rows, of_audit, of_history, of_moment):
        table.explain("codegen")
        sizes = [int(size) for size in re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)]
        assert sizes
        assert max(sizes) <= 8000


def test_clean_audit_runs_few_jobs(spark: SparkSession) -> None:
    """A clean audit runs at most four Spark jobs: send group names, sum up records, count evidence, count verdicts."""
    key = commit_key("new")
    rows = [(0, CHECKPOINT + at, NOON, "record", key, commit_value(offset)) for at, offset in ((0, 10), (2, 13))]
    raw = raw_log(spark, [*rows, (0, CHECKPOINT + 1, NOON, "record", group_key("new"), of_members(1))])
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    given = [("old", "t", "new", "t", 0, 10, None, 10, [10], None, True, None)]
    found = run_audit(
        spark, given, Log(raw, [("old", 0, CHECKPOINT), ("new", 0, CHECKPOINT)], [(0, CHECKPOINT, CHECKPOINT + 3, 0)])
    )
    assert (found.problems, found.undetermined, found.new["starts-at-snapshot"]) == (0, 0, 1)
    assert len(set(tracker.getJobIdsForGroup()) - before) <= 4


def test_reconcile_of_local_files_runs_two_jobs(spark: SparkSession, csv_file: Callable[..., str]) -> None:
    """For files on this machine, reconcile runs two Spark jobs: one examines BEFORE and AFTER, the other compares them.

    The headers of the files are read without a job.
    """
    header = "cluster_id,group,source_group,topic,partition,offset"
    before = csv_file(header, "c,new,old,t,0,10", name="before.csv")
    after = csv_file(header, "c,new,,t,0,12", name="after.csv")
    tracker = spark.sparkContext.statusTracker()
    jobs = set(tracker.getJobIdsForGroup())
    assert run_reconcile(spark, [before], [after]).clean
    assert len(set(tracker.getJobIdsForGroup()) - jobs) == 2


def chain(case: Case) -> tuple[Any, ...]:
    """Compute with a plain Python loop what `audit.hand_over` computes.

    It returns first_own, committed, commits, rewinds, deletions, and the number of commits without membership.
    """
    last: int | None = case.before
    reached = last
    ours = is_first = True
    members: set[str] = set()
    own: list[int] = []
    rewinds = deletions = unattended = 0
    for group, *what in case.records:
        if group != "new":
            continue
        match what:
            case ["members", number]:
                members = members - {""} | ({""} if number else set())
                continue
            case ["joins", member]:
                members.add(member)
                continue
            case ["leaves", member]:
                members.discard(member)
                continue
        (offset,) = what
        by_consumer = bool(members) or case.without_membership
        deletions += offset is None
        ours = ours and ((offset in case.ours and (is_first or offset != last)) or _repeats(offset, last, by_consumer))
        if offset is not None and not ours and not _repeats(offset, last, by_consumer):
            own.append(offset)
            rewinds += reached is not None and offset < reached
            unattended += not by_consumer
        last, is_first = offset, False
        reached = reached if offset is None else offset
    return own[0] if own else None, last, len(own), rewinds, deletions, unattended


def _repeats(offset: int | None, last: int | None, by_consumer: bool) -> bool:
    return offset is not None and offset == last and not by_consumer


def test_random_logs_are_judged_as_one_record_after_the_other(spark: SparkSession) -> None:
    """For 300 random logs, the numbers that the audit computes equal those of a plain loop over the records."""
    chance = random.Random(22)
    offsets = [8, 10, 10, 12, 18, None]

    def case() -> Case:
        members = [("members", 0), ("members", 2), *((verb, each) for verb in ("joins", "leaves") for each in "ab")]
        said = [*((offset,) for offset in offsets), *members]
        records = tuple(
            (chance.choice(["new", "new", "old"]), *chance.choice(said)) for _ in range(chance.randrange(12))
        )
        ours = chance.choice([(), (10,), (8, 10)])
        return Case(
            records,
            before=chance.choice([None, 8, 10]),
            written=chance.choice([None, 10]),
            ours=ours,
            without_membership=chance.random() < 0.2,
        )

    cases = [case() for _ in range(300)]
    tables = Tables(spark, cases)
    found: list[Row] = tables.proof()
    unattended = {row.group: row.without_members for row in tables.chains.where("topic IS NOT NULL").collect()}
    columns = ("first_own", "committed", "commits", "rewinds", "deletions")
    for asked, row in zip(cases, found, strict=True):
        assert (*(row[name] for name in columns), unattended[row.group]) == chain(asked), asked
        late = sum(len(what) == 1 and what[0] is not None for group, *what in asked.records if group == "old")
        assert row.late_commits == late, asked
