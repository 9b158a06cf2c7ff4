"""The result of ``compare``, which compares the offsets of groups on two clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from migrate_groups.migration.across.compare import Comparison
from migrate_groups.mirrors.position import Status
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.show import html
from migrate_groups.show.documents import Document, of_row, row_of
from migrate_groups.show.result import COUNT, NAME, OFFSET, SECOND, TEXT, WORD, Column, Line, Result, Table, Verdict
from migrate_groups.text import counted

_MOST_ROWS, _MOST_ON_PAGE, _MOST_TOPICS = 200, 500, 50
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


class _Topic(NamedTuple):
    """How many records of a topic a group would read again on the target cluster, and how many it would skip.

    again, skipped: the sum of the known numbers of the partitions; None if no number is known.
    """

    group: str
    topic: str
    partitions: int
    again: int | None
    skipped: int | None


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
    whole = Table(columns=_COLUMNS, rows=worst_first, thing="partition", most=_MOST_ROWS)
    table = replace(whole, columns=[each for each in whole.columns if each is not REASON])
    positions = [each.position for _, each in found.partitions]
    reasons = Counter((each.status, each.reason) for each in positions if each.reason)
    lines = [
        Line(f"{status}, {counted(number, 'partition')}: {reason}")
        for (status, reason), number in reasons.most_common()
    ]
    statuses = Counter(each.status for each in positions)
    again, skipped = _sum(each.counts.again for each in positions), _sum(each.counts.skipped for each in positions)
    aborted = sum(each.counts.aborted for each in positions)
    totals = [counted(len(positions), "partition") + ": " + ", ".join(f"{n:,} {s}" for s, n in statuses.items())]
    if again is not None:
        read = counted(again, "record")
        totals.append(f"from the committed offsets on the target {read} read again, {skipped or 0:,} skipped")
    if without := sum(each.there is None for _, each in found.partitions):
        totals.append(f"{counted(without, 'partition')} without a committed offset there")
    if aborted:
        totals.append(f"{counted(aborted, 'aborted record')} delivered as committed")
    is_same = not found.off and not found.unknown
    figures = {
        "partitions": len(positions),
        "exact offsets": statuses[Status.EXACT],
        "read again": again,
        "skipped": skipped,
        "copies": sum(each.counts.copies for each in positions),
        "aborted, delivered": aborted,
    }
    return Result(
        document=CompareDocument(
            source_cluster=found.source_cluster,
            target_cluster=found.target_cluster,
            partitions=[of_row(ComparedPartition, _COLUMNS, of) for of in found.partitions],
        ),
        kind=f"Comparison of two clusters, read at {SECOND.of(found.taken_at)} UTC",
        verdict=Verdict("same" if is_same else "not the same", conclusion(found), is_same),
        places={"From cluster": found.source_cluster, "to cluster": found.target_cluster},
        figures={name: COUNT.of(figure) for name, figure in figures.items()},
        parts=[table, *lines, Line("; ".join(totals))],
        whole=whole,
    )


def page(found: Comparison) -> str:
    """Return the comparison as an HTML page. The same comparison always gives the same bytes."""
    shown = result(found)
    *columns, status = shown.tables[0].columns
    topics = [
        _topic(group, list(offsets))
        for group, of in found.groups.items()
        for _, offsets in groupby(of, lambda each: each.source.topic)
    ]
    topics.sort(key=lambda each: (-((each.again or 0) + (each.skipped or 0)), each.group, each.topic))
    return html.page(
        "comparison.html",
        replace(shown, parts=()),  # the table of the page has the reasons
        counts=Counter(each.position.status for _, each in found.partitions),
        meanings=MEANINGS,
        topics=topics[:_MOST_TOPICS],
        more_topics=len(topics) - _MOST_TOPICS,
        most=max([1, *(number or 0 for each in topics for number in (each.again, each.skipped))]),
        # The status is first, because a wide table is cut at the right of a page.
        offsets=replace(shown.tables[0], columns=[status, *columns, REASON]),
        most_offsets=_MOST_ON_PAGE,
    )


def _topic(group: str, partitions: Sequence[TranslatedOffset]) -> _Topic:
    counts = [each.position.counts for each in partitions]
    return _Topic(
        group=group,
        topic=partitions[0].source.topic,
        partitions=len(partitions),
        again=_sum(each.again for each in counts),
        skipped=_sum(each.skipped for each in counts),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the known numbers; None if no number is known."""
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None
