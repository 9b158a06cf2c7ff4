"""The demo, run as a new user runs it."""

from __future__ import annotations

import json
import re

from tests.support.cli import Cli, CliHere


def test_demo_counts_every_record(tmp_path):
    """The demo's migration skips no record and processes none twice; its naive script processes records twice."""
    demo = Cli(tmp_path)
    done = demo("demo", seconds=300)
    counts = re.search(r"produced ([\d,]+), processed ([\d,]+), skipped 0, twice 0", done.stdout)
    assert counts
    produced, processed = counts.groups()
    assert produced == processed != "0"
    naive = re.search(r"the naive way +([\d,]+) +([\d,]+) +(\d+) +([\d,]+)", done.stdout)
    assert naive
    assert naive[1] == produced
    assert naive[4] != "0"
    assert re.search(r"total +18 exact ", done.stdout)
    receipt = json.loads((tmp_path / "demo-out" / "split.csv.receipt.json").read_text())
    assert {entry["outcome"] for entry in receipt["entries"]} == {"confirmed"}


def test_demo_does_not_change_a_folder_with_other_files(tmp_path):
    """If the folder demo-out has files that the demo did not write, it is not changed."""
    (tmp_path / "demo-out").mkdir()
    (tmp_path / "demo-out" / "thesis.txt").write_text("precious")
    assert "not an earlier demo's" in CliHere(tmp_path).fails("demo", code=2)
    assert (tmp_path / "demo-out" / "thesis.txt").read_text() == "precious"
