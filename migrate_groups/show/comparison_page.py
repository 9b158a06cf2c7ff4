"""The result of ``compare``, which compares the offsets of groups on two clusters, as one self-contained HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from migrate_groups.migration.across.compare import Comparison
from migrate_groups.mirrors.position import Status
from migrate_groups.planning.translation import TranslatedOffset
from migrate_groups.show.comparison import conclusion
from migrate_groups.show.page import environment

_MOST_ROWS, _MOST_TOPICS = 500, 50
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
# The class in report.css that gives each status its colour. The classes are named after statuses of a reconciliation.
_COLOURS = {
    Status.DIFFERENT: "missing",
    Status.GONE: "below-log-start",
    Status.UNDETERMINED: "no-commit",
    Status.TRUSTED: "ahead",
    Status.NOT_MIRRORED: "unexpected",
    Status.AMBIGUOUS: "behind",
    Status.BOUNDED: "ahead",
    Status.EXACT: "exact",
}


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
    order = list(MEANINGS)
    partitions = sorted(
        found.partitions,
        key=lambda of: (not of[1].is_off, order.index(of[1].position.status), of[0], of[1].source),
    )
    topics = [
        _topic(group, list(offsets))
        for group, of in found.groups.items()
        for _, offsets in groupby(of, lambda each: each.source.topic)
    ]
    topics.sort(key=lambda each: (-((each.again or 0) + (each.skipped or 0)), each.group, each.topic))
    return (
        environment()
        .get_template("comparison.html")
        .render(
            found=found,
            conclusion=conclusion(found),
            clean=not found.off and not found.unknown,
            statuses=Counter(each.position.status for _, each in found.partitions),
            meanings=MEANINGS,
            colours=_COLOURS,
            again=_sum(each.again for each in topics),
            skipped=_sum(each.skipped for each in topics),
            copies=sum(each.position.counts.copies for _, each in found.partitions),
            aborted=sum(each.position.counts.aborted for _, each in found.partitions),
            topics=topics[:_MOST_TOPICS],
            more_topics=len(topics) - _MOST_TOPICS,
            most=max([1, *(number or 0 for each in topics for number in (each.again, each.skipped))]),
            partitions=partitions[:_MOST_ROWS],
            more_partitions=len(partitions) - _MOST_ROWS,
        )
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
