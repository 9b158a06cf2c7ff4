"""The cost of splitting a consumer group, as predicted and as measured (``advise --after``)."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_groups.migration.advise.after import AfterSplit
from migrate_groups.migration.advise.predicted_costs import Predicted
from migrate_groups.show import html
from migrate_groups.show.documents import Document, Part
from migrate_groups.show.result import (
    EXPECTED,
    NAME,
    OFFSET,
    SECONDS,
    UNKNOWN,
    WORD,
    Column,
    Kind,
    Line,
    Result,
    Role,
    Table,
    headed,
)
from migrate_groups.show.rows import of_columns
from migrate_groups.text import counted, some

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


def _seconds(value: Predicted | None) -> PredictedSeconds | None:
    return None if value is None else PredictedSeconds(low=value.low, high=value.high)


_COLUMNS: list[Column[AfterSplit]] = [
    Column("APPLICATION", NAME, lambda each: each.before.application, "application"),
    Column("", WORD, lambda each: each.before.assignor, "assignor"),
    Column("GROUP", Kind(Role.NAME, lambda groups: some(groups) or UNKNOWN), lambda each: each.groups, "groups"),
    Column("WAITED-BEFORE", SECONDS, lambda each: each.before.stood_still, "waited_before"),
    Column("OUTAGE-BEFORE", SECONDS, lambda each: each.before.outage, "outage_before"),
    Column("RESTARTS-BEFORE", OFFSET, lambda each: each.before.replaced, "restarts_before"),
    Column("RESTARTS", OFFSET, lambda each: each.restarts, "restarts"),
    Column("PREDICTED", EXPECTED, lambda each: _seconds(each.predicted), "predicted"),
    Column("MEASURED", SECONDS, lambda each: each.measured, "measured"),
    Column("HOLDS", Kind(Role.WORD, lambda holds: "yes" if holds else "no"), lambda each: each.holds, "holds"),
    Column("REMARKS", Kind(Role.TEXT, "; ".join), lambda each: each.remarks, "remarks"),
]


def result(found: Sequence[AfterSplit]) -> Result:
    """Return a table with one line for each application, in the order of ``found``.

    Among the columns are the predicted and the measured seconds in which the application's partitions had no member.
    """
    document = AfterSplitDocument(applications=[of_columns(AfterSplitApplication, _COLUMNS, each) for each in found])
    group = found[0].before.group if found else UNKNOWN
    return Result(
        document=document,
        kind="Advice after a split",
        title=f"{counted(len(found), 'application')} of {group} after the split",
        parts=[
            Table(columns=headed(_COLUMNS), rows=found, thing="application"),
            Line(_NOTE),
        ],
    )


def page(shown: Result) -> str:
    """Return the predicted and the measured cost of a split as one self-contained HTML page."""
    applications: Sequence[AfterSplitApplication] = shown.document.applications
    seconds = [value for each in applications for value in (each.outage_before, each.measured, each.waited_before)]
    return html.page("after_split.html", shown, most=max((each for each in seconds if each is not None), default=0))
