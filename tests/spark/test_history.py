"""What ``history`` computes (lag over time, commits of groups), from logs that the tests make record by record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from migrate_groups.errors import Undetermined, UsageError
from migrate_groups.files.runs.copied_log import CopiedLog, save_log_ends
from migrate_groups.model.offsets_topic import OWN_GROUPS
from migrate_groups.spark.local_rows import local_table, plain_rows
from migrate_groups.spark.offsets_topic.commits_over_time import LOG_ENDS, Moments, by_group, commits, history, resets
from migrate_groups.spark.offsets_topic.history_job import History, Reset, run_history
from migrate_groups.spark.offsets_topic.offsets_log import CopiedFiles, decode
from tests.support.offsets_records import commit_key, commit_value
from tests.support.raw_log import raw_log

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MEMBERS = "group string, log_time timestamp, until timestamp, clients array<string>"


def at(hours: float) -> datetime:
    return NOON + hours * HOUR


# Hours after noon, group, topic, partition, offset (None: deleted), and a topic id if the commit has one.
EVENTS: list[tuple[float, str, str, int, int | None]] = [
    (0.1, "g", "t", 0, 5),
    (0.2, "g", "t", 0, 10),
    (0.5, "g", "t", 1, 4),
    (1.0, "g", "t", 0, 20),
    (1.2, "h", "t", 0, 1),
    (2.5, "g", "u", 0, 7),
    (3.1, "g", "t", 0, 15),
    (3.2, "g", "t", 1, None),
    (3.9, "g", "t", 0, 40),
]
ENDS = [("t", 0, hour, 10 + 10 * hour) for hour in (1, 2, 3)] + [("t", 1, hour, 4) for hour in (1, 2, 3)]


_COMMITS: dict[str, DataFrame] = {}


def tables(spark: SparkSession, events: list[Any] = EVENTS) -> Any:
    """Return the tables of commits and of log end offsets, and the points in time 13:00, 14:00, 15:00 and 15:30."""
    rows = [
        (7, number, at(hours), "record", commit_key(*place), None if value_of[0] is None else commit_value(*value_of))
        for number, (hours, *place, value_of) in enumerate((*event[:4], event[4:]) for event in events)
    ]
    if str(events) not in _COMMITS:  # so that they are decoded once for all tests
        _COMMITS[str(events)] = commits(decode(raw_log(spark, rows)), HOUR, at(3.5)).localCheckpoint()
    made = _COMMITS[str(events)]
    ends = [(topic, partition, at(hour), end) for topic, partition, hour, end in ENDS]
    last = [("t", 0, at(3.5), 40), ("t", 1, at(3.5), 4), ("u", 0, at(3.5), None)]
    return made, local_table(spark, [*ends, *last], LOG_ENDS), Moments.between(at(0.1), HOUR, at(3.5))


def no_members(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], MEMBERS)


@pytest.mark.parametrize(
    ("earliest", "last", "expected"),
    [
        (0.1, 3.5, [1, 2, 3, 3.5]),
        (0.1, 3.0, [1, 2, 3]),
        (0.0, 1.5, [1, 1.5]),
        (0.1, 0.4, [0.4]),
        (0.1, 1.0, [1]),
    ],
)
def test_moments_are_full_hours_and_the_present(earliest: float, last: float, expected: list[float]) -> None:
    """An hourly history has a point in time at every full hour after the first commit, and one at the present."""
    moments = Moments.between(at(earliest), HOUR, at(last))
    assert moments.all() == [at(hours) for hours in expected]
    assert len(moments) == len(expected)


def test_lag_uses_the_last_commit_at_or_before_each_moment(spark: SparkSession) -> None:
    """The lag at a point in time is the log end offset minus the last offset that was committed up to then.

    Commits, rewinds and deletions since the previous point in time are counted. The lag leaves out a partition whose
    committed offset was deleted, and is null for a topic without known log end offsets.
    """
    made, ends, moments = tables(spark)
    found = history(made, ends, no_members(spark), moments, "c").orderBy("group", "topic", "taken_at").collect()
    assert {row.cluster_id for row in found} == {"c"}
    figures = [
        (
            row.group,
            row.topic,
            (row.taken_at.astimezone(UTC) - NOON) / HOUR,
            row.partitions,
            row.committed,
            row.lag,
            row.produced,
            row.consumed,
            row.commits,
            row.rewinds,
            row.deletions,
        )
        for row in found
    ]
    assert figures == [
        ("g", "t", 1.0, 2, 2, 0, None, None, 4, 0, 0),
        ("g", "t", 2.0, 2, 2, 10, 10, 0, 0, 0, 0),
        ("g", "t", 3.0, 2, 2, 20, 10, 0, 0, 0, 0),
        ("g", "t", 3.5, 2, 1, 0, 0, 20, 2, 1, 1),
        ("g", "u", 3.0, 1, 1, None, None, None, 1, 0, 0),
        ("g", "u", 3.5, 1, 1, None, None, 0, 0, 0, 0),
        ("h", "t", 2.0, 1, 1, 29, None, None, 1, 0, 0),
        ("h", "t", 3.0, 1, 1, 39, 10, 0, 0, 0, 0),
        ("h", "t", 3.5, 1, 1, 39, 0, 0, 0, 0, 0),
    ]
    assert [row.last_commit_at and row.last_commit_at.astimezone(UTC) for row in found[:2]] == [at(1.0), None]


def test_lag_is_null_if_the_log_end_is_below_the_committed_offset(spark: SparkSession) -> None:
    """The lag is null, not negative, if the log end offset is below the committed offset, as in a recreated topic."""
    made, ends, moments = tables(spark, [(0.5, "g", "t", 0, 35), (2.5, "g", "t", 0, 1)])
    found = history(made, ends, no_members(spark), moments, "c").orderBy("taken_at").collect()
    assert [(row.committed, row.lag) for row in found] == [(1, None), (1, None), (1, 39), (1, 39)]


@pytest.mark.parametrize("nameless", [[], [(0.7, "g", "t", 0, 35)], [(2.3, "g", "t", 0, 35)]])
@pytest.mark.parametrize(("ids", "rewinds", "consumed"), [((), 1, -34), (("0A" * 16, "0B" * 16), 0, None)])
def test_commits_of_a_recreated_topic_are_no_rewind(
    spark: SparkSession, ids: Any, rewinds: int, consumed: Any, nameless: list[Any]
) -> None:
    """A commit at a lower offset is not counted as a rewind if it has another topic id, and ``consumed`` is null.

    A commit between them without a topic id, as in a transaction, changes nothing. If no commit has a topic id, the
    commit at a lower offset is counted as a rewind.
    """
    first, second = ([each] for each in ids) if ids else ([], [])
    events = [(0.5, "g", "t", 0, 35, *first), *nameless, (2.5, "g", "t", 0, 1, *second)]
    made, ends, moments = tables(spark, events)
    found = history(made, ends, no_members(spark), moments, "c").orderBy("taken_at").collect()
    assert [(row.committed, row.rewinds, row.consumed) for row in found] == [
        (1, 0, None),
        (1, 0, 0),
        (1, rewinds, consumed),
        (1, 0, 0),
    ]


def test_commits_are_ordered_by_the_log_and_not_by_time(spark: SparkSession) -> None:
    """The history takes commits in the order of the log, not by their times.

    The clock of a new coordinator may be behind the previous one's.
    """
    events = [(0.9, "g", "t", 0, 10), (0.4, "g", "t", 0, 12), (1.5, "g", "t", 0, 20)]
    made, ends, moments = tables(spark, events)
    found = history(made, ends, no_members(spark), moments, "c").orderBy("taken_at").collect()
    assert [(row.lag, row.commits) for row in found] == [(8, 2), (10, 1), (20, 0), (20, 0)]


def test_each_moment_has_the_members_since_the_previous_one(spark: SparkSession) -> None:
    """Each point in time lists, once and in order, the members that the group had since the previous point in time."""
    made, ends, moments = tables(spark)
    who = [
        ("g", at(0.3), at(1.5), ["b/h", "a/h"]),
        ("g", at(1.5), at(1.6), []),
        ("g", at(1.6), None, ["a/h", "c/h"]),
        ("h", at(0.2), at(0.9), None),
    ]
    found = history(made, ends, spark.createDataFrame(who, MEMBERS), moments, "c").orderBy("group", "topic", "taken_at")
    clients: dict[tuple[str, str], list[list[str]]] = {}
    for row in found.collect():
        clients.setdefault((row.group, row.topic), []).append(row.clients)
    later = ["a/h", "c/h"]
    assert clients == {
        ("g", "t"): [["a/h", "b/h"], ["a/h", "b/h", "c/h"], later, later],
        ("g", "u"): [later, later],
        ("h", "t"): [[], [], []],
    }


def test_each_group_has_one_row(spark: SparkSession) -> None:
    """The table of groups has one row for each group, with the number and the times of its commits.

    The row also has the number of records that are missing in the group's partition of the offsets topic.
    """
    made, ends, moments = tables(spark)
    evidence = spark.createDataFrame([(7, 3), (8, 99)], "log_partition int, missing bigint")
    found = by_group(made, history(made, ends, no_members(spark), moments, "c"), evidence).orderBy("group").collect()
    cells = [[row[name] for name in row.__fields__ if not name.endswith("_at")] for row in found]
    assert cells == [[7, "g", 2, 3, 7, 1, 1, 20, 0, 3], [7, "h", 1, 1, 1, 0, 0, 39, 39, 3]]
    times = [(row.first_commit_at.astimezone(UTC), row.last_commit_at.astimezone(UTC)) for row in found]
    assert times == [(at(0.1), at(3.9)), (at(1.2), at(1.2))]


def test_a_reset_has_the_last_moment_before_it(spark: SparkSession) -> None:
    """A group's rewinds within one interval are one reset, with the last millisecond before the first of them."""
    events = [
        *((0.1, "g", "t", 0, 10), (0.1, "g", "t", 1, 10), (0.1, "g", "u", 0, 10), (0.1, "h", "t", 0, 5)),
        *((0.2, "g", "t", 1, 4), (0.3, "g", "u", 0, 9), (0.4, "g", "t", 0, 11)),
        *((1.5, "g", "t", 0, 1), (1.6, "h", "t", 0, 6)),
    ]
    millisecond = timedelta(milliseconds=1)
    found = plain_rows(resets(tables(spark, events)[0]).orderBy("before"), Reset)
    assert found == (
        ("g", ["t", "u"], 2, 7, at(0.2) - millisecond),
        ("g", ["t"], 1, 10, at(1.5) - millisecond),
    )


