"""Ordinary mistakes: each is answered with one line that says what happened, to what, and what to do.

``docs/troubleshooting.md`` lists them, with a part of the line.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from tests.support.cli import Cli, CliHere
from tests.support.connected import Connected
from tests.support.messages import entries
from tests.support.planning import handed_over

INVOICES, MAIL = TopicPartition("invoices", 0), TopicPartition("mail", 0)
RUN = "split.toml.run"
SPEC = """source = "big-group"
[[target]]
group = "billing"
topics = ["invoices"]
[stay]
topics = ["mail"]
[options]
settle = "0s"
guard = "1ms"
"""


class World(Connected):
    """The command line on a cluster in memory, on which ``big-group`` has stopped, with a spec and snapshots of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        for topic in (INVOICES, MAIL):
            self.cluster.create_topic(topic.topic, 1)
            self.cluster.produce(topic.topic, 0, 60)
            self.cluster.commit("big-group", topic, 40)
        self.spec(SPEC)
        tables.save(handed_over(self.cluster, "big-group", "billing"), folder / "split.csv", replace=True)

    def spec(self, text: str) -> None:
        (self.folder / "split.toml").write_text(text)

    def change_file(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        content = path.read_text()
        assert old in content
        path.write_text(content.replace(old, new))

    def join(self, group: str) -> None:
        member = Member(member_id=f"{group}-1", client_id="app", host="/10.0.0.7", subscription=frozenset({"invoices"}))
        self.cluster.join(group, member)

    def migrated(self) -> None:
        self("migrate", "split.toml", "--yes")

    def started(self) -> None:
        self.migrated()
        self.cluster.commit("billing", INVOICES, 50)

    def overtaken(self) -> None:
        self.started()
        self.join("billing")

    def deleted(self) -> None:
        self.migrated()
        self.cluster.delete_group("billing")

    def planned(self) -> None:
        self("migrate", "split.toml", "--dry-run", "--plan-out", "plan.json")
        self.change_file("split.toml", '"billing"', '"bills"')

    def forbidden(self) -> None:
        self.cluster.deny(Resource(ResourceType.GROUP, "billing"), Operation.READ)


class Mistake(NamedTuple):
    """A mistake of the page. done: makes it, except for the command. command: what the user types."""

    code: int
    command: str
    done: Callable[[World], object] = lambda world: None


CSV = "apply split.csv --dry-run"
DRY = "migrate split.toml --dry-run"
YES = "migrate split.toml --yes --wait 0s"
MISTAKES = {
    "the group is misspelled": Mistake(3, "describe big-gruop"),
    "a topic of the spec is misspelled": Mistake(
        2, DRY, lambda it: it.change_file("split.toml", "invoices", "invoises")
    ),
    "a glob matches nothing": Mistake(2, "filter split.csv --topic bill* -o out.csv"),
    "a topic is in two targets": Mistake(
        2, DRY, lambda it: it.spec(f'{SPEC}[[target]]\ngroup = "x"\ntopics = ["inv*"]')
    ),
    "a topic is in no target": Mistake(2, DRY, lambda it: it.change_file("split.toml", '["mail"]', "[]")),
    "the old group still runs": Mistake(3, YES, lambda it: it.join("big-group")),
    "the new group has members": Mistake(3, YES, lambda it: it.join("billing")),
    "the new group has other offsets": Mistake(3, DRY, lambda it: it.cluster.commit("billing", INVOICES, 7)),
    "the snapshot is of another cluster": Mistake(
        3, CSV, lambda it: it.change_file("split.csv", it.cluster.cluster_id(), "other")
    ),
    "the snapshot is of yesterday": Mistake(3, CSV, lambda it: it.cluster.commit("big-group", INVOICES, 46)),
    "the command is run again, and the new group has started": Mistake(0, YES, World.started),
    "`rollback` after the new group has committed": Mistake(3, f"rollback {RUN} --yes", World.started),
    "`hand-back` while the new group runs": Mistake(3, f"hand-back {RUN} --yes --wait 0s", World.overtaken),
    "somebody has deleted the new group": Mistake(3, YES, World.deleted),
    "the spreadsheet has saved semicolons": Mistake(2, CSV, lambda it: it.change_file("split.csv", ",", ";")),
    "the spreadsheet has rounded an offset": Mistake(2, CSV, lambda it: it.change_file("split.csv", ",40,", ",4E+01,")),
    "the CSV of `kafka-consumer-groups` got a header": Mistake(
        2, "apply k.csv --to-group x", lambda it: (it.folder / "k.csv").write_text("TOPIC,PARTITION,OFFSET\nt,0,5\n")
    ),
    "the file of `-o` exists": Mistake(2, "snapshot big-group -o split.csv"),
    "no `--yes` in a pipeline": Mistake(2, "migrate split.toml"),
    "a time without a UTC offset": Mistake(2, "rewind --group old --to-datetime 2026-11-27T10:00:00 -o out.csv"),
    "a run directory in place of a snapshot": Mistake(2, f"filter {RUN} -o out.csv", World.migrated),
    "a receipt in place of a plan": Mistake(2, f"{YES} --approved {RUN}/receipt.json", World.migrated),
    "`--approved` with another plan": Mistake(3, f"{YES} --approved plan.json", World.planned),
    "a permission is missing": Mistake(3, DRY, World.forbidden),
}
UNREACHABLE = {"the address of the broker is wrong": 5, "the port speaks TLS": 5, "Java is missing": 2}


def rows() -> dict[str, tuple[int, str]]:
    """Return what the page says of each mistake: the exit code, and a part of the line."""
    return {each.meaning: (each.code, each.fragments[0]) for each in entries()}


def said(cli: CliHere, command: str, code: int) -> str:
    """Run a command that must say one line about the mistake, and return this line."""
    status, _, complained = cli.outcome(*command.split())
    lines = [line for line in complained.splitlines() if line.startswith("error: ")]
    assert status == code, complained
    assert len(lines) == bool(code)
    assert "Traceback" not in complained
    return lines[0] if lines else complained


def test_the_page_lists_these_mistakes():
    """The page has a row for each mistake that is tested here, with its exit code."""
    codes = {mistake: each.code for mistake, each in MISTAKES.items()} | UNREACHABLE
    assert {mistake: rows().get(mistake, (None,))[0] for mistake in codes} == codes


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_with_the_line_of_the_page(tmp_path, monkeypatch, mistake):
    """A mistake is one line with the words of the page. Nothing is written to the group of the user."""
    world, case = World(tmp_path, monkeypatch), MISTAKES[mistake]
    case.done(world)
    before = world.cluster.offsets("billing")
    assert rows()[mistake][1] in said(world, case.command, case.code)
    assert world.cluster.offsets("billing") == before


def test_a_wrong_address(tmp_path):
    """If no broker listens at the address, the line says so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        line = said(CliHere(tmp_path, f"127.0.0.1:{taken.getsockname()[1]}"), "list --timeout 5s", 5)
    assert rows()["the address of the broker is wrong"][1] in line


def test_the_port_of_a_tls_listener(tmp_path):
    """If a listener answers with a TLS alert, the line says that it speaks TLS."""

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(b"\x15\x03\x03\x00\x02\x02\x46")

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=answer, daemon=True).start()
        line = said(CliHere(tmp_path, f"127.0.0.1:{listener.getsockname()[1]}"), "list --timeout 5s", 5)
    assert rows()["the port speaks TLS"][1] in line


def test_without_java(tmp_path, monkeypatch):
    """If there is no Java, a command with Spark says which one to install."""
    World(tmp_path, monkeypatch)
    cli = Cli(tmp_path)
    cli.environment |= {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    assert rows()["Java is missing"][1] in cli.fails("reconcile", "split.csv", "split.csv", code=2)
