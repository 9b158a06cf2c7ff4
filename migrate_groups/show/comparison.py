"""The result of ``compare``, which compares the offsets of groups on two clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from migrate_groups.migration.across.compare import Comparison
from migrate_groups.mirrors.position import Status
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.show.documents import Document, of_row, row_of
from migrate_groups.show.result import NAME, OFFSET, TEXT, WORD, Column, Line, Result, Table, headed
from migrate_groups.text import counted

_MOST_ROWS = 200
MEANINGS = {
    Status.DIFFERENT: "the mirror filters, alters or repartitions records, or other producers write to the topic, too",
    Status.GONE: "one of the logs starts later",
    Status.UNDETERMINED: "the offset can't be determined",
    Status.TRUSTED: "no record could be compared; --trust-copy names the topic",
    Status.NOT_MIRRORED: "the mirror has not delivered the records up to the committed offset, or delivers them again",
    Status.AMBIGUOUS: "several offsets are possible among identical records",
    Status.BOUNDED: "compaction has removed the records that would show the offset",
    Status.EXACT: "one offset is possible, and everything that was read fits it",
}
"""The meaning of each status, the worst first."""


_Compared = tuple[str, TranslatedOffset]
"""A group and its committed offset in a partition, translated."""
REASON: Column[_Compared] = Column("REASON", TEXT, lambda of: of[1].position.reason, "reason")
_COLUMNS: list[Column[_Compared]] = [
    Column("GROUP", NAME, lambda of: of[0], "group"),
    Column("TOPIC", NAME, lambda of: of[1].source.topic, "topic"),
    Column("PARTITION", OFFSET, lambda of: of[1].source.partition, "partition"),
    Column("COMMITTED", OFFSET, lambda of: of[1].committed, "committed_offset", int | None),
    Column("TARGET-TOPIC", NAME, lambda of: of[1].copy and of[1].copy.topic, "target_topic", str | None),
    Column("TRANSLATED", OFFSET, lambda of: of[1].position.offset, "translated_offset", int | None),
    Column("", OFFSET, lambda of: of[1].position.reread, "reread_at_most"),
    Column("COMPARED", OFFSET, lambda of: of[1].position.compared, "compared"),
    Column("TARGET-COMMITTED", OFFSET, lambda of: of[1].there, "target_committed_offset", int | None),
    Column("READ-AGAIN", OFFSET, lambda of: of[1].position.counts.again, "read_again", int | None),
    Column("SKIPPED", OFFSET, lambda of: of[1].position.counts.skipped, "skipped", int | None),
    Column("COPIES", OFFSET, lambda of: of[1].position.counts.copies, "copies"),
    Column("", OFFSET, lambda of: of[1].position.counts.aborted, "aborted"),
    Column("STATUS", WORD, lambda of: of[1].position.status, "status", tone=lambda of: of[1].position.status),
    REASON,
    Column("", WORD, lambda of: of[1].position.method, "method"),
    Column("", OFFSET, lambda of: of[1].position.as_of, "mirrored_to", int | None),
    Column("", NAME, lambda of: _hex(of[1].position.before), "fingerprint_before", str | None),
    Column("", NAME, lambda of: _hex(of[1].position.after), "fingerprint_after", str | None),
]


@row_of(_COLUMNS)
class ComparedPartition:
    """A group's partition on the source cluster, and the mirror's copy of the partition on the target cluster.

    - committed_offset: the group's committed offset on the source; null while a transactional commit is pending.
    - target_topic: the topic of the copy; null if the target has no copy of the partition.
    - translated_offset: the offset at which the group must continue on the target. If several are possible, the lowest;
      null if none is known.
    - reread_at_most: the highest number of records that the group reads again if it starts at ``translated_offset``.
    - target_committed_offset: the group's committed offset on the target; null if there is none, or while a
      transactional commit is pending.
    - read_again, skipped: how many records the group would read again, and skip, if it started at
      ``target_committed_offset``; null if not known.
    - copies: how many records of the copy repeat a record that the mirror had already delivered.
    - aborted: how many records from ``translated_offset`` on are of aborted transactions, but delivered as committed.
    - status: how exactly ``translated_offset`` is known, such as "exact".
    - reason: why the status is not "exact"; otherwise empty.
    - method: how ``translated_offset`` was found: "walk" (by matching the records of both logs in order), "neighbours"
      (from the nearest records that both logs have, because compaction may have removed others), "start" (neither log
      has ever had a record), or empty (no records were compared).
    - compared: how many records of the copy were matched with a record of the source.
    - mirrored_to: the last stable offset of the copy; null if it was not read.
    - fingerprint_before, fingerprint_after: fingerprints (32 hexadecimal digits) of the source's last record before
      ``committed_offset``, and of the next record; null if there is no such record.
    """


class CompareDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/compare"):
    """The document that ``compare`` prints: the groups' partitions on both clusters.

    source_cluster, target_cluster: the cluster ids.
    """

    source_cluster: str
    target_cluster: str
    partitions: Sequence[ComparedPartition]


def rows(found: Comparison) -> Sequence[Mapping[str, Any]]:
    """Return the rows of the table that ``compare`` writes, one for each partition.

    The keys are the fields of `ComparedPartition`, the two cluster ids, and ``taken_at``, the time of the comparison.
    """
    about = {
        "source_cluster": found.source_cluster,
        "target_cluster": found.target_cluster,
        "taken_at": found.taken_at,
    }
    return [about | {column.field: column.value(of) for column in _COLUMNS} for of in found.partitions]


def conclusion(found: Comparison) -> str:
    """Return the overall verdict of a comparison as a sentence without a full stop."""
    if found.off:
        return (
            f"{counted(found.off, 'partition')} would not continue on the target where the group stopped on the source"
        )
    if found.unknown:
        return f"the translated offset of {counted(found.unknown, 'partition')} on the target is not known"
    return "every partition continues on the target where it stopped on the source"


def _hex(print_: bytes | None) -> str | None:
    return None if print_ is None else print_.hex()


def result(found: Comparison) -> Result:
    """Return a table with a line for each partition, then the reasons for their statuses, then the totals.

    On a terminal, the table has at most 200 lines. Partitions whose committed offset on the target is not known to be
    right come first, the worst status first.
    """
    severity = list(MEANINGS)
    worst_first = sorted(found.partitions, key=lambda of: (not of[1].is_off, severity.index(of[1].position.status)))
    columns = [each for each in headed(_COLUMNS) if each is not REASON]
    table = Table(columns=columns, rows=worst_first, thing="partition", most=_MOST_ROWS)
    positions = [each.position for _, each in found.partitions]
    reasons = Counter((each.status, each.reason) for each in positions if each.reason)
    lines = [
        Line(f"{status}, {counted(number, 'partition')}: {reason}")
        for (status, reason), number in reasons.most_common()
    ]
    totals = Line(_totals([each for _, each in found.partitions]))
    document = CompareDocument(
        source_cluster=found.source_cluster,
        target_cluster=found.target_cluster,
        partitions=[of_row(ComparedPartition, _COLUMNS, of) for of in found.partitions],
    )
    return Result(document=document, parts=[table, *lines, totals])


def _totals(partitions: Sequence[TranslatedOffset]) -> str:
    statuses = Counter(each.position.status for each in partitions)
    known = [each.position.counts for each in partitions if each.position.counts.again is not None]
    again, skipped = sum(each.again or 0 for each in known), sum(each.skipped or 0 for each in known)
    aborted = sum(each.position.counts.aborted for each in partitions)
    without = sum(each.there is None for each in partitions)
    parts = [counted(len(partitions), "partition") + ": " + ", ".join(f"{n:,} {s}" for s, n in statuses.items())]
    if known:
        parts.append(
            f"from the committed offsets on the target {counted(again, 'record')} read again, {skipped:,} skipped"
        )
    if without:
        parts.append(f"{counted(without, 'partition')} without a committed offset there")
    if aborted:
        parts.append(f"{counted(aborted, 'aborted record')} delivered as committed")
    return "; ".join(parts)