def copied(folder: Path, events: list[Any]) -> str:
    """Write these events as a copied log of partition 7 of the offsets topic, and return the folder's path.

    The log lacks the record before the last one.
    """
    rows = [
        (7, number, at(hours), "record", commit_key(*of), None if offset is None else commit_value(offset), None)
        for number, (hours, *of, offset) in enumerate(events)
    ]
    CopiedLog.load(folder, "c").with_partitions({7: 0}).with_records([*rows[:-2], *rows[-1:]], {7: len(rows)})
    return str(folder)


def test_job_requests_log_ends_once_and_writes_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """The job of ``history`` requests all log end offsets, of all partitions and points in time, with one call.

    It writes one table, and returns groups, lag over time, and evidence. Probe groups are in it only if they are named.
    It is refused without any commit, or with over 2,000 points in time.
    """
    asked: list[Any] = []
    probe = f"{OWN_GROUPS}barrier.3-0"

    def log_ends(partitions: Any, moments: Any) -> str:
        asked.append((sorted(partitions), moments))
        save_log_ends(((*each, when, 50) for each in partitions for when in moments), tmp_path / "ends.parquet")
        return str(tmp_path / "ends.parquet")

    def run(*groups: str, now: float = 3.5, out: str = "table", since: float | None = None) -> History:
        events = [*EVENTS[:5], (1.5, probe, "t", 0, 0), *EVENTS[5:]]
        folder, ranges = copied(tmp_path / out / "log", events), [(7, 0, len(events), 0)]
        return run_history(
            spark,
            CopiedFiles(folder, ranges, "c"),
            log_ends,
            groups=groups or None,
            every=HOUR,
            now=at(now),
            out=tmp_path / out / "t",
            since=None if since is None else at(since),
        )

    for name in ("table", "none", "long", "late", "probe"):
        (tmp_path / name).mkdir()
    found = run()
    assert asked == [([("t", 0), ("t", 1), ("u", 0)], [at(1), at(2), at(3), at(3.5)])]
    assert [(each.group, each.commits, each.last_lag, each.missing) for each in found.groups] == [
        ("g", 7, 99, 1),
        ("h", 1, 49, 1),
    ]
    assert (found.found, found.first, found.last) == (2, at(1), at(3.5))
    assert [(each.group, each.back) for each in found.resets] == [("g", 5)]
    assert {(each.group, each.topic) for each in found.timeline} == {
        ("g", None),
        ("g", "t"),
        ("g", "u"),
        ("h", None),
        ("h", "t"),
    }
    assert [(each.log_partition, each.missing) for each in found.evidence] == [(7, 1)]
    assert spark.read.parquet(str(tmp_path / "table" / "t")).count() == 4 + 2 + 3
    with pytest.raises(Undetermined, match="no commit of these groups"):
        run("no-such-group", out="none")
    with pytest.raises(UsageError, match=r"2,001 moments.*longer --every"):
        run(now=2001, out="long")
    late = run(now=2001, out="late", since=1999)
    assert (late.first, late.last) == (at(2000), at(2001))
    assert [(each.group, each.last_lag) for each in late.groups] == [("g", 99), ("h", 49)]
    assert [each.group for each in run(probe, out="probe").groups] == [probe]
