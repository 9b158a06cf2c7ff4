"""The results of a campaign as Markdown tables; docs/evidence/reliability.md has some of their columns."""

from __future__ import annotations

import signal
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from tests.support.campaign.faults import FAULTS
from tests.support.campaign.run import Result
from tests.support.campaign.scenarios import SCENARIOS

_EXITS = {"exit 0": 0, "2": 2, "3": 3, "4": 4, "5": 5, "130": 130, "killed": -signal.SIGKILL}
_COLUMNS = ("runs", "records", "skipped", "twice", "receipts compared", *_EXITS, "failed", "no verdict")


def tables(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the tables, by scenario and by fault, and a summary.

    The exit codes are those of the commands that met the fault. A run has failed if a check found a problem. It
    has no verdict if the harness failed.
    """
    ran = [each for each in results if not each.left_out]
    yield from _table("scenario", [each.title for each in SCENARIOS], ran, lambda each: each.scenario)
    yield from _table("fault", FAULTS, ran, lambda each: each.fault)
    yield ""
    if ran:
        yield (
            f"commands that reached their step: {sum(each.halted for each in ran)}; "
            f"completed by the same command again: {sum(len(each.exits) > 1 and each.exits[-1] == 0 for each in ran)}; "
            f"entries of receipts that were open in between: {sum(each.open_entries for each in ran)}; "
            f"confirmed by one client only: {sum(each.one_client_only for each in ran)} runs; "
            f"median {statistics.median(each.seconds for each in ran):.1f} s a run"
        )
    if left_out := [each.seed for each in results if each.left_out]:
        yield f"{len(left_out)} runs were left out: only root can mount a small disk"
    if failed := [each.seed for each in ran if each.problems]:
        yield f"failed: {failed}"


def _table(title: str, names: Iterable[str], results: Sequence[Result], key: Callable[[Result], str]) -> Iterator[str]:
    by_name = [(name, [each for each in results if key(each) == name]) for name in names]
    yield ""
    yield f"| {title} | {' | '.join(_COLUMNS)} |"
    yield f"|{'---|' * (len(_COLUMNS) + 1)}"
    for name, of_name in [*filter(lambda pair: pair[1], by_name), ("all", results)]:
        yield f"| {name} | {' | '.join(f'{cell:,}' for cell in _cells(of_name))} |"


def _cells(results: Sequence[Result]) -> list[int]:
    exits = Counter(each.exits[0] for each in results if each.exits)
    return [
        len(results),
        sum(each.records for each in results),
        sum(each.skipped for each in results),
        sum(each.twice for each in results),
        sum(each.receipts for each in results),
        *(exits[code] for code in _EXITS.values()),
        sum(bool(each.problems) for each in results),
        sum(bool(each.no_verdict) for each in results),
    ]
