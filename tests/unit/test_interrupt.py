"""A command that is interrupted by Ctrl-C, SIGTERM or SIGHUP: its exit code 130, and its line about what it wrote."""

from __future__ import annotations

import itertools
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from migrate_groups.cli.signals import Stops
from migrate_groups.cli.spark_here import interrupted_later
from migrate_groups.cli.terminal import Terminal
from migrate_groups.migration import carry_out
from migrate_groups.migration.hand_over import apply, cut_over
from migrate_groups.show import plan_result as views
from tests.support.broker_world import until
from tests.support.cli import Cli, running, signals_kept
from tests.support.connected import APPLY, MIGRATE, Connected
from tests.support.processes import handles

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOTHING = "interrupted; nothing was written to the cluster\n"
WRITTEN = (
    "interrupted; all offsets are written and read back; "
    "receipt.json lists what was written: run the same command again to resume\n"
)


def interrupt(*_, **__):
    raise KeyboardInterrupt


def last_line(cli: Connected, *command: str) -> str:
    """Run a command that is interrupted, and return the last line of its stderr."""
    return cli(*command, code=130).stderr.splitlines(keepends=True)[-1]


@pytest.mark.parametrize(
    ("module", "name", "said", "offset"),
    [
        (apply, "plan_at_the_write", NOTHING, None),
        (carry_out, "guard", WRITTEN, 5),
        (views, "execution", WRITTEN, 5),
    ],
)
def test_the_message_depends_on_whether_the_write_had_begun(cli, monkeypatch, module, name, said, offset):
    """If a command is interrupted before its write, the message says that nothing was written.

    After the write, the message says that all is written, and names the receipt.
    """
    monkeypatch.setattr(module, name, interrupt)
    assert last_line(cli, *APPLY) == said
    assert cli.offset("new") == offset


class _Deaf:
    def __del__(self):
        raise KeyboardInterrupt


def test_an_interrupt_that_python_drops_comes_again(cli, monkeypatch):
    """If an interrupt comes in a destructor, where Python only prints it, the command still ends with exit code 130."""

    def drop_an_interrupt(*_, **__):
        _Deaf()
        threading.Event().wait(60)

    monkeypatch.setattr(apply, "plan_at_the_write", drop_an_interrupt)
    assert last_line(cli, *APPLY) == NOTHING


def test_an_interrupted_wait_says_what_the_old_applications_may_do(cli, monkeypatch):
    """If Ctrl-C ends the wait for the source group to stop, the message says that nothing was written.

    It adds that the old applications may go on or start again.
    """
    monkeypatch.setattr(cut_over.CutOver, "wait_for_stop", interrupt)
    assert last_line(cli, *MIGRATE) == (
        "interrupted; nothing was written to the cluster; the old applications may go on, or start again, "
        "unless a new one has run\n"
    )


@pytest.mark.parametrize("command", [APPLY, MIGRATE])
def test_interrupt_while_clients_are_closed(cli, command):
    """If Ctrl-C comes after the write, while clients are closed, the message names the receipt. A re-run succeeds."""
    cli.at_the_close = interrupt
    said = last_line(cli, *command)
    assert said.endswith("receipt.json lists what was written: run the same command again to resume\n")
    assert cli.offset("new") == 5
    cli.at_the_close = lambda: None
    cli(*command)


def test_a_second_interrupt(cli, monkeypatch):
    """If a second Ctrl-C comes while clients are closed after the first, the message is that of the first."""
    monkeypatch.setattr(carry_out, "guard", interrupt)
    cli.at_the_close = interrupt
    assert last_line(cli, *APPLY) == WRITTEN


def test_interrupt_while_a_hold_is_released(cli, monkeypatch):
    """If ``migrate --hold`` is interrupted while its member leaves after the write, its message names the receipt."""
    held = cli.cluster.held

    @contextmanager
    def held_until_interrupted(group, *arguments, **named):
        with held(group, *arguments, **named) as each:
            yield each
        if group == "old":
            interrupt()

    monkeypatch.setattr(cli.cluster, "held", held_until_interrupted)
    assert "receipt.json lists what was written" in last_line(cli, *MIGRATE, "--hold")
    assert cli.offset("new") == 5


