"""The output and the report files that `reconcile` makes from its result."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest

from migrate_groups.cli.commands.reconcile import show_reconciliation
from migrate_groups.errors import InvalidInput
from migrate_groups.show import markdown
from migrate_groups.show.reconciliation import page, result
from tests.support.reconciliations import realistic, reconciliation, topic


def test_both_reports_are_written_beside_the_tables(tmp_path, capsys):
    """`reconcile` writes ``report.md`` and ``report.html`` into the folder of its tables.

    ``report.md`` names ``group_topic_summary.csv`` as the file that lists every topic.
    """
    show_reconciliation(realistic(), "table", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.md", "report.html"}
    assert (tmp_path / "report.md").read_text() == markdown.draw(result(realistic(), "group_topic_summary.csv"))
    assert (tmp_path / "report.html").read_text() == page(realistic())
    assert f"report.html written to {tmp_path}" in capsys.readouterr().err.replace("\n", " ")


def test_time_lag_is_shown_if_it_is_known(capsysbinary):
    """If time lags are known, every output of `reconcile` shows a topic's largest time lag before and after.

    If none is known, neither table nor Markdown nor HTML mentions time lags.
    """
    rows = [topic("a")._replace(time_lag_before=5400.0), topic("b")._replace(time_lag_after=0.25)]
    found = reconciliation(*rows)
    totals = found.totals._replace(time_lag_before=5400.0, time_lag_after=0.25)
    for output_format in ("table", "markdown"):
        for known, times in ((replace(found, totals=totals), 2), (found, 0)):
            show_reconciliation(known, output_format, None)
            text = capsysbinary.readouterr().out.decode()
            assert (text.count("1 h 30 min"), text.count("250 ms")) == (times, times)
            assert ("time lag" in text) == bool(times)
    timed, plain = (page(each) for each in (replace(found, totals=totals), found))
    assert (timed.count('<td class="n">1 h 30 min</td>'), timed.count("250 ms")) == (1, 2)
    assert "time lag" not in plain
    assert json.loads(msgspec.json.encode(result(found).document))["summary"][0]["time_lag_before"] == 5400.0


def test_a_report_is_never_replaced(tmp_path, capsys):
    """`reconcile` never replaces an existing report file, because the file belongs to another run.

    The tables of this run stay, and stderr says so.
    """
    (tmp_path / "report.md").write_text("mine")
    with pytest.raises(InvalidInput, match="exists already"):
        show_reconciliation(realistic(), "markdown", tmp_path)
    assert (tmp_path / "report.md").read_text() == "mine"
    assert capsys.readouterr().err == f"tables written to {tmp_path}: they are complete, and stay\n"


def test_without_a_folder_no_file_is_written(tmp_path, monkeypatch, capsysbinary):
    """Without an output folder, `reconcile` writes no file, and prints a table, Markdown or JSON on stdout.

    stderr stays empty.
    """
    monkeypatch.chdir(tmp_path)
    shown = {}
    for output_format in ("table", "markdown", "json"):
        show_reconciliation(realistic(), output_format, None)
        shown[output_format], talk = capsysbinary.readouterr()
        assert talk == b""
    assert shown["markdown"].decode() == markdown.draw(result(realistic()))
    assert json.loads(shown["json"])["clean"] is False
    assert b"payments.refunded" in shown["table"]
    assert list(tmp_path.iterdir()) == []
