"""The demo, run as a new user runs it."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.cli import Cli, CliHere
from tests.support.documents import parsed


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


@pytest.mark.long
def test_the_story_of_an_overloaded_group(tmp_path):
    """The restarting application is named, the split carried out, and its seconds are compared with the prediction."""
    done = Cli(tmp_path)("demo", "--story", "overload", "--format", "json", seconds=400)
    counts = parsed(done.stdout)
    assert counts["migrate_groups"]["skipped"] == counts["migrate_groups"]["twice"] == 0
    assert counts["naive"] is None
    assert re.search(r"^big-group +3 .*search began", done.stderr, re.MULTILINE)
    assert re.search(r"^search +big-group-search .* 5 +5 .* yes$", done.stderr, re.MULTILINE)
    for name in ("billing", "catalog"):
        assert re.search(rf"^{name} +big-group-{name} .* 0 +0 +0\.0 s +0\.0 s +yes$", done.stderr, re.MULTILINE)


def test_demo_does_not_change_a_folder_with_other_files(tmp_path):
    """If the folder demo-out has files that the demo did not write, it is not changed."""
    (tmp_path / "demo-out").mkdir()
    (tmp_path / "demo-out" / "thesis.txt").write_text("precious")
    assert "not an earlier demo's" in CliHere(tmp_path).fails("demo", code=2)
    assert (tmp_path / "demo-out" / "thesis.txt").read_text() == "precious"
