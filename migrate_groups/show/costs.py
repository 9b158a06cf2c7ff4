"""What it costs applications to share one consumer group (``advise --log``): terminal, JSON and Markdown views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.migration.advise.predicted_costs import GroupCost
from migrate_groups.show import comment
from migrate_groups.show.after_split import PredictedSeconds
from migrate_groups.show.comment import Size
from migrate_groups.show.documents import Document, Part
from migrate_groups.show.rows import object_type, objects
from migrate_groups.show.tables import UNKNOWN, Table, cell, number
from migrate_groups.spark.offsets_topic.advice_result import Costs, SharedCost
from migrate_groups.text import counted, some

_MOST_ROWS = 200
_Application = object_type(SharedCost)
LIMITS = (
    "Times are measured between records: from a member's last commit to the record of the next generation. The real "
    "time is longer by what a client takes to get its assignment after that record. It is shorter, by up to a commit "
    "interval, if the member does not commit when its partitions are revoked. "
    "Deployments count as rebalances. In cooperative groups only the partitions of members that left are counted. In "
    "KIP-848 groups a partition's time without an owner is counted, and no rebalances; commits that failed and records "
    "that came twice are in no log.",
)


class CostlyGroup(Part, frozen=True, kw_only=True):
    """A consumer group, and what sharing it costs its applications (members that share topics).

    - stood_still: for how many seconds the most affected application consumed nothing because members of other
      applications joined or left, measured between records; null if not known.
    - predicted: for each application, for how many seconds its partitions would be assigned to no member after a split.
    """

    group: str
    advice: str
    stood_still: float | None
    predicted: dict[str, PredictedSeconds]
    applications: tuple[_Application, ...]  # type: ignore[valid-type]  # made from the job's row


class CostsDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/costs"):
    """What ``advise --log`` prints: what sharing a group costs its applications (members that share topics).

    found: the number of applications in the log of ``__consumer_offsets``. groups: sorted by ``stood_still``, the
    highest first.
    """

    found: int
    groups: tuple[CostlyGroup, ...]


def document(found: Costs, groups: Sequence[GroupCost]) -> CostsDocument:
    """Return the JSON document of these groups, in the order of ``groups``."""
    return CostsDocument(
        found=found.found,
        groups=tuple(
            CostlyGroup(
                group=each.group,
                advice=each.advice,
                stood_still=each.stood_still,
                predicted={name: PredictedSeconds(**of._asdict()) for name, of in each.predicted.items()},
                applications=objects(_Application, each.applications),
            )
            for each in groups
        ),
    )


def terminal(groups: Sequence[GroupCost]) -> RenderableType:
    """Return a table of what sharing each group costs, with the first 200 of ``groups``, and a note below it."""
    table = Table({"GROUP": "<", "APPLICATIONS": ">", "REBALANCES": ">", "STOOD-STILL": ">", "ADVICE": "<"})
    for each in groups[:_MOST_ROWS]:
        first = each.applications[0]
        counts = (str(first.applications), str(first.rebalances), seconds(each.stood_still))
        table.add_row(cell(each.group), *counts, cell(each.advice))
    rest = len(groups) - _MOST_ROWS
    return Group(table, *([Text(f"… and {counted(rest, 'more group')}")] if rest > 0 else []), Text(LIMITS[0]))


def markdown(groups: Sequence[GroupCost]) -> str:
    """Return what sharing the groups costs, and the advice, as GitHub Markdown of at most 64,000 bytes."""
    return comment.fitting(lambda size: _blocks(groups, size))


def _blocks(groups: Sequence[GroupCost], size: Size) -> Iterator[str]:
    yield f"### Advice on {counted(len(groups), 'consumer group')}"
    rows = (
        (comment.code(each.group, size), seconds(each.stood_still), comment.prose(each.advice, size)) for each in groups
    )
    yield comment.table(("group", "stood still >", "advice"), rows, len(groups), size, "group")
    for each in [each for each in groups if len(each.applications) > 1][: size.rows]:
        lines = (
            (comment.code(row.application, size), *figures(row), comment.prose(some(row.topics), size))
            for row in each.applications
        )
        header = ("application", *(f"{title} >" for title in TITLES), "topics")
        table = comment.table(header, lines, len(each.applications), size, "application")
        yield comment.folded(comment.html_code(each.group, size), table)
    yield comment.prose(LIMITS[0], Size(characters=1000, rows=1))


TITLES = (
    *("rebalances caused", "stood still for others", "own outage", "restarted together"),
    *("keeps up", "idle members", "busiest to mean", "compacted away"),
)


def figures(row: SharedCost) -> tuple[str, ...]:
    """Return the cells of an application in the table of costs as texts, in the order of `TITLES`."""
    return (
        f"{row.caused:,} of {row.rebalances:,}",
        seconds(row.stood_still),
        seconds(row.outage),
        f"{row.replaced:,}",
        UNKNOWN if row.keeps_up is None else f"{row.keeps_up:.0%}",
        number(row.idle),
        UNKNOWN if row.spread is None else f"{row.spread:.1f}",
        f"{row.missing:,}",
    )


def seconds(value: float | None) -> str:
    """Return a number of seconds as text, such as ``3.0 s``; ``-`` for None."""
    return "-" if value is None else f"{value:.1f} s"
