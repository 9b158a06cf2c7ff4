"""Print the result of `reconcile`, which compares offsets before and after a hand-over, and write its reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from migrate_groups.cli.console import show_as, talk

if TYPE_CHECKING:
    from migrate_groups.spark.reconciliation.result import Reconciliation

ReportFormat = Literal["table", "markdown", "json", "csv"]
ReportFormatOption = Annotated[
    ReportFormat,
    typer.Option(
        "--format",
        help="How the verdict is shown. markdown is for the comment of a pull request, json is one document on stdout. "
        "csv has a row for each group and topic.",
    ),
]

_SUMMARY = "group_topic_summary.csv"


def show_reconciliation(found: Reconciliation, output_format: ReportFormat, out: Path | None) -> None:
    """Print the result of ``reconcile`` on stdout, and write report.md and report.html to ``out``.

    out: the folder with the tables of the result; None: no report is written.
    """
    from migrate_groups.show.reconciliation import result

    show_as(output_format, result(found, str(out / _SUMMARY) if out else None))
    if out:
        _write_reports(found, out)
        talk(f"tables, report.md and report.html written to {out}")


def _write_reports(found: Reconciliation, out: Path) -> None:
    from migrate_groups.files.safe_write import write_whole
    from migrate_groups.show import markdown
    from migrate_groups.show.reconciliation import page, result

    pages = {"report.md": markdown.draw(result(found, _SUMMARY)), "report.html": page(found)}
    for name, text in pages.items():
        write_whole(out / name, lambda file, text=text: file.write(text.encode()))  # type: ignore[misc]
