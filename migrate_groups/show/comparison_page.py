"""The result of ``compare``, which compares the offsets of groups on two clusters, as one self-contained HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from migrate_groups.migration.across.compare import Comparison
from migrate_groups.mirrors.position import Status
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.show import html
from migrate_groups.show.comparison import MEANINGS, REASON, conclusion, result
from migrate_groups.show.result import COUNT, SECOND, Result, Verdict

_MOST_ROWS, _MOST_TOPICS = 500, 50


class _Topic(NamedTuple):
    """How many records of a topic a group would read again on the target cluster, and how many it would skip.

    again, skipped: the sum of the known numbers of the partitions; None if no number is known.
    """

    group: str
    topic: str
    partitions: int
    again: int | None
    skipped: int | None


def page(found: Comparison) -> str:
    """Return the comparison as an HTML page. The same comparison always gives the same bytes."""
    shown = result(found)
    table = shown.tables[0]
    *columns, status = table.columns
    topics = [
        _topic(group, list(offsets))
        for group, of in found.groups.items()
        for _, offsets in groupby(of, lambda each: each.source.topic)
    ]
    topics.sort(key=lambda each: (-((each.again or 0) + (each.skipped or 0)), each.group, each.topic))
    statuses = Counter(each.position.status for _, each in found.partitions)
    is_same = not found.off and not found.unknown
    figures = {
        "partitions": len(found.partitions),
        "exact offsets": statuses[Status.EXACT],
        "read again": _sum(each.again for each in topics),
        "skipped": _sum(each.skipped for each in topics),
        "copies": sum(each.position.counts.copies for _, each in found.partitions),
        "aborted, delivered": sum(each.position.counts.aborted for _, each in found.partitions),
    }
    of_page = Result(
        kind=f"Comparison of two clusters, read at {SECOND.of(found.taken_at)} UTC",
        verdict=Verdict("same" if is_same else "not the same", conclusion(found), is_same),
        places={"From cluster": found.source_cluster, "to cluster": found.target_cluster},
        figures={name: COUNT.of(figure) for name, figure in figures.items()},
    )
    return html.page(
        "comparison.html",
        of_page,
        counts=statuses,
        meanings=MEANINGS,
        topics=topics[:_MOST_TOPICS],
        more_topics=len(topics) - _MOST_TOPICS,
        most=max([1, *(number or 0 for each in topics for number in (each.again, each.skipped))]),
        # The status is first, because a wide table is cut at the right of a page.
        offsets=replace(table, columns=[status, *columns, REASON]),
        most_offsets=_MOST_ROWS,
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
