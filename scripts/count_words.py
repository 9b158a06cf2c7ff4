"""Print the words of the documentation by kind of page, with the budget of each kind.

Usage: ``scripts/count_words.py [--pages]``.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
USERS, REFERENCE, EVIDENCE = "what users read", "reference by hand", "evidence"
CONTRIBUTORS, WRITTEN = "for contributors", "written by scripts"
BUDGET: Mapping[str, int | None] = {
    USERS: 14_000,
    REFERENCE: 5_000,
    EVIDENCE: 4_000,
    CONTRIBUTORS: None,
    WRITTEN: None,
}
"""The kinds of page, each with the number of words that CONTRIBUTING.md allows; None: any number."""
_EXAMPLES = "docs/reference/json.md"


def words() -> dict[str, dict[str, int]]:
    """Return, for each kind, the words of each of its pages.

    A word has a letter or a digit: the lines of a table are none. A page of docs/ is for contributors if the navigation
    of the site says so. The examples of ``docs/reference/json.md`` count as written by scripts.
    """
    found: dict[str, dict[str, int]] = {kind: {} for kind in BUDGET}
    for_contributors = _for_contributors()
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        page, text = str(path.relative_to(ROOT)), path.read_text()
        count = _count(text)
        if page == _EXAMPLES:
            by_hand = _count(re.sub(r"^```json\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
            found[WRITTEN][f"{page}, examples"] = count - by_hand
            count = by_hand
        found[_kind(page, for_contributors)][page] = count
    return found


def _count(text: str) -> int:
    return sum(any(map(str.isalnum, each)) for each in text.split())


def _for_contributors() -> frozenset[str]:
    """Return the pages in the section "For contributors" of the site's navigation (zensical.toml)."""
    navigation = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    sections = {title: pages for section in navigation for title, pages in section.items()}
    return frozenset(f"docs/{path}" for entry in sections["For contributors"] for path in entry.values())


def _kind(page: str, for_contributors: Collection[str]) -> str:
    if page == "docs/reference/commands.md":
        return WRITTEN
    if page.startswith("docs/reference/"):
        return REFERENCE
    if page.startswith("docs/evidence/"):
        return EVIDENCE
    is_for_users = page == "README.md" or (page.startswith("docs/") and page not in for_contributors)
    return USERS if is_for_users else CONTRIBUTORS


def main() -> int:
    """Print a line for each kind and, with ``--pages``, for each page."""
    parser = argparse.ArgumentParser(description="Print the words of the documentation by kind of page.")
    parser.add_argument("--pages", action="store_true", help="print each page, too")
    shows_pages = parser.parse_args().pages
    for kind, pages in words().items():
        budget = BUDGET[kind]
        print(f"{sum(pages.values()):>7,}  {kind}{'' if budget is None else f' (budget {budget:,})'}")
        if shows_pages:
            for page, count in sorted(pages.items(), key=lambda each: -each[1]):
                print(f"{count:>11,}  {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
