"""The result of ``compare``, which compares the offsets of groups on two clusters: terminal view and JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.migration.across.compare import Compared, Comparison
from migrate_groups.mirrors.place import Status
from migrate_groups.show.documents import Document, Part
from migrate_groups.show.tables import Table, cell
from migrate_groups.text import counted

_MOST_ROWS = 200
_COLUMNS = {
    **dict.fromkeys(("GROUP", "TOPIC"), "<"),
    **dict.fromkeys(("PARTITION", "COMMITTED"), ">"),
    "TARGET-TOPIC": "<",
    **dict.fromkeys(("PLACE", "COMPARED", "TARGET-COMMITTED", "READ-AGAIN", "SKIPPED", "COPIES"), ">"),
    "STATUS": "<",
}
_STYLES = {Status.EXACT: "green"} | dict.fromkeys((Status.TRUSTED, Status.UNDETERMINED, Status.NOT_MIRRORED), "yellow")


class ComparedPartition(Part, frozen=True, kw_only=True):
    """A group's partition on the source cluster, and the mirror's copy of the partition on the target cluster.

    - committed_offset: the group's committed offset on the source; null while a transactional commit is pending.
    - target_topic: the topic of the copy; null if the target has no copy of the partition.
    - place: the offset at which the group must continue on the target. If several are possible, the lowest; null if
      none is known.
    - reread_at_most: the highest number of records that the group reads again if it starts at ``place``.
    - target_committed_offset: the group's committed offset on the target; null if there is none, or while a
      transactional commit is pending.
    - read_again, skipped: how many records the group would read again, and skip, if it started at
      ``target_committed_offset``; null if not known.
    - copies: how many records of the copy repeat a record that the mirror had already delivered.
    - aborted: how many records at or after ``place`` are of aborted transactions, but delivered as committed.
    - status: how exactly ``place`` is known, such as "exact".
    - reason: why the status is not "exact"; otherwise empty.
    - method: how ``place`` was found: "walk" (by matching the records of both logs in order), "neighbours" (from the
      nearest records that both logs have, because compaction may have removed others), "start" (neither log has ever
      had a record), or empty (no records were compared).
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
    place: int | None
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
                group=each.group,
                topic=each.at.source.topic,
                partition=each.at.source.partition,
                committed_offset=each.at.committed,
                target_topic=None if each.at.copy is None else each.at.copy.topic,
                place=each.place.offset,
                reread_at_most=each.place.reread,
                target_committed_offset=each.at.there,
                read_again=each.place.counts.again,
                skipped=each.place.counts.skipped,
                copies=each.place.counts.copies,
                aborted=each.place.counts.aborted,
                status=each.place.status,
                reason=each.place.reason,
                method=each.place.method,
                compared=each.place.compared,
                mirrored_to=each.found.mirrored_to,
                fingerprint_before=_hex(each.place.before),
                fingerprint_after=_hex(each.place.after),
            )
            for each in found.partitions
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
    if found.untold:
        return f"the place of {counted(found.untold, 'partition')} on the target is not known"
    return "every partition continues on the target where it stopped on the source"


def _hex(print_: bytes | None) -> str | None:
    return None if print_ is None else print_.hex()


def terminal(found: Comparison) -> RenderableType:
    """Return a table with a line for each partition, then the reasons for their statuses, then the totals.

    The table has at most 200 lines. Partitions whose committed offset on the target is not known to be right
    come first.
    """
    shown = sorted(found.partitions, key=lambda each: (each.is_told and not each.is_off, each.group, each.at.source))
    table = Table(_COLUMNS)
    for each in shown[:_MOST_ROWS]:
        table.add_row(*_cells(each))
    rest = len(shown) - _MOST_ROWS
    more = [Text(f"… and {counted(rest, 'more partition')}")] if rest > 0 else []
    reasons = Counter((each.place.status, each.place.reason) for each in found.partitions if each.place.reason)
    lines = [
        Text.assemble(f"{status}, {counted(number, 'partition')}: ", cell(reason))
        for (status, reason), number in reasons.most_common()
    ]
    return Group(table, *more, *lines, Text(_totals(found.partitions)))


def _cells(each: Compared) -> list[str | Text]:
    place = each.place
    counts = place.counts
    numbers = (place.offset, place.compared, each.at.there, counts.again, counts.skipped, counts.copies)
    return [
        cell(each.group),
        each.at.source.topic,
        str(each.at.source.partition),
        "-" if each.at.committed is None else str(each.at.committed),
        each.at.copy.topic if each.at.copy else "-",
        *("-" if number is None else str(number) for number in numbers),
        Text(place.status, style=_STYLES.get(place.status, "red")),
    ]


def _totals(partitions: Sequence[Compared]) -> str:
    statuses = Counter(each.place.status for each in partitions)
    known = [each.place.counts for each in partitions if each.place.counts.again is not None]
    again, skipped = sum(each.again or 0 for each in known), sum(each.skipped or 0 for each in known)
    aborted = sum(each.place.counts.aborted for each in partitions)
    without = sum(each.at.there is None for each in partitions)
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
