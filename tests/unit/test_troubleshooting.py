"""docs/troubleshooting.md explains the errors of the code, and no others."""

from __future__ import annotations

import re

from tests.support.messages import ANY, all_texts, entries, raised

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
