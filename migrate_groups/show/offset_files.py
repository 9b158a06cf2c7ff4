"""The results of the commands that write a file of offsets: snapshot, filter, split, export and rewind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from migrate_groups.migration.offsets_topic.at_moment import NotKnown, PastOffsets
from migrate_groups.migration.rewind import Rewinding
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.show.documents import Document, Part, of_row, row_of
from migrate_groups.show.result import NAME, OFFSET, TEXT, WORD, Column, Kind, Line, Result, Role, Table, Tone
from migrate_groups.snapshots.rewind_decision import Note, RewindDecision
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.snapshots.split import Coverage
from migrate_groups.snapshots.times import milliseconds_of, rfc_3339
from migrate_groups.text import counted, some

_WARNED = {Note.CLAMPED, Note.GONE, Note.SKIPPED, Note.NO_COMMIT}
_MOST_ROWS = 50
_EXPANDED: list[Column[tuple[str | None, TopicPattern, tuple[str, ...]]]] = [
    Column("group", NAME._replace(unknown="(stays)"), lambda each: each[0], "group", str | None),
    Column("pattern", NAME, lambda each: str(each[1]), "pattern"),
    Column("topics", Kind(Role.TEXT, ", ".join), lambda each: each[2], "topics", Sequence[str]),
]
_REWOUND: list[Column[RewindDecision]] = [
    Column("topic", NAME, lambda each: each.row.topic, "topic"),
    Column("partition", OFFSET, lambda each: each.row.partition, "partition"),
    Column("log start", OFFSET, lambda each: each.bounds.start, "log_start_offset"),
    Column("log end", OFFSET, lambda each: each.bounds.end, "log_end_offset"),
    Column("committed", OFFSET, lambda each: each.row.offset, "committed_offset", int | None),
    Column("offset", OFFSET, lambda each: each.offset, "offset", int | None),
    Column("to replay", OFFSET, lambda each: each.to_replay, "to_replay"),
    Column("", WORD, lambda each: each.note, "note", str | None),
    Column("", TEXT, lambda each: each.detail, "detail"),
    Column(
        "note",
        TEXT,
        lambda each: each.note and f"{each.note}: {each.detail}",
        tone=lambda each: "warn" if each.note in _WARNED else "",
    ),
]


_NOT_KNOWN: list[Column[NotKnown]] = [
    Column("group", NAME, lambda each: each.group, "group"),
    Column("topic", NAME, lambda each: each.topic, "topic"),
    Column("partition", OFFSET, lambda each: each.partition, "partition"),
    Column("evidence", WORD, lambda each: each.evidence, "evidence"),
    Column("reason", TEXT, lambda each: each.reason, "reason"),
]


class GroupRows(Part, frozen=True, kw_only=True):
    """The rows of one group in a file that a command wrote.

    group: null if the rows have no group, as after ``rewind``. partitions: the number of rows. committed: the number of
    rows with an offset.
    """

    group: str | None
    partitions: int
    committed: int
    topics: tuple[str, ...]


@row_of(_NOT_KNOWN)
class UnknownPartition:
    """A partition whose committed offset is not known.

    evidence: ``unknown``, or ``pending`` if a transaction was open. reason: why.
    """


class SnapshotDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/snapshot"):
    """The file that ``snapshot`` wrote.

    output: its path. groups: the number of rows and the topics of each group. With ``--log``: at: the moment of the
    offsets; otherwise null. not_known: the partitions that are left out, because their offset at the moment is not
    known.
    """

    output: Path
    groups: tuple[GroupRows, ...]
    at: datetime | None
    not_known: tuple[UnknownPartition, ...]


class FilterDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/filter"):
    """The file that ``filter`` wrote.

    kept: the number of rows in the file. left_out: the number of rows that were left out. groups: the number of rows
    and the topics of each group in the file.
    """

    output: Path
    kept: int
    left_out: int
    groups: tuple[GroupRows, ...]


@row_of(_EXPANDED)
class Expansion:
    """A topic pattern of a split, and the topics that it matches.

    group: the target group of the topics; null if the topics stay with the source group.
    """


class SplitDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/split"):
    """The file that ``split`` wrote, and the target group of each topic of the source group.

    - targets: the topics of each target group.
    - stay: the topics that stay with the source group.
    - patterns: the topics that each pattern matches.
    - left_out: the groups whose rows are not in the file.
    - groups: the number of rows and the topics of each group in the file.
    """

    output: Path
    source: str
    targets: Mapping[str, tuple[str, ...]]
    stay: tuple[str, ...]
    patterns: tuple[Expansion, ...]
    left_out: tuple[str, ...]
    groups: tuple[GroupRows, ...]


class ExportDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/export"):
    """The file that ``export`` wrote.

    exported: the number of rows in the file. left_out: the number of partitions without a committed offset, which are
    not in the file.
    """

    output: Path
    exported: int
    left_out: int


@row_of(_REWOUND)
class RewoundPartition:
    """The offset at which the replay of a partition begins.

    - committed_offset: the committed offset in the file or group that was passed to ``rewind``; null if there is none.
    - offset: the offset at which the replay begins; null if auto.offset.reset of the replaying group decides.
    - to_replay: the number of offsets from ``offset`` to the log end offset.
    - note, detail: why ``offset`` is not the requested one, as a word and as a text; null and "" if it is.
    """


class RewindDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/rewind"):
    """The file that ``rewind`` wrote: the offsets at which a replay begins.

    time: the time from which records are replayed; null if no time was requested. to_replay: the number of offsets to
    replay. left_out: the other partitions of the replayed topics.
    """

    output: Path
    time: str | None
    to_replay: int
    partitions: tuple[RewoundPartition, ...]
    left_out: tuple[TopicPartition, ...]


def snapshot(output: Path, groups: Sequence[str], saved: SnapshotTable) -> Result:
    """Return how many partitions of these groups are in the snapshot ``saved``, which is in the file ``output``."""
    document = SnapshotDocument(output=output, groups=_rows_by_group(saved), at=None, not_known=())
    return Result(document=document, parts=[Line(_written(output, groups, saved))])


def snapshot_at(output: Path, groups: Sequence[str], found: PastOffsets) -> Result:
    """Return how many partitions of these groups are in the file ``output``, and which are not, because not known."""
    document = SnapshotDocument(
        output=output,
        groups=_rows_by_group(found.snapshot),
        at=found.at,
        not_known=tuple(of_row(UnknownPartition, _NOT_KNOWN, each) for each in found.not_known),
    )
    left_out = Table(columns=_NOT_KNOWN, rows=found.not_known, thing="partition", most=_MOST_ROWS)
    written = f"{_written(output, groups, found.snapshot)}, as of {rfc_3339(milliseconds_of(found.at))}"
    if found.not_known:
        written += f"; left out: {len(found.not_known):,}, whose offsets are not known"
    remarks = (Line(each, Tone.REMARK) for each in found.remarks)
    return Result(document=document, parts=[*([left_out] if found.not_known else []), Line(written), *remarks])


def _written(output: Path, groups: Sequence[str], saved: SnapshotTable) -> str:
    where = "stdout" if str(output) == "-" else output
    return f"{counted(len(saved), 'partition')} of {some(groups)} written to {where}"


def selection(output: Path, table: SnapshotTable, kept: SnapshotTable) -> Result:
    """Return how many rows of ``table`` are in ``kept``, which is in the file ``output``."""
    return Result(
        document=FilterDocument(
            output=output, kept=len(kept), left_out=len(table) - len(kept), groups=_rows_by_group(kept)
        ),
        parts=[Line(f"{counted(len(kept), 'partition')} of {len(table):,} kept")],
    )


def split(output: Path, source: str, coverage: Coverage, table: SnapshotTable, saved: SnapshotTable) -> Result:
    """Return a table with one line per topic pattern of a split: its target group and the topics that it matches.

    Instead of a target group, ``(stays)`` means that the topics stay with the source group. coverage: the target group
    of each topic. table: the snapshot that was split. saved: the rows in the file ``output``.
    """
    others = [group for group in table.groups() if group not in (source, None)]
    document = SplitDocument(
        output=output,
        source=source,
        targets=coverage.targets,
        stay=coverage.stay,
        patterns=tuple(of_row(Expansion, _EXPANDED, each) for each in coverage.expansions),
        left_out=tuple(others),
        groups=_rows_by_group(saved),
    )
    targets = ", ".join(f"{len(topics)} to {group}" for group, topics in coverage.targets.items())
    stays = "" if table.groups() == [None] else f", {len(coverage.stay)} stay with {source}"
    left_out = f"; left out: rows of {some(others)}" if others else ""
    return Result(
        document=document,
        parts=[
            Table(columns=_EXPANDED, rows=coverage.expansions, thing="pattern"),
            Line(f"topics: {targets}{stays}{left_out}"),
        ],
    )


def export(output: Path, exported: int, left_out: int, remarks: Sequence[str]) -> Result:
    """Return how many partitions are in the file ``output``, and how many without a committed offset are not.

    remarks: what the user must know about the file.
    """
    return Result(
        document=ExportDocument(output=output, exported=exported, left_out=left_out),
        parts=[
            Line(f"{counted(exported, 'partition')} exported, {left_out:,} without a commit left out"),
            *(Line(each, Tone.REMARK) for each in remarks),
        ],
    )


def rewind(output: Path, time: str | None, found: Rewinding) -> Result:
    """Return a table of the offset at which each partition's replay begins, and a line with the totals.

    At most 50 partitions are shown. Partitions that start exactly as requested are left out first. output: the file
    with all. time: the time from which records are replayed; None if no time was requested.
    """
    decided = found.decisions
    shown = sorted(decided, key=lambda each: each.note is None)[:_MOST_ROWS]
    table = Table(
        columns=_REWOUND,
        rows=sorted(shown, key=lambda each: each.row.topic_partition),
        thing="partition",
        found=len(decided),
        elsewhere=": the file has all",
    )
    document = RewindDocument(
        output=output,
        time=time,
        to_replay=sum(each.to_replay for each in decided),
        partitions=tuple(of_row(RewoundPartition, _REWOUND, each) for each in decided),
        left_out=tuple(found.left_out),
    )
    notes = Counter(each.note for each in decided if each.note)
    words = "".join(f", {number:,} {note}" for note, number in sorted(notes.items()))
    total = f"{counted(len(decided), 'partition')}, {counted(document.to_replay, 'record')} to replay{words}"
    return Result(document=document, parts=[table, Line(total)])


def _rows_by_group(table: SnapshotTable) -> tuple[GroupRows, ...]:
    """Return, for each group in a table, its topics, the number of its rows, and the number of rows with an offset."""
    partitions: dict[str | None, int] = defaultdict(int)
    committed: dict[str | None, int] = defaultdict(int)
    topics: dict[str | None, set[str]] = defaultdict(set)
    for row in table.rows():
        partitions[row.group] += 1
        committed[row.group] += row.offset is not None
        topics[row.group].add(row.topic)
    return tuple(
        GroupRows(group=group, partitions=number, committed=committed[group], topics=tuple(sorted(topics[group])))
        for group, number in partitions.items()
    )
