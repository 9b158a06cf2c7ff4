"""The result of ``audit``, which checks a migration in the log of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from migrate_groups.show.documents import document_type, filled
from migrate_groups.show.result import COUNT, NAME, SECOND, TEXT, WORD, Column, Kind, Line, Result, Role, Table, counts
from migrate_groups.spark.local_rows import MAX_ROWS
from migrate_groups.spark.offsets_topic import audit_result, evidence
from migrate_groups.spark.offsets_topic.audit_result import Audit, OfLog
from migrate_groups.text import counted

_DOCUMENT = document_type(
    Audit,
    *("problems", "undetermined", "old", "new", "rewinds", "summary", "doubtful", "late_commits"),
    *("deletions", "evidence", "malformed", "source_log", "handed_over_by", "handed_on", "is_copy"),
)
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
    *counts("rewinds"),
]
_DOUBTFUL: list[Column[audit_result.Partition]] = [
    Column("group", NAME, lambda each: each.group),
    Column("partition", NAME, _place),
    Column("old group", WORD, lambda each: each.old),
    Column("new group", WORD, lambda each: each.new),
    Column("handed over", COUNT, lambda each: each.written),
    *counts("first_own", "committed", "rewinds"),
    Column("reason", TEXT, lambda each: each.reason),
]
_LATE: list[Column[audit_result.LateCommit]] = [
    Column("group", NAME, lambda each: each.group),
    Column("partition", NAME, _place),
    Column("time", SECOND, lambda each: each.log_time),
    *counts("offset", "beyond"),
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
    *counts("records", "control", "aborted", "missing", "malformed", "held_back"),
]


def conclusion(found: Audit) -> str:
    """Return the verdict of an audit that proves something (`Audit.check`), as a sentence.

    The sentence says how many partitions have no commit yet, and how many were not handed over: the old group may have
    consumed these, too, and is not judged there.
    """
    waiting, others = found.new.get("no-commit-yet", 0), found.new.get("not-in-snapshot", 0)
    stopped = "" if found.is_copy else "the old group stayed stopped, and "
    proven = f"proven: {stopped}every new group began at the offsets handed over"
    if waiting:
        proven = (
            f"proven: {stopped}each partition with a commit of its new group began at the offset handed over; not "
            f"proven yet for {counted(waiting, 'partition')} without a commit"
        )
    if found.handed_on:
        proven += f"; not judged, because of what other runs did since: {found.handed_on}"
    if found.is_copy:
        proven += "; not judged: the old group, which may go on (--copy)"
    return proven + (f"; not judged: {counted(others, 'partition')} not handed over, but consumed" if others else "")


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
        sections += _of_log(found, "")
    else:
        sections += _of_log(found.source_log, " on the old group's cluster")
        sections += _of_log(found, " on the new groups' cluster")
    if found.handed_over_by:
        sections.append(Line(f"handed over by {found.handed_over_by}"))
    return Result(document=filled(_DOCUMENT, found), parts=sections)


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
