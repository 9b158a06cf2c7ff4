"""What reconcile shows and writes of its outcome."""

from __future__ import annotations

import json

import pytest

from migrate_groups.cli.reports import show_reconciliation
from migrate_groups.errors import InvalidInput
from migrate_groups.show import report_html, report_markdown
from tests.support.reconciliations import realistic


def test_both_reports_are_put_beside_the_tables(tmp_path, capsys):
    """With a folder of tables it gets report.md, which points at the table beside it, and report.html."""
    show_reconciliation(realistic(), "table", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.md", "report.html"}
    assert (tmp_path / "report.md").read_text() == report_markdown.report(realistic(), "group_topic_summary.csv")
    assert (tmp_path / "report.html").read_text() == report_html.report(realistic())
    assert f"report.html written to {tmp_path}" in capsys.readouterr().err.replace("\n", " ")


def test_a_report_is_never_replaced(tmp_path):
    """A report that is there already is another run's."""
    (tmp_path / "report.md").write_text("mine")
    with pytest.raises(InvalidInput, match="exists already"):
        show_reconciliation(realistic(), "json", tmp_path)
    assert (tmp_path / "report.md").read_text() == "mine"


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch, capsysbinary):
    """The verdict goes to stdout as a table, as a comment or as JSON, and nothing else does."""
    monkeypatch.chdir(tmp_path)
    shown = {}
    for output_format in ("table", "markdown", "json"):
        show_reconciliation(realistic(), output_format, None)
        shown[output_format], talk = capsysbinary.readouterr()
        assert talk == b""
    assert shown["markdown"].decode() == report_markdown.report(realistic())
    assert json.loads(shown["json"])["clean"] is False
    assert b"payments.refunded" in shown["table"]
    assert list(tmp_path.iterdir()) == []
