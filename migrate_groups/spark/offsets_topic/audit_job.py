"""The Spark job behind ``audit``, which judges a migration from the log of ``__consumer_offsets``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import BooleanType, StringType

from migrate_groups.spark.local_rows import MAX_ROWS, local_table, plain_rows
from migrate_groups.spark.offsets_topic import audit
from migrate_groups.spark.offsets_topic.audit_result import (
    Audit,
    AuditedTopic,
    Deletion,
    LateCommit,
    Malformed,
    OfLog,
    Partition,
)
from migrate_groups.spark.offsets_topic.chains import chains, is_group_record
from migrate_groups.spark.offsets_topic.evidence import REASONS, Evidence, Range, evidence, reasons
from migrate_groups.spark.offsets_topic.offsets_log import decode, in_place

_IN_ORDER = ("log_time", "log_partition", "log_offset")
_COUNTS = ("all_commits", "deletions", "group_tombstones", "malformed", "member_records")
# The columns that are read of each record.
_COLUMNS = (
    *("log_partition", "log_offset", "log_time", "kind", "problem", "group", "member", "tombstone"),
    *("topic", "partition", "offset", "topic_id"),
    *("judged_from", "is_target", "without_membership", "shows_members"),
)


class Log(NamedTuple):
    """The copied log of a cluster's ``__consumer_offsets``, and the groups to judge.

    raw: the copied records (columns: `offsets_log.RAW`), which must not change between two reads. groups: the name of
    each group, its partition of the log, and the offset in that partition from which the group is judged. ranges: the
    offsets that were copied.
    """

    raw: DataFrame
    groups: Sequence[tuple[str, int, int]]
    ranges: Sequence[Range]


class _Read(NamedTuple):
    """What the audit reads from the copied log of one cluster's ``__consumer_offsets``.

    records: decoded records, which may leave out commits of target groups. summed: a summary of all commits of each
    group and partition. found: how complete the copy is. of_groups: by group, why its verdicts are in doubt. is_late:
    whether a source group has committed after the migration. has_deletions: whether a committed offset or a group was
    deleted.
    """

    records: DataFrame
    summed: DataFrame
    found: tuple[Evidence, ...]
    of_groups: Mapping[str, list[str]]
    is_late: bool
    has_deletions: bool


def run_audit(
    spark: SparkSession,
    handed_over: Iterable[tuple[Any, ...]],
    log: Log,
    source: Log | None = None,
    *,
    without_membership: Collection[str] = (),
    share_groups: Collection[str] = (),
) -> Audit:
    """Judge from the log of ``__consumer_offsets`` whether source groups stayed stopped, and where target groups began.

    handed_over: the partitions that target groups took over, as tuples with the columns of `audit.HANDED_OVER` without
    log_partition. log: the log of the target groups' cluster. source: the log of the source groups' cluster; None: it
    is the same cluster. without_membership: target groups whose consumers, as the user knows, are not members of them.
    share_groups: the target groups that are share groups, whose progress is not in this log.
    """
    moved, number_of = [*handed_over], {group: number for group, number, _ in log.groups}
    given = local_table(spark, ((*each, number_of[each[2]]) for each in moved), audit.HANDED_OVER)
    sources, targets = {each[0] for each in moved} - {None}, {each[2] for each in moved}
    if source is None:
        read = old = _read(spark, log, given, targets, sources, without_membership)
    else:
        read = _read(spark, log, given, targets, set(), without_membership)
        # No group of this log received a partition, so handed_over is empty. Topics have other ids on this cluster.
        old = _read(spark, source, local_table(spark, [], audit.HANDED_OVER), set(), sources)
        given = given.withColumns(
            {"topic_id": F.lit(None).cast(StringType()), "same_topic": F.lit(None).cast(BooleanType())}
        )
    late = audit.late_commits(old.records, given) if old.is_late else None
    of_shares = {group: [f"share group {group} commits nothing to this log"] for group in share_groups}
    doubts = local_table(spark, reasons(log.groups, read.found, {**read.of_groups, **of_shares}), REASONS)
    old_doubts = None
    if source is not None:
        told = reasons(source.groups, old.found, old.of_groups)
        old_doubts = local_table(spark, ((group, f"{_ELSEWHERE}: {reason}") for group, reason in told), REASONS)
    proof = audit.hand_over(read.summed, late, doubts, old_doubts).localCheckpoint(eager=False)
    of_log = _of_log(read, audit.places(given, of_sources=source is None, of_targets=True))
    of_source = None if source is None else _of_log(old, audit.places(given, of_sources=True, of_targets=False))
    return _concluded(proof, late, of_log, of_source)


_ELSEWHERE = "on the old group's cluster"


def _read(
    spark: SparkSession,
    copy: Log,
    given: DataFrame,
    targets: set[str],
    sources: set[str],
    without_membership: Collection[str] = (),
) -> _Read:
    """Decode the copied log of one cluster, and count the commits and deletions of each group and partition.

    given: the partitions that groups of this log took over (columns: `audit.HANDED_OVER`). targets, sources: the target
    and source groups in this log. without_membership: target groups whose consumers are not members of them.
    """
    groups = ((*each, each[0] in targets, each[0] in without_membership) for each in copy.groups)
    of_groups = local_table(spark, groups, audit.GROUPS)
    raw = copy.raw.where(F.col("log_partition").isin([each[0] for each in copy.ranges]))
    log = audit.of_groups(decode(raw), of_groups).select(*_COLUMNS)
    # A checkpoint and not a cache, because Spark compares each later plan with that of every cached table.
    summed = chains(log, given).localCheckpoint(eager=False)
    counts = summed.groupBy("log_partition", "group").agg(*(F.sum(name).alias(name) for name in _COUNTS)).collect()
    malformed: Counter[int] = Counter()
    for row in counts:
        malformed[row.log_partition] += row.malformed
    found = evidence(raw, malformed, copy.ranges)
    is_late = any(row.all_commits for row in counts if row.group in sources)
    is_deleted = any(row.deletions or row.group_tombstones for row in counts)
    if is_late or is_deleted or malformed.total():
        # Only the records that a list of the result may name are kept. A clean log has none, so that it is read once.
        named = F.col("problem").isNotNull() | F.col("tombstone") | is_group_record() | F.col("group").isin(*sources)
        log = log.where(in_place(named)).localCheckpoint(eager=False)
    of_group: dict[str, list[str]] = defaultdict(list)
    if any(row.group_tombstones for row in counts):
        # The commits of a deleted group are compacted away; only the deletion is certain to remain.
        for row in audit.group_deletions(log).select("group").distinct().collect():
            of_group[row.group].append(f"group {row.group} was deleted")
    for row in counts:
        if row.member_records and row.group in without_membership:
            of_group[row.group].append(f"group {row.group} has members, although --without-membership names it")
    return _Read(log, summed, found, of_group, is_late, is_deleted)


def _of_log(read: _Read, keys: DataFrame) -> OfLog:
    """Return what the audit found in one log: deletions, missing records, and records that can't be decoded.

    keys: the partitions (group, topic, partition) whose deletions are returned.
    """
    malformed: tuple[Malformed, ...] = ()
    if any(each.malformed for each in read.found):
        wrong = read.records.where(F.col("problem").isNotNull()).orderBy("log_partition", "log_offset")
        malformed = plain_rows(wrong, Malformed)
    gone: tuple[Deletion, ...] = ()
    if read.has_deletions:
        gone = plain_rows(audit.deletions(read.records, keys).orderBy(*_IN_ORDER), Deletion)
    return OfLog(deletions=gone, evidence=read.found, malformed=malformed)


def _concluded(proof: DataFrame, late: DataFrame | None, log: OfLog, source_log: OfLog | None) -> Audit:
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
    # A table is read only if the counts show that it has rows, because each read takes half a second or more.
    doubtful: tuple[Partition, ...] = ()
    late_rows: tuple[LateCommit, ...] = ()
    if problems or undetermined:
        named = proof.where(problem | unsure).orderBy(~problem, "group", "topic", "partition")
        doubtful = plain_rows(named, Partition)
    if late is not None and old["late-commit"]:
        late_rows = plain_rows(late.where(~F.col("recreated")).orderBy(*_IN_ORDER), LateCommit)
    return Audit(
        problems=problems,
        undetermined=undetermined,
        old=old,
        new=_count(counts, "new", audit.NEW_VERDICTS),
        rewinds=sum(row.rewinds for row in counts),
        summary=_summary(counts),
        doubtful=doubtful,
        late_commits=late_rows,
        deletions=log.deletions,
        evidence=log.evidence,
        malformed=log.malformed,
        source_log=source_log,
    )


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
