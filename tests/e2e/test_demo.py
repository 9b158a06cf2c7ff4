"""The demo, run as a new user runs it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli, CliHere, Process
from tests.support.documents import parsed
from tests.support.pages import not_printed, text_of


@pytest.fixture(scope="module")
def stories(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[Path, Process]]]:
    """The running demos, by story (``demo --story``): the folder and the process of each.

    The stories are "migration" and, with ``--long``, "clusters". They run at the same time, because both mostly wait.
    """
    names = ("migration", "clusters") if request.config.getoption("--long") else ("migration",)
    folders = {story: tmp_path_factory.mktemp(story) for story in names}
    started = {story: (folder, Cli(folder).start("demo", "--story", story)) for story, folder in folders.items()}
    yield started
    for _, process in started.values():
        process.kill()
        process.communicate()


def told(process: Process) -> str:
    """Wait until a demo has ended, check that its exit code is 0, and return its stdout."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, f"{out}\n{err}"
    return out


def test_demo_counts_every_record(stories):
    """The demo's migration skips no record and processes none twice, also after it is undone.

    The naive script that the demo also runs processes some records twice. The end says the measured outage, and each
    wait is one line, without zeros.
    """
    folder, process = stories["migration"]
    out = told(process)
    counts = re.search(r"produced ([\d,]+), processed ([\d,]+), skipped 0, twice 0", out)
    assert counts
    produced, processed = counts.groups()
    assert produced == processed != "0"
    naive = re.search(r"the naive way +([\d,]+) +([\d,]+) +(\d+) +([\d,]+)", out)
    assert naive
    assert naive[1] == produced
    assert naive[4] != "0"
    assert re.search(r"total +18 exact ", out)
    receipt = json.loads((folder / "demo-out" / "split.toml.run" / "receipt.json").read_text())
    assert [each["verb"] for each in receipt["executions"]] == ["hand-over", "hand-back"]
    assert {entry["outcome"] for entry in receipt["entries"]} == {"confirmed"}
    last = out.splitlines()[-2:]
    assert re.search(r"^outage: START \d+\.\d s after the last reading in which big-group still ran; first ", last[0])
    assert last[1].startswith("produced ")
    assert not re.search(r"^  .*(\b0\b|: none)", out, re.MULTILINE)
    assert len(re.findall(r"^  records processed by each application: ", out, re.MULTILINE)) == 1


@pytest.mark.long
def test_the_story_of_two_clusters(stories):
    """In ``demo --story clusters``, groups that start at the offsets of ``migrate`` process every record once.

    Groups that start at MirrorMaker 2's offsets process some records again, at most as many as ``compare`` has printed.
    """
    out = told(stories["clusters"][1])
    said = re.search(r"9 exact; from the committed offsets on the target ([\d,]+) records read again, 0 skipped", out)
    assert said
    ours, other = (re.search(rf"{way} +([\d,]+) +([\d,]+) +0 +([\d,]+)\n", out) for way in ("groups", "Maker 2"))
    assert ours
    assert other
    assert (ours[1], ours[3]) == (ours[2], "0")
    assert (other[1], other[2]) == (ours[1], ours[2])
    assert 0 < int(other[3].replace(",", "")) <= int(said[1].replace(",", ""))
    assert not_printed(text_of("docs/sandbox.md#The demo"), out) == []


@pytest.mark.long
def test_the_story_of_an_overloaded_group(tmp_path):
    """``demo --story overload`` names the application that restarts, and splits the group without a lost record.

    Then it compares the measured seconds with the predicted ones.
    """
    done = Cli(tmp_path)("demo", "--story", "overload", "--format", "json", seconds=400)
    counts = parsed(done.stdout)
    assert counts["migrate_groups"]["skipped"] == counts["migrate_groups"]["twice"] == 0
    assert counts["naive"] is None
    assert re.search(r"^big-group +3 .*search began", done.stderr, re.MULTILINE)
    assert re.search(r"^search +big-group-search .* 5 +5 .* yes$", done.stderr, re.MULTILINE)
    for name in ("billing", "catalog"):
        assert re.search(rf"^{name} +big-group-{name} .* 0 +0 +0\.0 s +0\.0 s +yes$", done.stderr, re.MULTILINE)
    rest = not_printed(text_of("docs/advise.md#After a split"), done.stderr.replace("demo-out/", ""))
    assert [line for line in rest if " big-group-" not in line] == []


def test_demo_does_not_change_a_folder_with_other_files(tmp_path):
    """If the folder demo-out has files that the demo did not write, ``demo`` ends with exit code 2.

    The files are not changed.
    """
    (tmp_path / "demo-out").mkdir()
    (tmp_path / "demo-out" / "thesis.txt").write_text("precious")
    assert "not an earlier demo's" in CliHere(tmp_path).fails("demo", code=2)
    assert (tmp_path / "demo-out" / "thesis.txt").read_text() == "precious"
