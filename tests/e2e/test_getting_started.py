"""docs/getting-started.md: its commands, typed into three terminals, print what the page shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.broker_world import until
from tests.support.pages import PAGES, blocks, not_printed
from tests.support.shell import CTRL_C, Shell

PAGE = PAGES["docs/getting-started.md"].read_text()
_SECONDS = 400


def lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


@pytest.fixture
def terminals(tmp_path) -> Iterator[list[Shell]]:
    """The three terminals of the page: Kafka runs in the first, and the others have its address."""
    with ExitStack() as opened:
        kafka = opened.enter_context(Shell(tmp_path))
        kafka.type("migrate-groups sandbox\n")
        kafka.wait_for(r"\n127\.0\.0\.1:\d+\r")
        address = kafka.shown.split()[-1]
        more = [opened.enter_context(Shell(tmp_path, MIGRATE_GROUPS_BOOTSTRAP_SERVER=address)) for _ in range(2)]
        yield [kafka, *more]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="setsid gives bash its terminal")
def test_the_page_shows_what_its_commands_print(terminals, tmp_path):
    """The commands of docs/getting-started.md print each line that the page shows; only numbers may differ."""
    kafka, applications, commands = terminals
    produced, processed = (tmp_path / f"{name}.txt" for name in ("produced", "processed"))
    # Without the blocks for the installation and the other terminals.
    typed = blocks(PAGE, "sh")[2:]
    begin, look, dry_run, split, new, prove, back, stop, again, count, own = typed

    def confirmed(command: str) -> int:
        start = commands.type(command)
        commands.wait_for(r"\[y/N\]: $", start)
        commands.type("y\n")
        commands.wait_for("waiting up to", start)
        return start

    def handed_over(start: int, new_applications: str) -> None:
        commands.wait_for("START THE NEW GROUPS NOW", start)
        applications.type(new_applications)
        commands.await_end(start)

    applications.type(begin)
    until(lambda: lines(processed) > 500, seconds=_SECONDS)
    commands.run(look)
    commands.run(dry_run)
    start = confirmed(split)
    applications.type(CTRL_C)
    handed_over(start, new)
    commands.run(prove)
    start = confirmed(back)
    applications.type(stop)
    commands.await_end(start)
    applications.type(again)
    until(lambda: lines(processed) >= lines(produced), seconds=_SECONDS)
    applications.type(CTRL_C)
    applications.run(count)
    commands.run(own.replace("kafka:9092", kafka.shown.split()[-1]))

    printed = "\n".join(each.close() for each in terminals)
    assert "error: " not in printed
    assert not_printed(PAGE, printed) == []
