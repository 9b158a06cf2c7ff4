"""The predicted and the measured cost of a split: the terminal view, the JSON document, and the HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from migrate_groups.migration.advise.after import AfterSplit
from migrate_groups.migration.advise.costs import KIP_848, Predicted
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
    "Seconds without an owner. Waited before: in the shared group, for others, at most. Predicted: for as many "
    "restarts as there were since the split. It holds if it is within 20 % or 2 s of what the log shows."
)
_NOTE_KIP_848 = " In a KIP-848 group it also holds if the log shows more, but not more than the `at most`."


class PredictedSeconds(Part, frozen=True, kw_only=True):
    """A prediction for a period: the seconds in which partitions of an application have no owner after a split.

    An owner is the member that a partition is assigned to. seconds: the expected time. at_most: the time in the worst
    case.
    """

    seconds: float
    at_most: float


class AfterSplitApplication(Part, frozen=True, kw_only=True):
    """An application before and after the split. A value that is not known is null.

    assignor: the assignor of the shared group; "consumer" for KIP-848. groups: the new groups that got its topics.
    waited_before: an upper bound of the seconds for which it stood still in the shared group because of other
    applications. outage_before: the seconds in which its partitions had no owner because of its own members.
    restarts_before, restarts: how often all its members restarted together, before the split and since. predicted,
    measured: the seconds since the split in which its partitions had no owner. holds: whether the measured seconds
    differ from the predicted ones by at most 20 % or 2 s. remarks: what is not known, and why.
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
    """The result of ``advise --after``: the applications.

    The application whose partitions had no owner (no member consumed them) for the longest time since the split comes
    first.
    """

    applications: Sequence[AfterSplitApplication]


def document(found: Sequence[AfterSplit]) -> AfterSplitDocument:
    """Return the JSON document of these applications, in the same order."""
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
    """Return a table with one line for each application: how long its partitions had no owner, and the prediction."""
    table = Table(_COLUMNS)
    for each in found:
        table.add_row(*map(cell, _cells(each)))
    return Group(table, Text(_note(found)))


def page(found: Sequence[AfterSplit]) -> str:
    """Return the predicted and the measured cost of a split as one HTML file without external parts."""
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
            note=_note(found),
        )
    )


def _note(found: Sequence[AfterSplit]) -> str:
    return _NOTE + _NOTE_KIP_848 * any(each.before.assignor == KIP_848 for each in found)


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
    """Return how long partitions are predicted to have no owner, as ``3.0 s, at most 9.0 s``; ``-`` if not known."""
    if value is None:
        return UNKNOWN
    seconds, at_most = f"{value.seconds:.1f} s", f"{value.at_most:.1f} s"
    return seconds if seconds == at_most else f"{seconds}, at most {at_most}"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f} s"
