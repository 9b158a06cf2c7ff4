"""The result of ``compare``, which compares the offsets of groups on two clusters: terminal view and JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.migration.across.compare import Comparison
from migrate_groups.mirrors.position import Status
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.show.documents import Document, Part
from migrate_groups.show.tables import Table, cell
from migrate_groups.text import counted

_MOST_ROWS = 200
_COLUMNS = {
    **dict.fromkeys(("GROUP", "TOPIC"), "<"),
    **dict.fromkeys(("PARTITION", "COMMITTED"), ">"),
    "TARGET-TOPIC": "<",
    **dict.fromkeys(("TRANSLATED", "COMPARED", "TARGET-COMMITTED", "READ-AGAIN", "SKIPPED", "COPIES"), ">"),
    "STATUS": "<",
}
_STYLES = {Status.EXACT: "green"} | dict.fromkeys((Status.TRUSTED, Status.UNDETERMINED, Status.NOT_MIRRORED), "yellow")


class ComparedPartition(Part, frozen=True, kw_only=True):
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

    group: str
    topic: str
    partition: int
    committed_offset: int | None
    target_topic: str | None
    translated_offset: int | None
    reread_at_most: int
    target_committed_offset: int | None
    read_again: int | None
    skipped: int | None
    copies: int
    aborted: int
    status: str
    reason: str
    method: str
    compared: int
    mirrored_to: int | None
    fingerprint_before: str | None
    fingerprint_after: str | None


class CompareDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/compare"):
    """The document that ``compare`` prints: the groups' partitions on both clusters.

    source_cluster, target_cluster: the cluster ids.
    """

    source_cluster: str
    target_cluster: str
    partitions: Sequence[ComparedPartition]


def document(found: Comparison) -> CompareDocument:
    """Return the JSON document of a comparison."""
    return CompareDocument(
        source_cluster=found.source_cluster,
        target_cluster=found.target_cluster,
        partitions=[
            ComparedPartition(
                group=group,
                topic=each.source.topic,
                partition=each.source.partition,
                committed_offset=each.committed,
                target_topic=None if each.copy is None else each.copy.topic,
                translated_offset=each.position.offset,
                reread_at_most=each.position.reread,
                target_committed_offset=each.there,
                read_again=each.position.counts.again,
                skipped=each.position.counts.skipped,
                copies=each.position.counts.copies,
                aborted=each.position.counts.aborted,
                status=each.position.status,
                reason=each.position.reason,
                method=each.position.method,
                compared=each.position.compared,
                mirrored_to=each.position.as_of,
                fingerprint_before=_hex(each.position.before),
                fingerprint_after=_hex(each.position.after),
            )
            for group, each in found.partitions
        ],
    )


def rows(found: Comparison) -> Sequence[Mapping[str, Any]]:
    """Return the rows of the table that ``compare`` writes, one for each partition.

    The keys are the fields of `ComparedPartition`, the two cluster ids, and ``taken_at``, the time of the comparison.
    """
    shown = document(found)
    about = {
        "source_cluster": shown.source_cluster,
        "target_cluster": shown.target_cluster,
        "taken_at": found.taken_at,
    }
    return [about | msgspec.structs.asdict(each) for each in shown.partitions]


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


def terminal(found: Comparison) -> RenderableType:
    """Return a table with a line for each partition, then the reasons for their statuses, then the totals.

    The table has at most 200 lines. Partitions whose committed offset on the target is not known to be right
    come first.
    """
    shown = sorted(found.partitions, key=lambda of: (of[1].position.is_known and not of[1].is_off, of[0], of[1].source))
    table = Table(_COLUMNS)
    for group, each in shown[:_MOST_ROWS]:
        table.add_row(cell(group), *_cells(each))
    rest = len(shown) - _MOST_ROWS
    more = [Text(f"… and {counted(rest, 'more partition')}")] if rest > 0 else []
    reasons = Counter(
        (each.position.status, each.position.reason) for _, each in found.partitions if each.position.reason
    )
    lines = [
        Text.assemble(f"{status}, {counted(number, 'partition')}: ", cell(reason))
        for (status, reason), number in reasons.most_common()
    ]
    return Group(table, *more, *lines, Text(_totals([each for _, each in found.partitions])))


def _cells(each: TranslatedOffset) -> list[str | Text]:
    position, counts = each.position, each.position.counts
    numbers = (position.offset, position.compared, each.there, counts.again, counts.skipped, counts.copies)
    return [
        each.source.topic,
        str(each.source.partition),
        "-" if each.committed is None else str(each.committed),
        each.copy.topic if each.copy else "-",
        *("-" if number is None else str(number) for number in numbers),
        Text(position.status, style=_STYLES.get(position.status, "red")),
    ]


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
