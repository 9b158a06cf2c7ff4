"""The confirmation prompt before a write: when it appears, and what it says."""

from __future__ import annotations

import pytest
import typer

from migrate_groups.cli.console import confirm
from migrate_groups.cli.terminal import Terminal
from migrate_groups.errors import Refused
from migrate_groups.migration.carry_out import agree
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan

NOTHING = Plan(cluster_id="c", options=WriteOptions(), changes=(), checks=())


@pytest.fixture
def questions(monkeypatch) -> list[str]:
    """The texts of the confirmation prompts that were shown. The answer to each is no."""
    asked: list[str] = []
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text))
    return asked


def test_a_plan_without_changes_needs_no_confirmation(questions):
    """If a plan has no changes, no confirmation prompt is shown."""
    agree(NOTHING, tuple, Terminal())
    assert questions == []


def test_the_question_shows_a_name_on_one_line(questions):
    """Control characters in a group's name are escaped in the confirmation prompt, so they can't change its text."""
    confirm("Delete group a\n\x1b[2K\u202eb?")
    assert questions == ["Delete group a\\n\\x1b[2K\\u202eb?"]


def test_an_empty_provisional_plan_needs_confirmation(questions):
    """A provisional plan without changes needs confirmation too, because it may change once the group has stopped."""
    with pytest.raises(Refused, match="the answer was no; nothing was written"):
        agree(NOTHING, tuple, Terminal(), provisional=True)
    assert questions == ["Write 0 offsets?"]
