"""The outcome for each group of a fleet: which new group takes over, the verdict, the offsets and the outage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from migrate_groups.planning.plan import Plan
from migrate_groups.show.documents import Document, Part
from migrate_groups.show.plan_result import changed_partitions
from migrate_groups.show.result import COUNT, NAME, SECONDS, TEXT, WORD, Column, Line, Result, Table, Tone, Verdict
from migrate_groups.text import counted, some

_OF_EXIT_CODE = {2: "invalid", 3: "refused", 4: "incomplete", 5: "no answer"}
# The exit codes, the most serious first: with 4, some offsets may be written; 1 is a bug.
_SERIOUS = (4, 1, 5, 2, 3, 0)
_MOST_OUTAGES = 20
STARTED = "started"
"""The verdict of a group that an earlier run has handed over, and whose new group has started since."""


class FleetPart(Part, frozen=True, kw_only=True):
    """A consumer group of a fleet.

    - target: the new group.
    - verdict: ``moved``, or ``started`` if an earlier run handed the group over and the new group has started since. In
      a dry run, the verdict of the plan. After an error: ``invalid``, ``refused``, ``incomplete``, ``no answer`` or
      ``failed``.
    - exit_code: the exit code of ``migrate`` for this group alone.
    - offsets: the number of offsets that were written, or that a dry run would write; null after an error.
    - outage: seconds from the last reading in which the group still ran to its START; null if it is not known.
    - reason: the error, or of a plan the reasons of its warnings; null if there are none.
    - run_dir: the directory with the group's plan and receipt.
    """

    group: str
    target: str
    verdict: str
    exit_code: int
    offsets: int | None
    outage: float | None
    reason: str | None
    run_dir: Path

    @property
    def sort_key(self) -> int:
        """Where the group is in a table: failures first."""
        return _SERIOUS.index(self.exit_code)


def verdict_of(exit_code: int) -> str:
    """Return the verdict of a group whose hand-over ended with an error."""
    return _OF_EXIT_CODE.get(exit_code, "failed")


_COLUMNS: list[Column[FleetPart]] = [
    Column("group", NAME, lambda each: each.group),
    Column("new group", NAME, lambda each: each.target),
    Column("verdict", WORD, lambda each: each.verdict),
    Column("offsets", COUNT, lambda each: each.offsets),
    Column("outage", SECONDS, lambda each: each.outage),
    Column("reason", TEXT, lambda each: each.reason),
]


class FleetDocument(Document, frozen=True, kw_only=True, tag="migrate-groups/fleet"):
    """The document that ``migrate`` prints for a fleet.

    - dry_run: whether nothing was written.
    - groups: the outcome for each group, failures first.
    - left_out: why groups that the spec matches are left out, by group.
    """

    dry_run: bool
    groups: tuple[FleetPart, ...]
    left_out: dict[str, str]

    @property
    def exit_code(self) -> int:
        """The most serious exit code of a group: the first of 4, 1, 5, 2, 3 and 0 that any group has."""
        return min((each.exit_code for each in self.groups), key=_SERIOUS.index, default=0)

    def result(self, plans: Sequence[Plan] = (), saved: str | None = None, command: str = "") -> Result:
        """Return a table with the outcome for each group, failures first, and the totals.

        plans: those whose partitions a comment shows, folded. saved: the name of the folder with the plans; None: they
        are not saved. command: what to type next.
        """
        shown = [each for each in _COLUMNS if not (self.dry_run and each.heading == "outage")]
        failed = [each for each in self.groups if each.exit_code]
        figures = {
            "groups": f"{len(self.groups):,}",
            **{verdict: f"{count:,}" for verdict, count in self._verdicts().items()},
            "offsets": f"{sum(each.offsets or 0 for each in self.groups):,}",
        }
        word = verdict_of(self.exit_code) if failed else "pass" if self.dry_run else "moved"
        return Result(
            document=self,
            title="Plan of a fleet" if self.dry_run else "Fleet",
            verdict=Verdict(word, self.conclusion(), not failed),
            figures=figures,
            parts=[
                Table(columns=shown, rows=self.groups, thing="group"),
                *(Line(f"{group} is left out: {why}", Tone.NOTE) for group, why in self.left_out.items()),
                Line(f"{counted(len(self.groups), 'group')}: {self._totals()}"),
            ],
            details=[changed_partitions(plans)],
            everything=(saved, "has every plan") if saved else ("--plan-out plans", "saves every plan"),
            command=command,
        )

    def page(self, left: Sequence[str]) -> str:
        """Return the outcomes, and the longest outages, as an HTML page. left: what to do next."""
        from migrate_groups.show import html

        shown = self.result()
        shown = replace(shown, parts=[*(Line(each, Tone.HINT) for each in left), *shown.parts])
        known = [(each.outage, each) for each in self.groups if each.outage is not None]
        longest = [each for _, each in sorted(known, key=lambda pair: -pair[0])[:_MOST_OUTAGES]]
        return html.page("fleet.html", shown, longest=longest)

    def conclusion(self) -> str:
        """Return a sentence that says how many groups failed, and which."""
        failed = [f"{each.group} ({each.verdict})" for each in self.groups if each.exit_code]
        undone = "would not be handed over" if self.dry_run else "not done"
        if not failed:
            return f"{counted(len(self.groups), 'group')}, no failure"
        return f"{len(failed)} of {counted(len(self.groups), 'group')} {undone}: {some(failed)}"

    def _verdicts(self) -> Counter[str]:
        return Counter(each.verdict for each in self.groups)

    def _totals(self) -> str:
        parts = [f"{count:,} {verdict}" for verdict, count in self._verdicts().items()]
        return ", ".join([*parts, counted(sum(each.offsets or 0 for each in self.groups), "offset")])
