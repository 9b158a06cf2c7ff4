"""docs/kafka-behaviour.md names tests that exist, and the code refers to sections of this page that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kafka-behaviour.md").read_text()


def test_every_test_that_the_page_names_exists():
    """Each test that docs/kafka-behaviour.md names as `file::test` exists, so a reader can repeat the measurement."""
    named = re.findall(r"`(\w+/\w+\.py)::(test_\w+)`", PAGE)
    assert named
    missing = [each for each in named if f"def {each[1]}(" not in (ROOT / "tests" / each[0]).read_text()]
    assert missing == []


def test_every_reference_leads_to_a_section():
    """The code refers to each section of docs/kafka-behaviour.md and to no other.

    No source in it is just "(measured)".
    """
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings}
    sources = {path: path.read_text() for path in (ROOT / "migrate_groups").rglob("*.py")}
    referred = {each for text in sources.values() for each in re.findall(r"kafka-behaviour\.md#([a-z-]+)", text)}
    assert referred == anchors
    assert [path.name for path, text in sources.items() if re.search(r"(?<!\.)measured\)", text)] == []
