"""Committed offsets at a moment, from logs that the tests make record by record, and from simulated ones."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row, SparkSession

from migrate_groups.errors import UsageError
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.migration.reading.copy_log import copy_log
from migrate_groups.snapshots.times import moment_of
from migrate_groups.spark.offsets_topic.offsets_at import KNOWN, PENDING, UNKNOWN, offsets_at
from migrate_groups.spark.offsets_topic.offsets_log import CopiedFiles, copied_log
from migrate_groups.spark.reconciliation.snapshots import SNAPSHOT
from tests.support.compacted_log import FIRST_TIME, SimulatedOffsetsTopic, SimulatedPartition
from tests.support.offsets_records import commit_key, commit_value
from tests.support.raw_log import raw_log

MOMENT = datetime(2026, 11, 20, 12, tzinfo=UTC)
COPIED_AT = MOMENT + timedelta(days=1)

Record = tuple[int, int, str, bytes, bytes | None, int | None]
"""The offset of a record in the log, its time in seconds, and its other columns."""


def commit(
    place: int, offset: int | None, *, producer: int | None = None, of: int = 0, at: int | None = None
) -> Record:
    """Return a commit of partition ``of``, or a deletion. Its time is ``at``, or as many seconds as its log offset."""
    value = None if offset is None else commit_value(offset)
    return place, place if at is None else at, "record", commit_key("g", "t", of), value, producer


def marker(place: int, producer: int) -> Record:
    return place, place, "control", b"\0\0\0\1", None, producer


class Case(NamedTuple):
    """Records of group g in a log, a second, and the expected evidence and offset of its partitions from 0 on.

    second: None for the end of the copy. copies: how far each copy went; the last one went to the last record. unread:
    the log was compacted while it was copied.
    """

    records: Sequence[Record]
    second: int | None
    expected: Sequence[tuple[str, int | None]]
    held_back: int = 0
    copies: Sequence[int] = ()
    unread: bool = False


HISTORY = [commit(0, 5), commit(1, 6), commit(2, 9, of=1), commit(3, None)]
TRANSACTION = [commit(0, 1), commit(1, 2, producer=5), commit(2, 3), marker(3, 5)]
ALONE = [commit(0, 1), commit(1, 2, producer=5), marker(2, 6), marker(3, 5)]
ABORTED = [commit(0, 1), (1, 1, "aborted", commit_key("g"), commit_value(2), 5), marker(2, 5)]
COMPACTED = [commit(3, 7), commit(4, 8)]
HOLE = [commit(0, 1), commit(1, 2, of=1), commit(3, 3, of=1)]
BROKEN = [commit(0, 1), (1, 1, "record", commit_key("g"), b"\0\4", None), commit(2, 2, of=1)]
BACK = [commit(0, 1), commit(1, 2, at=5), commit(2, 3, at=1)]
CASES = {
    "the last commit before the moment counts": Case(HISTORY, 0, [(KNOWN, 5), (KNOWN, None)]),
    "a commit at the moment counts": Case(HISTORY, 1, [(KNOWN, 6), (KNOWN, None)]),
    "after a deletion nothing is committed": Case(HISTORY, 3, [(KNOWN, None), (KNOWN, 9)]),
    "the end of the copy": Case(HISTORY, None, [(KNOWN, None), (KNOWN, 9)]),
    "before a transaction": Case(TRANSACTION, 0, [(KNOWN, 1)]),
    "in a transaction the commit is pending": Case(TRANSACTION, 1, [(PENDING, None)]),
    "a later commit counts, whether the transaction has ended": Case(TRANSACTION, 2, [(KNOWN, 3)]),
    "the end of a transaction does not replace a later commit": Case(TRANSACTION, 3, [(KNOWN, 3)]),
    "the end of another transaction does not count": Case(ALONE, 2, [(PENDING, None)]),
    "a commit counts from the end of its transaction": Case(ALONE, 3, [(KNOWN, 2)]),
    "an aborted commit is not pending": Case(ABORTED, 1, [(KNOWN, 1)]),
    "an aborted commit does not count": Case(ABORTED, 2, [(KNOWN, 1)]),
    "an aborted commit does not count at the end": Case(ABORTED, None, [(KNOWN, 1)]),
    "the first record is from after the moment": Case(COMPACTED, 2, [(UNKNOWN, None)]),
    "the log is compacted before the record": Case(COMPACTED, 3, [(KNOWN, 7)]),
    "one copy has a hole after the record": Case(HOLE, 3, [(KNOWN, 1), (KNOWN, 3)]),
    "the hole is of a later copy": Case(HOLE, 3, [(UNKNOWN, None), (KNOWN, 3)], copies=[2]),
    "the hole may be from the moment": Case(HOLE, 1, [(UNKNOWN, None), (UNKNOWN, None)], copies=[2]),
    "the hole is from after the moment": Case(HOLE, 0, [(KNOWN, 1), (KNOWN, None)], copies=[2]),
    "compaction while the log was copied": Case(HOLE, 3, [(UNKNOWN, None), (KNOWN, 3)], unread=True),
    "a transaction hides the end": Case(HISTORY[:2], None, [(PENDING, None)], held_back=3),
    "a transaction hides records until the moment": Case(HISTORY[:2], 9, [(PENDING, None)], held_back=3),
    "a transaction hides only later records": Case(HISTORY[:2], 0, [(KNOWN, 5)], held_back=3),
    "a later record can't be decoded": Case(BROKEN, 2, [(UNKNOWN, None), (KNOWN, 2)]),
    "a record after the moment can't be decoded": Case(BROKEN, 0, [(KNOWN, 1), (KNOWN, None)]),
    "records were copied twice": Case([commit(0, 1), commit(0, 1)], 0, [(UNKNOWN, None)]),
    "before the clock went forward": Case(BACK, 4, [(KNOWN, 1)]),
    "after the clock went back": Case(BACK, 5, [(KNOWN, 3)]),
}
"""Each in its own partition of one log."""


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, list[Row]]:
    """The committed offsets of each case, in the order of their partitions."""
    found: dict[str, list[Row]] = {name: [] for name in CASES}
    for is_last in (False, True):
        records, files = [], CopiedFiles("", ranges := [], "c", consistent := [], COPIED_AT)
        for number, case in enumerate(CASES.values()):
            if (case.second is None) is is_last:
                end = case.records[-1][0] + 1
                ranges.append((number, 0, end, case.held_back))
                bounds = [0, *case.copies, end]
                consistent += [] if case.unread else [(number, *each) for each in itertools.pairwise(bounds)]
                for place, second, *rest in case.records:
                    records.append((number, place, MOMENT + timedelta(seconds=second - (case.second or 0)), *rest))
        for row in (
            offsets_at(raw_log(spark, records), files, None if is_last else MOMENT).orderBy("partition").collect()
        ):
            found[[*CASES][row.log_partition]].append(row)
    return found


@pytest.mark.parametrize("name", CASES)
def test_offset_at_a_moment(rows: dict[str, list[Row]], name: str) -> None:
    """The offset at a moment is the one that the coordinator would have answered, or it is unknown or pending."""
    assert [(row.evidence, row.offset) for row in rows[name]] == CASES[name].expected


def test_each_row_is_one_of_a_snapshot_and_says_why(rows: dict[str, list[Row]]) -> None:
    """A row has the columns of a snapshot, the time of its commit, and the reason if its offset is not known."""
    row = rows["a commit at the moment counts"][0]
    assert row.__fields__[: len(SNAPSHOT)] == SNAPSHOT.names
    assert (row.cluster_id, row.group, row.source_group, row.group_state) == ("c", "g", None, "Unknown")
    assert (row.taken_at.astimezone(UTC), row.committed_at.astimezone(UTC)) == (MOMENT, MOMENT)
    assert row.reason is None
    (absent,) = rows["the first record is from after the moment"]
    assert absent.reason.endswith("the copied log knows it since 2026-11-20T12:00:01.000Z")
    assert absent.missing == 3
    assert "offset 2 of partition" in rows["the hole is of a later copy"][0].reason


def test_a_moment_after_the_copy_is_refused(spark: SparkSession) -> None:
    """A moment from after the copy is refused."""
    with pytest.raises(UsageError, match="the log was copied at 2026-11-20T12:00:00"):
        offsets_at(raw_log(spark, []), CopiedFiles("", [], "c", [], MOMENT), COPIED_AT)


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("compacts_meanwhile", [False, True])
def test_no_known_offset_of_a_compacted_log_is_wrong(
    spark: SparkSession, tmp_path: Path, *, compacts_meanwhile: bool, long: bool
) -> None:
    """Of random groups, every offset that is known at any moment is right, whenever the log was copied and compacted.

    Groups commit in transactions or not, and delete offsets. The log is compacted as Kafka does it, tombstones and
    markers too, before, between and while several copies are made. A log that was copied before each compaction has no
    unknown offset.
    """
    chance, number_of = random.Random(20261127), 2_000 if long else 80
    partitions = [SimulatedPartition(number, chance) for number in range(number_of)]
    log = CopiedLog(folder=tmp_path, cluster_id="c", starts={}, ends={})
    log = log.with_partitions(dict.fromkeys(range(number_of), 0))
    for turn in range(4):
        for each in partitions:
            each.live(chance.randrange(60))
            if each.number >= 10:  # the first ten are copied whole
                for _ in range(chance.randrange(3)):
                    each.compact()
        meanwhile = compacts_meanwhile and turn < 3
        topic: Any = SimulatedOffsetsTopic(partitions, chance, compacts_meanwhile=meanwhile)
        log = copy_log(topic, topic, log, range(number_of if turn in (0, 3) else 10), lambda *_: None)
    last = max(each.time for each in partitions)
    ranges = [(number, *each) for number, known in log.consistent.items() for each in known]
    files = CopiedFiles(str(tmp_path), log.ranges, "c", ranges, COPIED_AT)
    raw, counts = copied_log(spark, str(tmp_path)), Counter[tuple[str, bool]]()
    for moment in [*(chance.randrange(FIRST_TIME, last) for _ in range(6 if long else 2)), last]:
        for row in offsets_at(raw, files, moment_of(moment)).collect():
            number = int(row.group.split("-")[1])
            truth = partitions[number].at(moment).get((row.group, row.partition))
            counts[row.evidence, number < 10] += 1
            if row.evidence == KNOWN:
                assert row.offset == truth, (number, row)
    assert min(counts[evidence, False] for evidence in (KNOWN, UNKNOWN, PENDING)) > 30
    assert counts[KNOWN, True] > 30
    if not compacts_meanwhile:
        assert counts[UNKNOWN, True] == 0
