"""The cost of splitting a consumer group, as predicted and as measured (``advise --after``)."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_groups.migration.advise.after import AfterSplit
from migrate_groups.migration.advise.predicted_costs import Predicted
from migrate_groups.show import html
from migrate_groups.show.documents import Document, object_type, of_row, row_of
from migrate_groups.show.result import (
    EXPECTED,
    NAME,
    OFFSET,
    SECONDS,
    TEXTS,
    UNKNOWN,
    WORD,
    Column,
    Kind,
    Line,
    Result,
    Role,
    Table,
)
from migrate_groups.text import counted, some

_NOTE = (
    "Seconds without an owner, measured between records of the log. Waited before: in the shared group, for others. "
    "Predicted: for as many restarts as there were since the split. It holds if what was measured is in this range, or "
    "within 20 % or 2 s of it."
)
_Predicted = object_type(Predicted)
_EXPECTED = EXPECTED._replace(type=_Predicted | None)
_GROUPS = Kind(Role.NAME, lambda groups: some(groups) or UNKNOWN, type=Sequence[str])
_HOLDS = Kind(Role.WORD, lambda holds: "yes" if holds else "no", type=bool | None)
_COLUMNS: list[Column[AfterSplit]] = [
    Column("APPLICATION", NAME, lambda each: each.before.application, "application"),
    Column("", WORD, lambda each: each.before.assignor, "assignor"),
    Column("GROUP", _GROUPS, lambda each: each.groups, "groups"),
    Column("WAITED-BEFORE", SECONDS, lambda each: each.before.stood_still, "waited_before", float | None),
    Column("OUTAGE-BEFORE", SECONDS, lambda each: each.before.outage, "outage_before", float | None),
    Column("RESTARTS-BEFORE", OFFSET, lambda each: each.before.replaced, "restarts_before"),
    Column("RESTARTS", OFFSET, lambda each: each.restarts, "restarts", int | None),
    Column("PREDICTED", _EXPECTED, lambda each: each.predicted and _Predicted(*each.predicted), "predicted"),
    Column("MEASURED", SECONDS, lambda each: each.measured, "measured", float | None),
    Column("HOLDS", _HOLDS, lambda each: each.holds, "holds"),
    Column("REMARKS", TEXTS, lambda each: each.remarks, "remarks"),
]


@row_of(_COLUMNS)
class AfterSplitApplication:
    """An application before and after the split of its consumer group. A value is null if it is not known.

    - assignor: the partition assignor of the shared group; "consumer" for a KIP-848 group.
    - groups: the new groups that got the application's topics.
    - waited_before: for how many seconds the application consumed nothing in the shared group because members of other
      applications joined or left.
    - outage_before: for how many seconds its partitions had no owner (assigned member) in the shared group, because
      its own members joined or left.
    - restarts_before, restarts: how often all its members restarted together, before and after the split.
    - predicted, measured: for how many seconds its partitions had no owner in the new groups.
    - holds: whether the measured seconds are in the predicted range, or within 20 % or 2 s of it.
    - remarks: what is not known, and why.
    """


class AfterSplitDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/after-split"):
    """The document that ``advise --after`` prints: the applications of a consumer group that was split.

    The application whose partitions were assigned to no member for the longest time after the split comes first.
    """

    applications: Sequence[AfterSplitApplication]


def result(found: Sequence[AfterSplit]) -> Result:
    """Return a table with one line for each application, in the order of ``found``.

    Among the columns are the predicted and the measured seconds in which the application's partitions had no member.
    """
    document = AfterSplitDocument(applications=[of_row(AfterSplitApplication, _COLUMNS, each) for each in found])
    group = found[0].before.group if found else UNKNOWN
    return Result(
        document=document,
        kind="Advice after a split",
        title=f"{counted(len(found), 'application')} of {group} after the split",
        parts=[
            Table(columns=_COLUMNS, rows=found, thing="application"),
            Line(_NOTE),
        ],
    )


def page(shown: Result) -> str:
    """Return the predicted and the measured cost of a split as one self-contained HTML page."""
    rows: Sequence[AfterSplit] = shown.tables[0].rows
    seconds = [value for each in rows for value in (each.before.outage, each.measured, each.before.stood_still)]
    return html.page("after_split.html", shown, most=max((each for each in seconds if each is not None), default=0))
