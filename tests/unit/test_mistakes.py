"""Ordinary mistakes: each is answered with one line that says what happened, to what, and what to do."""

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
    """A mistake. says: a part of the line. command: what the user types. done: makes the mistake before that."""

    code: int
    says: str
    command: str
    done: Callable[[World], object] = lambda world: None


CSV = "apply split.csv --dry-run"
DRY = "migrate split.toml --dry-run"
YES = "migrate split.toml --yes --wait 0s"
MISTAKES = {
    "the group is misspelled": Mistake(3, "group 'big-gruop' does not exist on this cluster", "describe big-gruop"),
    "a topic of the spec is misspelled": Mistake(
        2,
        "no topic of the group matches invoises (billing): did you mean invoices?",
        DRY,
        lambda it: it.change_file("split.toml", "invoices", "invoises"),
    ),
    "a glob matches nothing": Mistake(
        2, "no topic matches bill*: choose from", "filter split.csv --topic bill* -o out.csv"
    ),
    "a topic is in two targets": Mistake(
        2,
        "several groups take topic invoices (billing, x), so records would be processed twice: keep one group",
        DRY,
        lambda it: it.spec(f'{SPEC}[[target]]\ngroup = "x"\ntopics = ["inv*"]'),
    ),
    "a topic is in no target": Mistake(
        2,
        "no target group takes topic mail: give each to a target group, or let it stay",
        DRY,
        lambda it: it.change_file("split.toml", '["mail"]', "[]"),
    ),
    "the old group still runs": Mistake(
        3, "stop these consumers, or wait longer with --wait", YES, lambda it: it.join("big-group")
    ),
    "the new group has members": Mistake(
        3,
        "stop these members: brokers accept offsets only for groups without members",
        YES,
        lambda it: it.join("billing"),
    ),
    "the new group has other offsets": Mistake(
        3,
        "billing invoices-0 is at 7, not 40; unless an application has run there, pass --on-existing forward",
        DRY,
        lambda it: it.cluster.commit("billing", INVOICES, 7),
    ),
    "the snapshot is of another cluster": Mistake(
        3,
        "check --bootstrap-server, or take a new snapshot",
        CSV,
        lambda it: it.change_file("split.csv", it.cluster.cluster_id(), "other"),
    ),
    "the snapshot is of yesterday": Mistake(
        3,
        "1 committed offset moved since the snapshot: invoices-0 40 → 46 (+6); take a new snapshot",
        CSV,
        lambda it: it.cluster.commit("big-group", INVOICES, 46),
    ),
    "the command is run again, and the new group has started": Mistake(
        0, "handed over already, and started since: group billing; nothing was written", YES, World.started
    ),
    "`rollback` after the new group has committed": Mistake(
        3, "the group has committed since the hand-over: use hand-back", f"rollback {RUN} --yes", World.started
    ),
    "`hand-back` while the new group runs": Mistake(
        3, "stop these consumers, or wait longer with --wait", f"hand-back {RUN} --yes --wait 0s", World.overtaken
    ),
    "somebody has deleted the new group": Mistake(
        3, "it is not known how far the group read: set it with apply --no-source-group", YES, World.deleted
    ),
    "the spreadsheet has saved semicolons": Mistake(
        2,
        "is a CSV file with semicolons or tabs, not a snapshot: save it with commas",
        CSV,
        lambda it: it.change_file("split.csv", ",", ";"),
    ),
    "the spreadsheet has rounded an offset": Mistake(
        2,
        "a spreadsheet has rounded it: write the file again",
        CSV,
        lambda it: it.change_file("split.csv", ",40,", ",4E+01,"),
    ),
    "the CSV of `kafka-consumer-groups` got a header": Mistake(
        2,
        "a CSV of kafka-consumer-groups has none: remove the line",
        "apply k.csv --to-group x",
        lambda it: (it.folder / "k.csv").write_text("TOPIC,PARTITION,OFFSET\nt,0,5\n"),
    ),
    "the file of `-o` exists": Mistake(
        2,
        "split.csv exists already; choose another name, or pass --force to replace it",
        "snapshot big-group -o split.csv",
    ),
    "no `--yes` in a pipeline": Mistake(
        2, "stdin is not a terminal: pass --yes to write, or --dry-run to look", "migrate split.toml"
    ),
    "a time without a UTC offset": Mistake(
        2,
        "a time without a UTC offset: end it with Z or, for instance, +11:00",
        "rewind --group old --to-datetime 2026-11-27T10:00:00 -o out.csv",
    ),
    "a run directory in place of a snapshot": Mistake(
        2,
        "is a run directory: pass it to status, rollback, hand-back, delete-offsets, reconcile or audit",
        f"filter {RUN} -o out.csv",
        World.migrated,
    ),
    "a receipt in place of a plan": Mistake(
        2,
        "is a receipt, not a plan: pass it to status, rollback, hand-back or delete-offsets",
        f"{YES} --approved {RUN}/receipt.json",
        World.migrated,
    ),
    "`--approved` with another plan": Mistake(
        3, "have a new plan reviewed", f"{YES} --approved plan.json", World.planned
    ),
    "a permission is missing": Mistake(
        3, "permission: User:ANONYMOUS lacks Read on Group 'billing'", DRY, World.forbidden
    ),
}


def said(cli: CliHere, command: str, code: int) -> str:
    """Run a command that must say one line about the mistake, and return this line."""
    status, _, complained = cli.outcome(*command.split())
    lines = [line for line in complained.splitlines() if line.startswith("error: ")]
    assert status == code, complained
    assert len(lines) == bool(code)
    assert "Traceback" not in complained
    return lines[0] if lines else complained


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_with_one_line(tmp_path, monkeypatch, mistake):
    """A mistake is answered with one line that names it and what to do. Nothing is written to the group of the user."""
    world, case = World(tmp_path, monkeypatch), MISTAKES[mistake]
    case.done(world)
    before = world.cluster.offsets("billing")
    assert case.says in said(world, case.command, case.code)
    assert world.cluster.offsets("billing") == before


def test_a_wrong_address(tmp_path):
    """If no broker listens at the address, the line says so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        line = said(CliHere(tmp_path, f"127.0.0.1:{taken.getsockname()[1]}"), "list --timeout 5s", 5)
    assert "Connection refused); check --bootstrap-server" in line


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
    assert "speaks TLS, but security.protocol is PLAINTEXT; check --command-config" in line


def test_without_java(tmp_path, monkeypatch):
    """If there is no Java, a command with Spark says which one to install."""
    World(tmp_path, monkeypatch)
    cli = Cli(tmp_path)
    cli.environment |= {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    assert "it needs Java 17 or newer" in cli.fails("reconcile", "split.csv", "split.csv", code=2)
