"""The cost of splitting a consumer group, as predicted and as measured (``advise --after``)."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_groups.migration.advise.after import AfterSplit
from migrate_groups.show import html
from migrate_groups.show.documents import Document, Part
from migrate_groups.show.result import EXPECTED, NAME, OFFSET, SECONDS, TEXT, UNKNOWN, WORD, Column, Line, Result, Table
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


_COLUMNS: list[Column[AfterSplitApplication]] = [
    Column("APPLICATION", NAME, lambda each: each.application),
    Column("GROUP", NAME, lambda each: some(each.groups) if each.groups else None),
    Column("WAITED-BEFORE", SECONDS, lambda each: each.waited_before),
    Column("OUTAGE-BEFORE", SECONDS, lambda each: each.outage_before),
    Column("RESTARTS-BEFORE", OFFSET, lambda each: each.restarts_before),
    Column("RESTARTS", OFFSET, lambda each: each.restarts),
    Column("PREDICTED", EXPECTED, lambda each: each.predicted),
    Column("MEASURED", SECONDS, lambda each: each.measured),
    Column("HOLDS", WORD, lambda each: {True: "yes", False: "no", None: None}[each.holds]),
    Column("REMARKS", TEXT, lambda each: "; ".join(each.remarks)),
]


def result(found: Sequence[AfterSplit]) -> Result:
    """Return a table with one line for each application, in the order of ``found``.

    Among the columns are the predicted and the measured seconds in which the application's partitions had no member.
    """
    document = AfterSplitDocument(
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
    group = found[0].before.group if found else UNKNOWN
    return Result(
        document=document,
        kind="Advice after a split",
        title=f"{counted(len(found), 'application')} of {group} after the split",
        parts=[
            Table(columns=_COLUMNS, rows=document.applications, thing="application"),
            Line(_NOTE),
        ],
    )


def page(shown: Result) -> str:
    """Return the predicted and the measured cost of a split as one self-contained HTML page."""
    applications: Sequence[AfterSplitApplication] = shown.document.applications
    seconds = [value for each in applications for value in (each.outage_before, each.measured, each.waited_before)]
    return html.page("after_split.html", shown, most=max((each for each in seconds if each is not None), default=0))
