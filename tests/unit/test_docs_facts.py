"""Facts that several pages state, or that the code or a test knows, are the same everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer.main

from migrate_groups.cli.registry import command_line
from migrate_groups.planning.options import WriteOptions
from migrate_groups.sandbox.versions import DEFAULT_VERSION, VERSIONS
from tests.support.pages import PAGES
from tests.support.sources import texts

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COMMANDS = typer.main.get_group(command_line()).commands
BY_HAND = {"4.2.0"}
"""The versions of Kafka that docs/evidence/reliability.md lists, and that `broker/test_versions.py` does not run."""


def page(path: str) -> str:
    """Return the text of a page, with single spaces in place of line breaks."""
    return " ".join((ROOT / path).read_text().split())


def test_the_readme_names_the_versions_of_kafka_that_the_tests_run_on():
    """The README names each version of `sandbox/versions.py`, and no other."""
    [named] = re.findall(r"All tests run on Kafka (.*?)\. No managed", page("README.md"))
    assert sorted(re.findall(r"\d+\.\d+\.\d+", named)) == sorted(VERSIONS)
    assert named.startswith(f"{DEFAULT_VERSION}, a part also on ")


def test_the_table_of_versions_has_the_versions_that_the_tests_run_on():
    """docs/evidence/reliability.md has a row for each version of Kafka, and says which version was run by hand."""
    cells = re.findall(r"^\| ([\d., ]+) \| \d+ \| \d+ \|", (DOCS / "evidence" / "reliability.md").read_text(), re.M)
    assert sorted(", ".join(cells).split(", ")) == sorted({*VERSIONS, *BY_HAND})
    assert f"each version but {', '.join(BY_HAND)}, which was run by hand" in page("docs/evidence/reliability.md")


def test_the_table_of_other_tools_names_their_versions():
    """Each other tool in the README's table has a version, and Kafka's is the version that the tests compare with."""
    [header] = re.findall(r"^\| \| `migrate-groups` \| (.*) \|$", (ROOT / "README.md").read_text(), re.M)
    versions = [re.fullmatch(r"`.*` \[?(\d+\.\d+)(?:\]\(\S+\))?", cell) for cell in header.split(" | ")]
    assert [each and each[1] for each in versions][1:].count(None) == 0
    assert versions[0]
    assert versions[0][1] == DEFAULT_VERSION.rpartition(".")[0]


def test_the_estimate_for_large_clusters_has_the_measured_figures():
    """The CPU time that docs/reconcile.md names stands in the table of docs/evidence/performance.md."""
    [rows, seconds] = re.findall(r"(\d+) million rows on each side took (\d+) s of CPU", page("docs/reconcile.md"))[0]
    [row] = re.findall(rf"^\| {rows},000,000 \|(.*)\|$", (DOCS / "evidence" / "performance.md").read_text(), re.M)
    assert row.split(" | ")[3].split(", ")[0] == seconds


def test_the_time_of_all_tests_is_the_same_on_each_page():
    """The README and CONTRIBUTING.md name the same number of minutes for `scripts/test`."""
    found = [
        re.findall(r"scripts/test .*: (\d+) minutes", (ROOT / each).read_text())
        for each in ("README.md", "CONTRIBUTING.md")
    ]
    assert len(found[0]) == 1
    assert found[0] == found[1]


def test_a_hold_adds_less_than_a_second_in_the_measured_runs():
    """docs/concepts.md says that a hold adds less than a second, as the runs with the same load average show."""
    assert "A hold adds [less than a second](evidence/performance.md#the-stop-with-default-options)" in page(
        "docs/concepts.md"
    )
    table = (DOCS / "evidence" / "performance.md").read_text()
    medians = {
        options: float(seconds)
        for options, seconds in re.findall(r"^\| (`--settle 0s.*?) \| 18, 3 \| ([\d.]+) ", table, re.M)
    }
    assert medians.keys() == {"`--settle 0s`", "`--settle 0s --hold`"}
    assert medians["`--settle 0s --hold`"] - medians["`--settle 0s`"] < 1


def test_spark_connect_was_run_with_the_versions_that_the_page_names():
    """docs/evidence/reliability.md names the oldest PySpark of pyproject.toml and that of scripts/constraints.txt."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["spark"]
    [oldest] = re.findall(r"pyspark>=([\d.]+)", " ".join(extras))
    [newest] = re.findall(r"^pyspark==(.*)$", (ROOT / "scripts" / "constraints.txt").read_text(), re.M)
    assert f"over Spark Connect with PySpark {oldest}.0 and {newest}," in page("docs/evidence/reliability.md")


def test_the_readme_has_the_default_times_of_migrate():
    """The README's times for the wait, for settle and for the guard are the defaults of `migrate`."""
    text, options = page("README.md"), WriteOptions()
    [wait] = [each.default for each in COMMANDS["migrate"].params if each.name == "wait"]
    assert f"up to {str(wait).removesuffix('m')} minutes (`--wait`)" in text
    assert f"for {options.settle:.0f} seconds (`--settle`)" in text
    assert f"watches the old group for {options.guard:.0f} seconds more" in text


def test_the_index_leads_to_each_page():
    """docs/index.md has a link to each other page in docs/."""
    links = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", (DOCS / "index.md").read_text())
    assert {*links} == {str(each.relative_to(DOCS)) for each in DOCS.rglob("*.md")} - {"index.md"}


@pytest.mark.parametrize("name", [each for each in PAGES if "kafka-behaviour" not in each])
def test_each_test_that_a_page_names_exists(name):
    """Each `tests/…` path on a page exists in the repository, so a reader can run it.

    `test_kafka_behaviour.py` does the same for docs/kafka-behaviour.md.
    """
    paths = re.findall(r"`[^`\n]*?(tests/[\w./]+)", (ROOT / name).read_text())
    assert [each for each in paths if not (ROOT / each.rstrip(".")).exists()] == []


def test_no_message_or_help_names_a_file_of_the_repository():
    """No text of the program names a page or a folder of the repository, which an installed package lacks.

    Nor does the help of a command. Docstrings and comments may do so.
    """
    files = [each.name for each in ROOT.glob("*.md")]
    pattern = re.compile(rf"(?<![\w/])(?:scripts|tests)/|{'|'.join(map(re.escape, files))}")
    found = [
        f"{module}, line {each.lineno}"
        for module, constants in texts().items()
        for each in constants
        if pattern.search(str(each.value))
    ]
    helps = [
        str(text)
        for each in COMMANDS.values()
        for text in (each.help, *(getattr(one, "help", "") for one in each.params))
    ]
    assert found == []
    assert [text for text in helps if pattern.search(text)] == []
