"""The cost of splitting a consumer group, as predicted and as measured: terminal view, JSON document, HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.migration.advise.after import AfterSplit
from migrate_groups.migration.advise.predicted_costs import Predicted
from migrate_groups.show.documents import Document, Part
from migrate_groups.show.page import environment
from migrate_groups.show.tables import UNKNOWN, Table, cell
from migrate_groups.text import counted, one_line, some

_COLUMNS = {
    **dict.fromkeys(("APPLICATION", "GROUP"), "<"),
    **dict.fromkeys(("WAITED-BEFORE", "OUTAGE-BEFORE", "RESTARTS-BEFORE", "RESTARTS", "PREDICTED", "MEASURED"), ">"),
    **dict.fromkeys(("HOLDS", "REMARKS"), "<"),
}
_TITLES = tuple(title.lower().replace("-", " ") for title in _COLUMNS)
_NOTE = (
    "Seconds without an owner, measured between records of the log. Waited before: in the shared group, for others. "
    "Predicted: for as many restarts as there were since the split. It holds if what was measured is in this range, or "
    "within 20 % or 2 s of it."
)


class PredictedSeconds(Part, frozen=True, kw_only=True):
    """A prediction: for how many seconds an application's partitions are assigned to no member after a split.

    low: if its members are back as early after a restart as the log allows. high: if each restart takes as long as in
    the shared group; in a KIP-848 group, if each start waits for a heartbeat.
    """

    low: float
    high: float


class AfterSplitApplication(Part, frozen=True, kw_only=True):
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

    application: str
    assignor: str
    groups: Sequence[str]
    waited_before: float | None
    outage_before: float | None
    restarts_before: int
    restarts: int | None
    predicted: PredictedSeconds | None
    measured: float | None
    holds: bool | None
    remarks: Sequence[str]


class AfterSplitDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/after-split"):
    """The document that ``advise --after`` prints: the applications of a consumer group that was split.

    The application whose partitions were assigned to no member for the longest time after the split comes first.
    """

    applications: Sequence[AfterSplitApplication]


def document(found: Sequence[AfterSplit]) -> AfterSplitDocument:
    """Return the JSON document of the applications, in the order of ``found``."""
    return AfterSplitDocument(
        applications=[
            AfterSplitApplication(
                application=each.before.application,
                assignor=each.before.assignor,
                groups=each.groups,
                waited_before=each.before.stood_still,
                outage_before=each.before.outage,
                restarts_before=each.before.replaced,
                restarts=each.restarts,
                predicted=None if each.predicted is None else PredictedSeconds(**each.predicted._asdict()),
                measured=each.measured,
                holds=each.holds,
                remarks=each.remarks,
            )
            for each in found
        ]
    )


def terminal(found: Sequence[AfterSplit]) -> RenderableType:
    """Return a table with one line for each application.

    Among the columns are the predicted and the measured seconds in which the application's partitions had no member.
    """
    table = Table(_COLUMNS)
    for each in found:
        table.add_row(*map(cell, _cells(each)))
    return Group(table, Text(_NOTE))


def page(found: Sequence[AfterSplit]) -> str:
    """Return the predicted and the measured cost of a split as one self-contained HTML page."""
    group = found[0].before.group if found else UNKNOWN
    known = [each for of in found for each in (of.before.outage, of.measured, of.before.stood_still)]
    return (
        environment()
        .get_template("after_split.html")
        .render(
            title=f"{counted(len(found), 'application')} of {one_line(group)} after the split",
            titles=_TITLES,
            found=found,
            most=max((each for each in known if each is not None), default=0),
            seconds=_seconds,
            rows=[_cells(each) for each in found],
            note=_NOTE,
        )
    )


def _cells(each: AfterSplit) -> tuple[str, ...]:
    row, seconds = each.before, each.measured
    return (
        row.application,
        some(each.groups) if each.groups else UNKNOWN,
        _seconds(row.stood_still),
        _seconds(row.outage),
        str(row.replaced),
        UNKNOWN if each.restarts is None else str(each.restarts),
        expected(each.predicted),
        _seconds(seconds),
        {True: "yes", False: "no", None: UNKNOWN}[each.holds],
        "; ".join(each.remarks),
    )


def expected(value: Predicted | None) -> str:
    """Return a predicted time as text, such as ``3.0 to 9.0 s``; ``-`` for None."""
    if value is None:
        return UNKNOWN
    low, high = f"{value.low:.1f}", f"{value.high:.1f}"
    return f"{low} s" if low == high else f"{low} to {high} s"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f} s"
