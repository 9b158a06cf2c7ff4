"""When ``migrate --start-command`` runs its command, what it passes to it, and what follows if the command fails."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from migrate_groups.cli import application_commands, terminal
from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.files.runs.receipt_file import open_receipt
from migrate_groups.migration import carry_out
from migrate_groups.migration.guard import guard
from migrate_groups.model.groups import Member
from tests.support.broker_world import until
from tests.support.connected import MIGRATE, PARTITION, SPEC, Connected
from tests.support.processes import gone


def program(folder: Path, *lines: str) -> str:
    """Make an executable script that adds a line to the file ``runs``, then runs ``lines``. Return its quoted path."""
    path = folder / "start it"
    path.write_text("\n".join(["#!/bin/sh", "echo run >> runs", *lines, ""]))
    path.chmod(0o755)
    return f"'{path}'"


def runs(cli: Connected) -> int:
    """Return how often the script that `program` made has run."""
    path = cli.folder / "runs"
    return path.read_text().count("run") if path.exists() else 0


def outcomes(cli: Connected) -> set[str]:
    entries = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())["entries"]
    return {entry["outcome"] for entry in entries}


def test_it_runs_once_when_the_new_groups_may_start(cli, capfd):
    """After the offsets are read back, `migrate` runs the ``--start-command`` once, with empty stdin.

    All output of the command goes to the stderr of `migrate`, because its stdout is for data.
    """
    command = program(cli.folder, "cat", "echo said", "echo complained >&2", 'echo "$@" > arguments')
    done = cli(*MIGRATE, "--start-command", f"{command} 'a  b' $HOME;", stdin="not for it")
    assert (runs(cli), cli.offset("new")) == (1, 5)
    assert "written and read back; starting the new groups: " in done.stderr
    assert "START THE NEW GROUPS NOW" not in done.stderr
    out, err = capfd.readouterr()
    assert (out, err) == ("", "said\ncomplained\n")
    assert (cli.folder / "arguments").read_text() == "a  b $HOME;\n"


def test_it_gets_the_run_directory_and_no_credentials(cli):
    """The ``--start-command`` gets the absolute path of the run directory in ``MIGRATE_GROUPS_RUN_DIR``.

    All other ``MIGRATE_GROUPS_`` variables are removed from its environment, because they may contain credentials. All
    other environment variables are kept.
    """
    cli.environment |= {"MIGRATE_GROUPS_PROPERTIES": "ssl.key.password=secret", "MIGRATE_GROUPS_TIMEOUT": "9s"}
    cli.environment["OTHER"] = "kept"
    cli(*MIGRATE, "--start-command", program(cli.folder, "env > environment"))
    given = dict(line.split("=", 1) for line in (cli.folder / "environment").read_text().splitlines() if "=" in line)
    ours = {name: value for name, value in given.items() if name.startswith("MIGRATE_GROUPS_")}
    assert ours == {"MIGRATE_GROUPS_RUN_DIR": str(cli.folder / "split.toml.run")}
    assert (given["OTHER"], given["PATH"]) == ("kept", os.environ["PATH"])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("'open", "No closing quotation"),
        ("", "--start-command is empty"),
        ("  ", "--start-command is empty"),
        ("no-such-program --now", "program 'no-such-program' is not found"),
        ("./split.toml", "program './split.toml' is not found, or may not be run"),
    ],
)
@pytest.mark.parametrize("option", [[], ["--dry-run"]], ids=["write", "dry-run"])
def test_a_command_that_can_not_run_is_exit_2_before_anything_waits(cli, command, said, option):
    """If the ``--start-command`` can't be parsed or found, `migrate` ends with exit code 2, even in a dry run.

    It makes no run directory.
    """
    assert said in cli.fails(*MIGRATE, *option, "--start-command", command, code=2)
    assert not (cli.folder / "split.toml.run").exists()


def test_a_dry_run_says_the_command_and_does_not_run_it(cli):
    """A dry run shows the program of the ``--start-command`` without its arguments, and does not run it."""
    done = cli(*MIGRATE, "--dry-run", "--start-command", f"{program(cli.folder)} --token=s3cret")
    assert "not run in a dry run: --start-command " in done.stderr
    assert "s3cret" not in done.stderr
    assert runs(cli) == 0


def test_a_hand_over_that_is_refused_runs_nothing(cli):
    """If nothing is written because members do not stop or a check refuses, the ``--start-command`` does not run."""
    command = program(cli.folder)
    cli.cluster.join("old", Member(member_id="m", client_id="app", host="/h", subscription=frozenset("t")))
    cli.fails(*MIGRATE, "--wait", "0s", "--start-command", command, code=3)
    cli.cluster.leave("old", "m")
    cli.cluster.commit("new", PARTITION, 9)
    cli.fails(*MIGRATE, "--start-command", command, code=3)
    assert runs(cli) == 0


def test_a_re_run_starts_groups_that_have_not_started(cli):
    """A re-run that finds all offsets written runs the ``--start-command``, unless a new group has started."""
    command = program(cli.folder)
    cli(*MIGRATE)
    cli(*MIGRATE, "--start-command", command)
    assert runs(cli) == 1
    cli.cluster.commit("new", PARTITION, 7)
    assert "and started since" in cli(*MIGRATE, "--start-command", command).stderr
    assert runs(cli) == 1


def test_the_guard_runs_meanwhile(cli, monkeypatch):
    """The watch of the old group after the write begins while the ``--start-command`` is still running."""
    fifo = cli.folder / "fifo"
    os.mkfifo(fifo)

    def guarded(reader, execution, *_):
        fifo.write_text("guarded\n")
        return execution

    monkeypatch.setattr(carry_out, "guard", guarded)
    cli(*MIGRATE, "--start-command", program(cli.folder, "cat fifo > seen"))
    assert (cli.folder / "seen").read_text() == "guarded\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["exit 3"], "ended with exit code 3"),
        (["kill -9 $$"], "was killed by signal 9 (Killed)"),
    ],
)
def test_a_command_that_fails_is_exit_4(cli, lines, said):
    """If the ``--start-command`` fails or is killed, `migrate` ends with exit code 4, and the offsets stay written.

    The one-line error says that the offsets are in place, and omits the command's arguments. The receipt lists the
    offsets as confirmed. A re-run runs the command again.
    """
    error = cli.fails(*MIGRATE, "--start-command", f"{program(cli.folder, *lines)} --token=s3cret", code=4)
    assert "s3cret" not in error
    assert f"{said}; the offsets are written and read back: see which new applications run, and start" in error
    assert (cli.offset("new"), outcomes(cli)) == (5, {"confirmed"})
    cli(*MIGRATE, "--start-command", program(cli.folder))
    assert runs(cli) == 2


def test_a_failed_command_is_said_if_the_watch_fails_too(cli, monkeypatch):
    """If both the ``--start-command`` and the watch after the write fail, stderr has a line for each failure.

    The exit code is 5, because the cluster did not answer.
    """

    def unavailable(*_):
        raise ClusterUnavailable("the broker did not answer")

    monkeypatch.setattr(carry_out, "guard", unavailable)
    status, _, said = cli.outcome(*MIGRATE, "--start-command", program(cli.folder, "exit 3"))
    assert status == 5
    assert "ended with exit code 3\nerror: the broker did not answer" in said


@pytest.mark.parametrize("watch_fails", [False, True])
def test_the_receipt_is_locked_until_it_ends(cli, monkeypatch, watch_fails):
    """While the ``--start-command`` still runs after the watch, a second command of the run directory is refused.

    This holds also if the watch has failed.
    """
    run, fifo = cli.folder / "split.toml.run", cli.folder / "fifo"
    refusals: list[object] = []
    os.mkfifo(fifo)
    wait = application_commands.ApplicationCommand.wait

    def fails(*arguments):
        if watch_fails:
            raise ClusterUnavailable("the broker did not answer")
        return guard(*arguments)

    def another_command(launch, *waiting):
        if not refusals:
            with pytest.raises(Refused, match="another run uses") as refused, open_receipt(run / "receipt.json"):
                pass
            refusals.append(refused)
            fifo.write_text("go on")
        return wait(launch, *waiting)

    monkeypatch.setattr(carry_out, "guard", fails)
    monkeypatch.setattr(application_commands.ApplicationCommand, "wait", another_command)
    cli(*MIGRATE, "--start-command", program(cli.folder, "cat fifo"), code=5 if watch_fails else 0)
    assert refusals


def test_a_command_that_can_not_be_started_is_exit_4(cli):
    """If the system can't start the ``--start-command``, `migrate` tells the user to start the new groups by hand.

    It ends with exit code 4. The offsets stay written and read back.
    """
    (cli.folder / "script").write_bytes(b"\x7fELF broken")
    (cli.folder / "script").chmod(0o755)
    status, _, said = cli.outcome(*MIGRATE, "--start-command", "./script")
    assert status == 4
    assert "./script could not be started: Exec format error: START THE NEW GROUPS NOW, by hand" in said
    assert "error: --start-command: ./script could not be started: Exec format error; the offsets are written" in said
    assert (cli.offset("new"), outcomes(cli)) == (5, {"confirmed"})


def test_a_command_that_does_not_end_is_exit_4_and_left_running(cli, monkeypatch):
    """`migrate` does not kill the ``--start-command`` that still runs some time after the watch of the old group.

    It ends with exit code 4 and names the process, because the command may be the application itself.
    """
    monkeypatch.setattr(terminal, "SECONDS_TO_START", 0.05)
    status, _, said = cli.outcome(*MIGRATE, "--start-command", program(cli.folder, "echo $$ > pid", "exec sleep 600"))
    pid = int(said.rpartition("left running as process ")[2].partition(";")[0])
    try:
        assert status == 4
        assert "see which new applications run, and start the others by hand\n" in said
        assert not gone(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        until(lambda: gone(pid))


def test_what_an_old_application_did_is_said_beside_a_failed_command(cli, monkeypatch):
    """If the ``--start-command`` fails and the old group consumes again, one error line reports both."""
    monkeypatch.setattr(carry_out, "guard", lambda _, execution, *__: execution.with_moved(["group 'old' is back"]))
    error = cli.fails(*MIGRATE, "--start-command", program(cli.folder, "exit 3"), code=4)
    assert "group 'old' is back; stop it" in error
    assert error.endswith("ended with exit code 3")


def test_an_interrupt_while_it_runs_says_that_the_offsets_are_in_place(cli, monkeypatch):
    """After Ctrl-C while the ``--start-command`` runs, `migrate` says that all offsets are written and read back.

    It also says that the command may still be running, and ends with exit code 130.
    """

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(application_commands.ApplicationCommand, "wait", interrupt)
    said = cli(*MIGRATE, "--start-command", program(cli.folder), code=130).stderr
    assert (
        "interrupted; all offsets are written and read back; --start-command may still be running; "
        "split.toml.run/receipt.json lists"
    ) in said


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ('start_command = "x"\n' + SPEC, "the file"),
        (SPEC + 'start_command = "x"\n', "[options]"),
        (SPEC.replace("[options]", 'start_command = "x"\n[options]'), "[[target]]"),
    ],
)
@pytest.mark.parametrize("option", ["stop", "start", "restart"])
def test_a_spec_can_not_run_a_command(cli, spec, where, option):
    """A spec file that contains ``start_command`` or another command is refused with exit code 2.

    Otherwise anybody who may edit the spec could run programs where `migrate` runs.
    """
    (cli.folder / "split.toml").write_text(spec.replace("start_", f"{option}_"))
    error = cli.fails(*MIGRATE, code=2)
    assert f"{option}_command in {where}: a spec can't run a command; pass --{option}-command to migrate" in error
