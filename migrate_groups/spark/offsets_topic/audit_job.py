"""The audit job: it judges a hand-over from the log of the offsets topic, and returns plain values of bounded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.local_table import local_table
from migrate_groups.spark.offsets_topic import audit
from migrate_groups.spark.offsets_topic.chains import chains, is_group_record
from migrate_groups.spark.offsets_topic.evidence import REASONS, Evidence, Range, evidence, reasons
from migrate_groups.spark.offsets_topic.offsets_log import decode, in_place

MAX_ROWS = 1000
"""The largest number of rows in the summary and in each list of partitions, commits, deletions or records."""

_COUNTS = ("all_commits", "deletions", "group_tombstones", "malformed")
# What is read of each record.
_COLUMNS = (
    *("log_partition", "log_offset", "log_time", "kind", "problem", "fence", "is_target"),
    *("group", "topic", "partition", "offset", "topic_id", "tombstone"),
)


class AuditedTopic(NamedTuple):
    """The verdicts on one topic of a target group.

    old, new: the number of partitions by the source group's and by the target group's verdict. rewinds: the number of
    partitions with a commit at a lower offset than the previous commit.
    """

    source_group: str | None
    group: str
    topic: str
    old: dict[str, int]
    new: dict[str, int]
    rewinds: int


class Partition(NamedTuple):
    """A partition with a problem, with a rewind, or with the verdict ``undetermined``.

    stopped_at: the source group's committed offset at the hand-over; ``written`` if it had none. written: the offset
    that the migration wrote for the target group. old, new: the verdicts on the source group and on the target group.
    first_own: the offset of the target group's first commit that the migration did not write. committed: its last
    committed offset. reason: why the evidence is in doubt; None: it is not.
    """

    source_group: str | None
    group: str
    topic: str
    partition: int
    stopped_at: int | None
    written: int | None
    old: str | None
    late_commits: int
    new: str | None
    first_own: int | None
    committed: int | None
    rewinds: int
    reason: str | None


class LateCommit(NamedTuple):
    """A commit of a source group after the hand-over.

    beyond: the committed offset minus the source group's offset at the hand-over. This is the number of records that
    both groups process. If it is negative, the source group committed a lower offset.
    """

    group: str
    topic: str
    partition: int
    log_time: datetime
    offset: int
    beyond: int | None


class Deletion(NamedTuple):
    """The deletion or expiry of a committed offset. If topic and partition are None, the whole group was deleted."""

    group: str
    topic: str | None
    partition: int | None
    log_time: datetime


class Malformed(NamedTuple):
    """A record that can't be decoded. problem: the reason."""

    log_partition: int
    log_offset: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of `run_audit`. Each table has at most `MAX_ROWS` rows.

    old, new: the number of partitions by the source group's and by the target group's verdict. rewinds: the number of
    partitions with a commit at a lower offset than the previous commit. problems: the number of partitions with a
    verdict of `audit.PROBLEMS` or a rewind. undetermined: the number of other partitions with the verdict
    ``undetermined``. doubtful: the partitions that these two numbers count.
    """

    old: dict[str, int]
    new: dict[str, int]
    rewinds: int
    summary: tuple[AuditedTopic, ...]
    doubtful: tuple[Partition, ...]
    late_commits: tuple[LateCommit, ...]
    deletions: tuple[Deletion, ...]
    evidence: tuple[Evidence, ...]
    malformed: tuple[Malformed, ...]
    problems: int
    undetermined: int


def run_audit(
    spark: SparkSession,
    raw: DataFrame,
    handed_over: Iterable[tuple[Any, ...]],
    groups: Iterable[tuple[str, int, int]],
    ranges: Iterable[Range],
) -> Audit:
    """Judge a hand-over from the log of ``__consumer_offsets``.

    raw: the log (columns of `offsets_log.RAW`); it must return the same rows each time it is read. handed_over, groups,
    ranges: rows of `audit.HANDED_OVER` and of `audit.GROUPS` without their last columns, and of `evidence.Range`.
    """
    asked, moved, partitions = [*groups], [*handed_over], [*ranges]
    number_of, targets = {group: number for group, number, _ in asked}, {target for _, target, *_ in moved}
    of_groups = local_table(spark, ((*each, each[0] in targets) for each in asked), audit.GROUPS)
    given = local_table(spark, ((*each, number_of[each[1]]) for each in moved), audit.HANDED_OVER)
    raw = raw.where(F.col("log_partition").isin([each[0] for each in partitions]))
    log = audit.of_groups(decode(raw), of_groups).select(*_COLUMNS)
    # A checkpoint and not a cache, because Spark compares each later plan with that of every cached table.
    summed = chains(log, given).localCheckpoint(eager=False)
    counts = summed.groupBy("log_partition", "group").agg(*(F.sum(name).alias(name) for name in _COUNTS)).collect()
    malformed: Counter[int] = Counter()
    for row in counts:
        malformed[row.log_partition] += row.malformed
    found = evidence(raw, malformed, partitions)
    sources = {source for source, *_ in moved if source is not None}
    is_late = any(row.all_commits for row in counts if row.group in sources)
    is_deleted = any(row.deletions or row.group_tombstones for row in counts)
    if is_late or is_deleted or malformed.total():
        # Only the records that a list may name are kept. A clean log has none, so it is read once.
        named = F.col("problem").isNotNull() | F.col("tombstone") | is_group_record() | F.col("group").isin(*sources)
        log = log.where(in_place(named)).localCheckpoint(eager=False)
    deleted: set[str] = set()
    if any(row.group_tombstones for row in counts):
        deleted = {row.group for row in audit.group_deletions(log).select("group").distinct().collect()}
    late = audit.late_commits(log, given) if is_late else None
    doubts = local_table(spark, reasons(asked, found, deleted), REASONS)
    proof = audit.hand_over(summed, late, doubts).localCheckpoint(eager=False)
    return _concluded(log, proof, late, audit.deletions(log, given) if is_deleted else None, found)


def _concluded(
    log: DataFrame, proof: DataFrame, late: DataFrame | None, gone: DataFrame | None, found: tuple[Evidence, ...]
) -> Audit:
    problem = F.col("old").isin(*audit.PROBLEMS) | F.col("new").isin(*audit.PROBLEMS) | (F.col("rewinds") > 0)
    problem = F.coalesce(problem, F.lit(False))
    unsure = ~problem & F.coalesce((F.col("old") == "undetermined") | (F.col("new") == "undetermined"), F.lit(False))
    by = proof.groupBy("source_group", "group", "topic", "old", "new").agg(
        F.count("*").alias("partitions"),
        F.count_if(F.col("rewinds") > 0).alias("rewinds"),
        F.count_if(problem).alias("problems"),
        F.count_if(unsure).alias("undetermined"),
    )
    # Sorted in Python, because Spark would first run one more job to sample the rows.
    counts = sorted(by.collect(), key=lambda row: (row.group, row.topic, row.source_group or ""))
    problems, undetermined = sum(row.problems for row in counts), sum(row.undetermined for row in counts)
    old = _count(counts, "old", audit.OLD_VERDICTS)
    in_order = ("log_time", "log_partition", "log_offset")
    # A table is read only if the counts show that it has rows, because each read takes half a second or more.
    doubtful = late_rows = malformed = ()
    if problems or undetermined:
        named = proof.where(problem | unsure).orderBy(~problem, "group", "topic", "partition")
        doubtful = plain_rows(named, Partition)
    if late is not None and old["late-commit"]:
        late_rows = plain_rows(late.where(~F.col("recreated")).orderBy(*in_order), LateCommit)
    if any(each.malformed for each in found):
        wrong = log.where(F.col("problem").isNotNull()).orderBy("log_partition", "log_offset")
        malformed = plain_rows(wrong, Malformed)
    return Audit(
        old=old,
        new=_count(counts, "new", audit.NEW_VERDICTS),
        rewinds=sum(row.rewinds for row in counts),
        summary=_summary(counts),
        doubtful=doubtful,
        late_commits=late_rows,
        deletions=() if gone is None else plain_rows(gone.orderBy(*in_order), Deletion),
        evidence=found,
        malformed=malformed,
        problems=problems,
        undetermined=undetermined,
    )


def plain_rows(table: DataFrame, kind: Any) -> tuple[Any, ...]:
    """Collect the first `MAX_ROWS` rows of a table. kind: the named tuple of each row. Times are in UTC."""

    def value(each: Any) -> Any:
        return each.astimezone(UTC) if isinstance(each, datetime) else each

    return tuple(kind._make(map(value, row)) for row in table.select(*kind._fields).limit(MAX_ROWS).collect())


def _count(rows: list[Row], side: str, verdicts: tuple[str, ...]) -> dict[str, int]:
    return {verdict: sum(row.partitions for row in rows if row[side] == verdict) for verdict in verdicts}


def _summary(rows: list[Row]) -> tuple[AuditedTopic, ...]:
    topics: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        topics.setdefault((row.source_group, row.group, row.topic), []).append(row)
    return tuple(
        AuditedTopic(
            source_group=source_group,
            group=group,
            topic=topic,
            old=_count(of, "old", audit.OLD_VERDICTS),
            new=_count(of, "new", audit.NEW_VERDICTS),
            rewinds=sum(row.rewinds for row in of),
        )
        for (source_group, group, topic), of in topics.items()
    )[:MAX_ROWS]
