"""docs/troubleshooting.md explains the errors of the code, and no others."""

from __future__ import annotations

import re

from migrate_groups.planning.checks.registry import REGISTRY
from tests.support.messages import ANY, PAGE, all_texts, entries, raised
from tests.unit.test_docs import DOCS, tables_of_checks

OF_OWN = 12
"""A message with fewer letters of its own only passes on a reason that another function found."""


def test_each_message_of_the_exit_codes_from_3_on_is_on_the_page():
    """A message that a write, a broker or the evidence causes has a part on the page, below its exit code.

    Messages with exit code 2 name the option, file or property; the page explains some of them.
    """
    missing = []
    for message in raised():
        own = re.sub(rf"{ANY}|; nothing was (written|deleted)", "", message.text)
        parts = [part for each in entries() if each.code == message.code for part in each.fragments]
        short = sum(letter.isalpha() for letter in own) < OF_OWN
        if message.code >= 3 and not short and not any(part.strip(f" {ANY}:") in message.text for part in parts):
            missing.append(message)
    assert missing == []


def test_each_part_of_a_message_on_the_page_is_in_the_code():
    """The page has no words that no message has."""
    parts = [part for each in entries() for part in each.fragments]
    assert [part for part in parts if not any(part.strip(f" {ANY}:") in text for text in all_texts())] == []


def test_each_check_that_can_refuse_is_on_the_page():
    """The page names each check, except those whose table says that they never refuse a write."""
    section = PAGE.read_text().split("## Exit code 3")[1].split("\n|")[0]
    rows = [row for page in DOCS for table in tables_of_checks(page) for row in table]
    refusing = {row[0].strip() for row in rows if not _never(row) or "`pending`" in row[1]}
    names = {rule.name for rule in REGISTRY}
    assert {*re.findall("`([^`]+)`", section)} == names - ({row[0].strip() for row in rows} - refusing)


def _never(row: list[str]) -> bool:
    return any(cell.startswith("never") for cell in row[1:])