def test_an_interrupted_rollback_names_the_receipt(cli, monkeypatch):
    """If a rollback is interrupted after its write, the message says that all is written, and names the receipt."""
    cli(*APPLY)
    monkeypatch.setattr(views, "execution", interrupt)
    said = last_line(cli, "rollback", "receipt.json", "--yes")
    assert said == WRITTEN
    assert cli.offset("new") is None


def test_the_message_ignores_an_earlier_command_in_the_same_process(cli, monkeypatch):
    """If a command is interrupted before its write, the message says that nothing was written.

    This holds even if an earlier command of the same process has written.
    """
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
        ("apply", "--from-group", "old", "--to-group", "new"),
    ],
)
def test_interrupt_at_a_question(cli, monkeypatch, command):
    """If Ctrl-C or Ctrl-D ends a confirmation prompt, the exit code is 130.

    One line below the prompt says that nothing was written.
    """

    def abort(*_, **__):
        raise typer.Abort

    monkeypatch.setattr(typer, "confirm", abort)
    monkeypatch.setattr(Terminal, "check_can_be_asked", lambda _: None)
    done = cli(*command, code=130)
    assert done.stderr.endswith(f"\n{NOTHING}")
    assert "Abort" not in done.stderr
    assert cli.offset("old") == 5


def test_interrupt_while_a_group_is_deleted(cli, monkeypatch):
    """If ``delete-group`` is interrupted, the message names the group that may be deleted.

    It also names the command that shows whether the group is deleted.
    """
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
    """If Ctrl-C comes while modules are imported, the exit code is 130. The last line says that nothing was written."""

    class Interrupting:
        def find_spec(self, name, *_):
            if name == "migrate_groups.cli.registry":
                moment()

    monkeypatch.delitem(sys.modules, "migrate_groups.cli.registry", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert last_line(cli, "--version") == NOTHING


def test_the_entry_module_imports_nothing_slow():
    """The entry module `migrate_groups.cli.app` imports neither typer nor rich nor msgspec.

    They are imported later, where Ctrl-C is caught.
    """
    code = "import sys, migrate_groups.cli.app; sys.exit(bool({'typer', 'rich', 'msgspec'} & {*sys.modules}))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@contextmanager
def silent_listener() -> Iterator[tuple[str, Callable[[], tuple[socket.socket, object]]]]:
    """Yield the address of a listener that never answers, and a function that waits until a client connects.

    A listener is for one process, because another one may have connected again before it ended. The client may also be
    one of another test, whose broker had the listener's port before.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield f"127.0.0.1:{server.getsockname()[1]}", server.accept


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_while_a_broker_is_silent(tmp_path, how):
    """While a command waits for a broker, SIGINT, SIGTERM and SIGHUP each end it with one line and exit code 130."""
    with (
        silent_listener() as (address, accept),
        running(Cli(tmp_path), "describe", "group", "--bootstrap-server", address) as process,
    ):
        connection, _ = accept()
        with connection:
            until(lambda: handles(process.pid, *_STOPS))
            process.send_signal(how)
            _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, NOTHING)


@pytest.mark.parametrize("pair", [*itertools.permutations(_STOPS, 2)])
def test_two_signals_while_the_main_thread_waits(cli, monkeypatch, pair):
    """If two signals come while the main thread waits for another one, the message is that of the first.

    Two interrupts in `threading.Condition.wait` would make it raise ``RuntimeError``.
    """
    main, condition = threading.get_ident(), threading.Condition(threading.Lock())

    def send_both():
        with condition:  # so that the wait can't take its lock again
            for number in pair:
                signal.pthread_kill(main, number)
                time.sleep(0.1)  # otherwise Python handles the second signal before the wait for the lock

    def wait(*_):
        with condition:
            threading.Thread(target=send_both).start()
            condition.wait(60)

    monkeypatch.setattr(carry_out, "guard", wait)
    assert last_line(cli, *APPLY) == WRITTEN


@pytest.mark.parametrize("pair", [*itertools.product(_STOPS, _STOPS)])
def test_two_signals_at_once(tmp_path, pair):
    """If two signals come at once while a command waits for a broker, the command ends as after one signal."""
    for _ in range(3):
        with (
            silent_listener() as (address, accept),
            running(Cli(tmp_path), "describe", "group", "--bootstrap-server", address) as process,
        ):
            connection, _ = accept()
            with connection:
                until(lambda: handles(process.pid, *_STOPS))
                for number in pair:
                    process.send_signal(number)
                _, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (130, NOTHING)


@pytest.mark.parametrize("pair", [*itertools.product(_STOPS, _STOPS)])
def test_a_second_signal_does_not_interrupt_the_closing(cli, monkeypatch, pair):
    """If a signal has interrupted the command, no second signal interrupts its clean-up."""
    released = []

    def stopped_again():
        signal.raise_signal(pair[1])
        released.append(True)

    cli.at_the_close = stopped_again
    monkeypatch.setattr(carry_out, "guard", lambda *_: signal.raise_signal(pair[0]))
    assert last_line(cli, *APPLY) == WRITTEN
    assert released


def test_the_third_ctrl_c_ends_a_clean_up_that_hangs():
    """If the clean-up after an interrupt hangs, the third Ctrl-C prints the message and ends the command.

    The second Ctrl-C is ignored.
    """
    code = """
import os, signal, sys
from migrate_groups.cli import app

def hang():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        print("ignored")
        os.kill(os.getpid(), signal.SIGINT)
        print("not reached")

app._run = hang
app.main()
"""
    done = subprocess.run(
        [sys.executable, "-u", "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "ignored\n", NOTHING)


def test_a_clean_up_that_waits_forever_is_interrupted():
    """If the clean-up after an interrupt waits for a lock that nobody frees, it is interrupted after some time."""
    code = """
import os, signal, threading
from migrate_groups.cli import app, signals

def hang():
    taken = threading.Lock()
    taken.acquire()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        taken.acquire()

signals._CLEAN_UP = 0.2
app._run = hang
app.main()
"""
    folder = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", NOTHING)


def test_an_error_that_hides_the_interrupt(cli, monkeypatch):
    """If an interrupt comes out of Python's code as another error, the command still ends with exit code 130.

    `threading.Condition` raises ``RuntimeError`` if an interrupt comes while it waits for its lock again.
    """

    def hidden(*_):
        lock = threading.Lock()
        with lock:
            lock.release()
            raise KeyboardInterrupt

    monkeypatch.setattr(carry_out, "guard", hidden)
    assert last_line(cli, *APPLY) == WRITTEN


def test_a_sighup_that_nohup_ignores_stays_ignored(cli, monkeypatch):
    """If SIGHUP is ignored when a command starts, as under nohup, a SIGHUP does not interrupt the command."""
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
    """While `interrupted_later` protects a block, SIGINT is raised only at its end.

    A signal that is ignored stays ignored.
    """
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


def test_a_signal_ends_a_wait_although_the_main_thread_does_not_see_it():
    """If another thread gets a signal while the main thread waits for a lock, the command ends the wait."""
    lock, released = threading.Lock(), threading.Event()
    lock.acquire()

    def release():
        released.set()
        lock.release()

    stops = Stops(lambda: "")
    too_late = threading.Timer(20, release)
    too_late.start()
    # The short time lets the main thread begin to wait. Without it Python would handle the signal before the wait.
    seen = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM))
    try:
        with signals_kept():
            stops.heed()
            seen.start()
            with pytest.raises(KeyboardInterrupt), stops.none_lost():
                lock.acquire()
        assert not released.is_set()
    finally:
        too_late.cancel()
