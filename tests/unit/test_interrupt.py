"""Ctrl-C, SIGTERM and SIGHUP at any moment: exit 130, and one line that says what was written."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from migrate_groups.cli import person
from migrate_groups.cli.spark_here import interrupted_later
from migrate_groups.migration import carry_out
from migrate_groups.migration.hand_over import apply, cut_over
from migrate_groups.show import terminal
from tests.support.cli import Cli, running
from tests.support.connected import APPLY, MIGRATE, Connected

NOTHING = "interrupted; nothing was written to the cluster\n"
WRITTEN = (
    "interrupted; all offsets are written and confirmed; "
    "receipt.json lists what was written: run the same command again to resume\n"
)


def interrupt(*_, **__):
    raise KeyboardInterrupt


def last_line(cli: Connected, *command: str) -> str:
    """Run a command that is interrupted, and return the last line of its stderr."""
    return cli(*command, code=130).stderr.splitlines(keepends=True)[-1]


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    return Connected(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("module", "name", "said", "offset"),
    [
        (apply, "plan_at_the_write", NOTHING, None),
        (carry_out, "guard", WRITTEN, 5),
        (terminal, "execution", WRITTEN, 5),
    ],
)
def test_the_message_depends_on_whether_the_write_had_begun(cli, monkeypatch, module, name, said, offset):
    """Before the write, the message says that nothing was written. From the guard on, it names the receipt."""
    monkeypatch.setattr(module, name, interrupt)
    assert last_line(cli, *APPLY) == said
    assert cli.offset("new") == offset


class _Deaf:
    def __del__(self):
        raise KeyboardInterrupt


def test_an_interrupt_that_python_drops_comes_again(cli, monkeypatch):
    """An interrupt in a destructor ends the command, although Python only prints it and continues."""

    def drop_an_interrupt(*_, **__):
        _Deaf()
        threading.Event().wait(60)

    monkeypatch.setattr(apply, "plan_at_the_write", drop_an_interrupt)
    assert last_line(cli, *APPLY) == NOTHING


def test_an_interrupted_wait_says_what_the_old_applications_may_do(cli, monkeypatch):
    """Ctrl-C during the wait for the old group says that nothing was written, and that its applications may go on."""
    monkeypatch.setattr(cut_over.CutOver, "wait_for_stop", interrupt)
    assert last_line(cli, *MIGRATE) == (
        "interrupted; nothing was written to the cluster; the old applications may go on, or start again\n"
    )


@pytest.mark.parametrize("command", [APPLY, MIGRATE])
def test_interrupt_while_clients_are_closed(cli, command):
    """When clients are being closed, the write is over: the message names the receipt, and the same command resumes."""
    cli.at_the_close = interrupt
    said = last_line(cli, *command)
    assert said.endswith("receipt.json lists what was written: run the same command again to resume\n")
    assert cli.offset("new") == 5
    cli.at_the_close = lambda: None
    cli(*command)


def test_a_second_interrupt(cli, monkeypatch):
    """A second Ctrl-C, while the clients are being closed after the first, ends with the message of the first."""
    monkeypatch.setattr(carry_out, "guard", interrupt)
    cli.at_the_close = interrupt
    assert last_line(cli, *APPLY) == WRITTEN


def test_interrupt_while_a_hold_is_released(cli, monkeypatch):
    """While a hold is released, the write is over, so the message names the receipt."""
    held = cli.cluster.held

    @contextmanager
    def held_until_interrupted(group):
        with held(group) as each:
            yield each
        interrupt()

    monkeypatch.setattr(cli.cluster, "held", held_until_interrupted)
    assert "receipt.json lists what was written" in last_line(cli, *MIGRATE, "--hold")
    assert cli.offset("new") == 5


def test_an_interrupted_rollback_names_the_receipt(cli, monkeypatch):
    """The message of an interrupted rollback names the receipt, which records what the rollback wrote."""
    cli(*APPLY)
    monkeypatch.setattr(terminal, "execution", interrupt)
    said = last_line(cli, "rollback", "receipt.json", "--yes")
    assert said == WRITTEN
    assert cli.offset("new") is None


def test_the_message_ignores_an_earlier_command_in_the_same_process(cli, monkeypatch):
    """The message is about the interrupted command, not about an earlier command of the same process."""
    cli(*APPLY)
    monkeypatch.setattr(apply, "plan_at_the_write", interrupt)
    assert last_line(cli, *APPLY) == NOTHING


@pytest.mark.parametrize(
    "command",
    [
        (*APPLY[:-3], *APPLY[-2:]),
        MIGRATE[:-1],
        ("delete-group", "old"),
        ("delete-offsets", "--group", "old", "--topic", "t"),
        ("apply", "--group", "old", "--to-group", "new"),
    ],
)
def test_interrupt_at_a_question(cli, monkeypatch, command):
    """Ctrl-C and Ctrl-D at a question are an interrupt: one line below the question, and exit 130."""

    def abort(*_, **__):
        raise typer.Abort

    monkeypatch.setattr(typer, "confirm", abort)
    monkeypatch.setattr(person.Person, "check_can_be_asked", lambda _: None)
    done = cli(*command, code=130)
    assert done.stderr.endswith(f"\n{NOTHING}")
    assert "Abort" not in done.stderr
    assert cli.offset("old") == 5


def test_interrupt_while_a_group_is_deleted(cli, monkeypatch):
    """A deletion has no receipt. The message names the group that may be deleted, and the command that shows it."""
    monkeypatch.setattr(cli.cluster, "delete_group", interrupt)
    assert last_line(cli, "delete-group", "old", "--yes") == (
        "interrupted; group old may be deleted: migrate-groups describe old tells\n"
    )


class _Field:
    def __set_name__(self, *_):
        interrupt()


def interrupt_while_a_class_is_made():
    type("Made", (), {"field": _Field()})


@pytest.mark.parametrize("moment", [interrupt, interrupt_while_a_class_is_made])
def test_interrupt_while_the_commands_are_imported(cli, monkeypatch, moment):
    """An interrupt during the imports also ends with one line and no traceback."""

    class Interrupting:
        def find_spec(self, name, *_):
            if name == "migrate_groups.cli.registry":
                moment()

    monkeypatch.delitem(sys.modules, "migrate_groups.cli.registry", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert last_line(cli, "--version") == NOTHING


def test_the_entry_module_imports_nothing_slow():
    """Slow packages are not imported by the entry module, but later, where Ctrl-C is caught."""
    code = "import sys, migrate_groups.cli.app; sys.exit(bool({'typer', 'rich', 'msgspec'} & {*sys.modules}))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@pytest.fixture
def silent_listener():
    """A listener that accepts a connection and never answers: its address, and a function that awaits a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield f"127.0.0.1:{server.getsockname()[1]}", server.accept


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_while_a_broker_is_silent(tmp_path, silent_listener, how):
    """SIGINT, SIGTERM and SIGHUP each end a waiting command with one line and exit 130."""
    address, accept = silent_listener
    with running(Cli(tmp_path), "describe", "group", "--bootstrap-server", address) as process:
        connection, _ = accept()
        with connection:
            process.send_signal(how)
            _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, NOTHING)


def test_a_second_signal_does_not_interrupt_the_closing(cli, monkeypatch):
    """A second signal, as `timeout` sends, does not interrupt the closing that the first one started."""
    released = []

    def stopped_again():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        released.append(True)

    cli.at_the_close = stopped_again
    monkeypatch.setattr(carry_out, "guard", lambda *_: signal.raise_signal(signal.SIGTERM))
    assert last_line(cli, *APPLY) == WRITTEN
    assert released


def test_a_sighup_that_nohup_ignores_stays_ignored(cli, monkeypatch):
    """A SIGHUP that nohup has set to be ignored stays ignored."""
    raised = []

    def hung_up(_, receipt, *__):
        signal.raise_signal(signal.SIGHUP)
        raised.append(signal.SIGHUP)
        return receipt

    monkeypatch.setattr(carry_out, "guard", hung_up)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        cli(*APPLY)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert raised == [signal.SIGHUP]
    assert cli.offset("new") == 5


def test_an_interrupt_is_deferred_while_a_jvm_starts():
    """An interrupt is raised after the protected block; a signal that is ignored stays ignored."""
    done, before = [], signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def start():
        with interrupted_later():
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done
