"""The result of ``audit``, which checks a migration in the log of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from migrate_groups.show.documents import Document, Part
from migrate_groups.show.result import COUNT, NAME, SECOND, TEXT, WORD, Column, Kind, Line, Result, Role, Table
from migrate_groups.show.rows import filled, object_type
from migrate_groups.spark.local_rows import MAX_ROWS
from migrate_groups.spark.offsets_topic import audit_result, evidence
from migrate_groups.spark.offsets_topic.audit_result import Audit, OfLog
from migrate_groups.text import counted

_AuditedTopic, _Partition = object_type(audit_result.AuditedTopic), object_type(audit_result.Partition)
_LateCommit, _Deletion = object_type(audit_result.LateCommit), object_type(audit_result.Deletion)
Evidence, _Malformed = object_type(evidence.Evidence), object_type(audit_result.Malformed)
T = TypeVar("T")
# More rows than this are hard to read on a terminal; the JSON document has more.
_MOST_ROWS = 50


def _tally(verdicts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.items() if number) or "-"


def _place(each: audit_result.Partition | audit_result.LateCommit | audit_result.Deletion) -> str:
    return "the whole group" if each.topic is None else f"{each.topic}-{each.partition}"


_TALLY = Kind(Role.WORD, _tally)
_SUMMARY: list[Column[audit_result.AuditedTopic]] = [
    Column("group", NAME, lambda each: each.group),
    Column("topic", NAME, lambda each: each.topic),
    Column("from", NAME, lambda each: each.source_group),
    Column("old group", _TALLY, lambda each: each.old),
    Column("new group", _TALLY, lambda each: each.new),
    Column("rewinds", COUNT, lambda each: each.rewinds),
]
_DOUBTFUL: list[Column[audit_result.Partition]] = [
    Column("group", NAME, lambda each: each.group),
    Column("partition", NAME, _place),
    Column("old group", WORD, lambda each: each.old),
    Column("new group", WORD, lambda each: each.new),
    Column("handed over", COUNT, lambda each: each.written),
    Column("first own", COUNT, lambda each: each.first_own),
    Column("committed", COUNT, lambda each: each.committed),
    Column("rewinds", COUNT, lambda each: each.rewinds),
    Column("reason", TEXT, lambda each: each.reason),
]
_LATE: list[Column[audit_result.LateCommit]] = [
    Column("group", NAME, lambda each: each.group),
    Column("partition", NAME, _place),
    Column("time", SECOND, lambda each: each.log_time),
    Column("offset", COUNT, lambda each: each.offset),
    Column("beyond", COUNT, lambda each: each.beyond),
]
_DELETED: list[Column[audit_result.Deletion]] = [
    Column("group", NAME, lambda each: each.group),
    Column("partition", NAME, _place),
    Column("time", SECOND, lambda each: each.log_time),
]
_EVIDENCE: list[Column[evidence.Evidence]] = [
    Column("log partition", WORD, lambda each: each.log_partition),
    Column("from", COUNT, lambda each: each.start_offset),
    Column("to", COUNT, lambda each: each.end_offset),
    Column("records", COUNT, lambda each: each.records),
    Column("control", COUNT, lambda each: each.control),
    Column("aborted", COUNT, lambda each: each.aborted),
    Column("missing", COUNT, lambda each: each.missing),
    Column("malformed", COUNT, lambda each: each.malformed),
    Column("held back", COUNT, lambda each: each.held_back),
]


class LogPart(Part, frozen=True, kw_only=True):
    """What ``audit`` found in the log of ``__consumer_offsets`` on one cluster.

    deletions: committed offsets that were deleted or expired, and deleted groups (topic null). evidence: for each
    partition of the log, the offsets that were read and the number of missing records. malformed: records that can't be
    decoded.
    """

    deletions: tuple[_Deletion, ...]  # type: ignore[valid-type]  # made from the job's row, as those that follow
    evidence: tuple[Evidence, ...]  # type: ignore[valid-type]
    malformed: tuple[_Malformed, ...]  # type: ignore[valid-type]


class AuditDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/audit"):
    """The document that ``audit`` prints. Each list has at most 1,000 rows.

    - problems: the number of partitions with a rewind or a bad verdict, such as ``late-commit``.
    - undetermined: the number of other partitions with the verdict ``undetermined``.
    - old, new: the number of partitions by the verdict on the source group, and by the verdict on the target group.
    - rewinds: the number of partitions with a rewind, which is a commit at a lower offset than the previous commit.
    - summary: one row for each group and topic.
    - doubtful: the partitions that ``problems`` and ``undetermined`` count.
    - late_commits: commits of the source group after its offsets were handed over.
    - deletions: committed offsets that were deleted or expired.
    - evidence: for each partition of ``__consumer_offsets``, the offsets that were read and the number of missing
      records.
    - malformed: records that can't be decoded.
    - source_log: ``deletions``, ``evidence`` and ``malformed`` of the source group's cluster; null if the target groups
      are on the same cluster.
    """

    problems: int
    undetermined: int
    old: dict[str, int]
    new: dict[str, int]
    rewinds: int
    summary: tuple[_AuditedTopic, ...]  # type: ignore[valid-type]  # made from the job's row, as those that follow
    doubtful: tuple[_Partition, ...]  # type: ignore[valid-type]
    late_commits: tuple[_LateCommit, ...]  # type: ignore[valid-type]
    deletions: tuple[_Deletion, ...]  # type: ignore[valid-type]
    evidence: tuple[Evidence, ...]  # type: ignore[valid-type]
    malformed: tuple[_Malformed, ...]  # type: ignore[valid-type]
    source_log: LogPart | None


def conclusion(found: Audit) -> str:
    """Return the verdict of an audit that proves something (`Audit.check`), as a sentence.

    The sentence says how many partitions have no commit yet.
    """
    waiting = found.new.get("no-commit-yet", 0)
    if not waiting:
        return "proven: the old group stayed stopped, and every new group began at the offsets handed over"
    return (
        "proven: the old group stayed stopped, and each partition with a commit of its new group began at the offset "
        f"handed over; not proven yet for {counted(waiting, 'partition')} without a commit"
    )


def result(found: Audit) -> Result:
    """Return the result of an audit as tables, with at most 50 rows each on a terminal.

    The tables are: verdicts, partitions with a problem or an undetermined verdict, commits of the source group after
    its offsets were handed over, deleted offsets, and the number of records that were read from each partition of
    ``__consumer_offsets``.
    """
    total = ["total", "", "", _tally(found.old), _tally(found.new), COUNT.of(found.rewinds)]
    sections: list[Table[Any] | Line] = [
        *_section("", _SUMMARY, found.summary, total),
        *_section("doubtful", _DOUBTFUL, found.doubtful),
        *_section("late commits of the old group", _LATE, found.late_commits),
    ]
    if found.source_log is None:
        sections += _of_log(found.log, "")
    else:
        sections += _of_log(found.source_log, " on the old group's cluster")
        sections += _of_log(found.log, " on the new groups' cluster")
    return Result(document=filled(AuditDocument, found, **found.log._asdict()), parts=sections)


def _of_log(found: OfLog, where: str) -> list[Table[Any] | Line]:
    """Return what was found in the log of one cluster. where: names the cluster, at the end of each title."""
    parts: list[Table[Any] | Line] = [
        *_section(f"deleted or expired{where}", _DELETED, found.deletions),
        *_section(f"evidence{where}", _EVIDENCE, found.evidence),
    ]
    if found.malformed:
        first = found.malformed[0]
        place = f"partition {first.log_partition}, offset {first.log_offset}: {first.problem}"
        number = sum(each.malformed for each in found.evidence)
        parts.append(Line(f"{counted(number, 'record')} can't be decoded; the first: {place}"))
    return parts


def _section(title: str, columns: Sequence[Column[T]], rows: Sequence[T], total: Sequence[str] = ()) -> list[Table[T]]:
    if not (rows or total):
        return []
    at_least = len(rows) >= MAX_ROWS
    return [Table(title=title, columns=columns, rows=rows, most=_MOST_ROWS, at_least=at_least, total=total)]
