"""The results of ``split``, ``rewind`` and ``delete-group``: offsets in a file, and offsets that are deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from migrate_groups.migration.rewind import Rewinding
from migrate_groups.show.file_documents import Expansion, RewindDocument, RewoundPartition, SplitDocument
from migrate_groups.show.result import NAME, OFFSET, SPAN, TEXT, WORD, Column, Line, Result, Table, headed
from migrate_groups.show.rows import of_columns
from migrate_groups.snapshots.rewind_decision import Note, RewindDecision
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted

_WARNED = {Note.CLAMPED, Note.GONE, Note.SKIPPED, Note.NO_COMMIT}
_MOST_ROWS = 50
_EXPANDED: list[Column[Expansion]] = [
    Column("group", NAME._replace(unknown="(stays)"), lambda each: each.group),
    Column("pattern", NAME, lambda each: each.pattern),
    Column("topics", TEXT, lambda each: ", ".join(each.topics)),
]
_REWOUND: list[Column[RewindDecision]] = [
    Column("topic", NAME, lambda each: each.row.topic, "topic"),
    Column("partition", OFFSET, lambda each: each.row.partition, "partition"),
    Column("log start", OFFSET, lambda each: each.bounds.start, "log_start_offset"),
    Column("log end", OFFSET, lambda each: each.bounds.end, "log_end_offset"),
    Column("committed", OFFSET, lambda each: each.row.offset, "committed_offset"),
    Column("offset", OFFSET, lambda each: each.offset, "offset"),
    Column("to replay", OFFSET, lambda each: each.to_replay, "to_replay"),
    Column("", WORD, lambda each: each.note, "note"),
    Column("", TEXT, lambda each: each.detail, "detail"),
    Column(
        "note",
        TEXT,
        lambda each: each.note and f"{each.note}: {each.detail}",
        tone=lambda each: "warn" if each.note in _WARNED else "",
    ),
]
_LAG: list[Column[Row]] = [
    Column("topic", NAME, lambda row: row.topic),
    Column("partition", OFFSET, lambda row: row.partition),
    Column("committed", OFFSET, lambda row: row.offset),
    Column("log start", OFFSET, lambda row: row.log_start_offset),
    Column("log end", OFFSET, lambda row: row.log_end_offset),
    Column("lag", OFFSET, lambda row: row.lag),
]
_TIME_LAG: Column[Row] = Column(
    "time lag", SPAN, lambda row: None if row.time_lag is None else row.time_lag.total_seconds()
)


def coverage(document: SplitDocument) -> Result:
    """Return a table with one line per topic pattern of a split: its target group and the topics that it matches.

    Instead of a target group, ``(stays)`` means that the topics stay with the source group.
    """
    return Result(document=document, parts=[Table(columns=_EXPANDED, rows=document.patterns, thing="pattern")])


def rewound(output: Path, time: str | None, found: Rewinding) -> Result:
    """Return a table of the offset at which each partition's replay begins, and a line with the totals.

    At most 50 partitions are shown. Partitions that start exactly as requested are left out first. output: the file
    with all. time: the time from which records are replayed; None if no time was requested.
    """
    decided = found.decisions
    shown = sorted(decided, key=lambda each: each.note is None)[:_MOST_ROWS]
    table = Table(
        columns=headed(_REWOUND),
        rows=sorted(shown, key=lambda each: each.row.topic_partition),
        thing="partition",
        found=len(decided),
        elsewhere=": the file has all",
    )
    document = RewindDocument(
        output=output,
        time=time,
        to_replay=sum(each.to_replay for each in decided),
        partitions=tuple(of_columns(RewoundPartition, _REWOUND, each) for each in decided),
        left_out=tuple(found.left_out),
    )
    notes = Counter(each.note for each in decided if each.note)
    words = "".join(f", {number:,} {note}" for note, number in sorted(notes.items()))
    total = f"{counted(len(decided), 'partition')}, {counted(document.to_replay, 'record')} to replay{words}"
    return Result(document=document, parts=[table, Line(total)])


def lag_by_partition(rows: Sequence[Row]) -> Result:
    """Return a table with one line per partition: committed offset, log start offset, log end offset and lag.

    Values that are not known are ``-``. A column for the time lag is added if any time lag is known.
    """
    times = [_TIME_LAG] if any(row.time_lag is not None for row in rows) else []
    return Result(parts=[Table(columns=[*_LAG, *times], rows=rows, thing="partition")])
