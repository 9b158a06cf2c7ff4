"""docs/evidence/conformance.md counts the cases of tests/data/conformance.md correctly."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from migrate_groups.sandbox.versions import DEFAULT_VERSION
from tests.support.conformance import Row, rows

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "conformance.md"
RESULTS = ("same result", "other exit code", "other result")


def result_of(row: Row) -> str:
    """Return the column of the page's first table in which a case counts."""
    if row.kafkas_result == row.our_result:
        return "same result"
    (_, kafkas), (our_code, ours) = row.kafkas_result.split(": "), row.our_result.split(": ")
    return "other exit code" if kafkas == ours and our_code != "0" else "other result"


def test_the_table_of_results_counts_the_cases():
    """The first table has the number of cases of each area, and how many of them have which result."""
    counts = Counter((area, result_of(row)) for row in rows() for area in (row.area, "all"))
    expected = [
        [area, str(sum(found)), *map(str, found)]
        for area in dict.fromkeys([*(row.area for row in rows()), "all"])
        if (found := [counts[area, result] for result in RESULTS])
    ]
    table = re.findall(r"^\| ([^|`]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.M)
    assert [list(row) for row in table] == expected


def test_the_other_results_are_all_in_the_second_table():
    """The second table has a reason for as many cases as have another result than with Kafka's tool."""
    listed = re.findall(r"^\| [^|]+ \| [^|]+ \| (\d+) \|$", PAGE.read_text(), re.M)
    assert sum(map(int, listed)) == [result_of(row) for row in rows()].count("other result")


def test_the_page_has_the_version_that_the_tests_compare_with():
    """The page names the version of Kafka on which the cases run by default."""
    assert f"`kafka-consumer-groups` {DEFAULT_VERSION}" in PAGE.read_text()
