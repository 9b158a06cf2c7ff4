"""``migrate --stop-command`` and ``--restart-command``: when they run, and what follows if they fail."""

from __future__ import annotations

import json
import os

import pytest

from migrate_groups.cli import terminal
from migrate_groups.cli.commands import migrate
from migrate_groups.errors import ClusterUnavailable
from migrate_groups.migration import carry_out
from migrate_groups.migration.hand_over import cut_over
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from tests.support.clock import FakeClock
from tests.support.connected import MIGRATE, PARTITION, SPEC, Connected

MEMBER = Member(member_id="m-1", client_id="pay", host="/h", subscription=frozenset("t"))
RESTART = "sh -c 'echo restart >> runs'"


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    return Connected(tmp_path, monkeypatch)


def stops(cli: Connected, *lines: str) -> str:
    """Return a command that adds a line to the file ``runs``, then runs ``lines``."""
    path = cli.folder / "stop"
    path.write_text("\n".join(["#!/bin/sh", "echo stop >> runs", *lines, ""]))
    path.chmod(0o755)
    return f"'{path}'"


def runs(cli: Connected) -> list[str]:
    """Return which commands have run, in order."""
    path = cli.folder / "runs"
    return path.read_text().split() if path.exists() else []


def test_it_stops_what_it_is_told_to_before_the_wait(cli, monkeypatch):
    """`migrate` runs the ``--stop-command`` after the plan is agreed and before it waits for the stop.

    The command gets the group and the topics as variables, and the members in a JSON file. With it and
    ``--start-command`` a cut-over needs no person.
    """
    cli.cluster.join("old", MEMBER)
    wait = cut_over.CutOver.wait_for_stop

    def after_the_command(steps):
        assert runs(cli) == ["stop"]
        cli.cluster.leave("old", "m-1")
        wait(steps)

    monkeypatch.setattr(cut_over.CutOver, "wait_for_stop", after_the_command)
    command = stops(cli, "env | grep ^MIGRATE_GROUPS_ | sort > environment", 'cp "$MIGRATE_GROUPS_STOP_FILE" told.json')
    done = cli(*MIGRATE, "--stop-command", command, "--start-command", "sh -c 'echo start >> runs'")
    assert runs(cli) == ["stop", "start"]
    assert "stopping the old applications: " in done.stderr
    run = cli.folder / "split.toml.run"
    assert (cli.folder / "environment").read_text().splitlines() == [
        "MIGRATE_GROUPS_GROUP=old",
        f"MIGRATE_GROUPS_RUN_DIR={run}",
        f"MIGRATE_GROUPS_STOP_FILE={run}/stop.json",
        "MIGRATE_GROUPS_TOPICS=",
    ]
    told = json.loads((cli.folder / "told.json").read_text())
    assert (told["group"], told["topics"]) == ("old", None)
    assert told["members"] == [
        {"member_id": "m-1", "group_instance_id": None, "client_id": "pay", "host": "/h", "goes_on": False}
    ]


def test_it_names_only_the_moved_topics(cli):
    """If topics stay with the old group, the command gets the topics that no member may consume any more."""
    cli.cluster.create_topic("u", 1)
    cli.cluster.commit("old", TopicPartition("u", 0), 0)
    (cli.folder / "split.toml").write_text(SPEC.replace("[options]", '[stay]\ntopics = ["u"]\n[options]'))
    cli(*MIGRATE, "--stop-command", stops(cli, "echo $MIGRATE_GROUPS_TOPICS > topics"))
    assert (cli.folder / "topics").read_text() == "t\n"


def test_a_dry_run_and_a_refused_plan_run_nothing(cli):
    """A dry run names the commands and runs none. If a check refuses the plan, no command runs."""
    commands = ("--stop-command", stops(cli), "--restart-command", RESTART)
    assert "not run in a dry run: --stop-command " in cli(*MIGRATE, "--dry-run", *commands).stderr
    cli.cluster.commit("new", PARTITION, 9)
    cli.fails(*MIGRATE, *commands, code=3)
    assert runs(cli) == []


def test_a_stop_command_that_fails_ends_the_run(cli):
    """If the ``--stop-command`` fails, nothing is written, exit code 3, and the ``--restart-command`` runs.

    Without one, the message says that the old applications must be started again.
    """
    command = stops(cli, "exit 7")
    error = cli.fails(*MIGRATE, "--stop-command", f"{command} --token=s3cret", code=3)
    assert "--stop-command: " in error
    assert "ended with exit code 7; nothing was written" in error
    assert "s3cret" not in error
    assert (
        "exit 3: --stop-command has run: start the old applications again"
        in cli(*MIGRATE, "--stop-command", command, code=3).stderr
    )
    done = cli(*MIGRATE, "--stop-command", command, "--restart-command", RESTART, code=3)
    assert runs(cli)[-2:] == ["stop", "restart"]
    assert "exit 3: --restart-command has started the old applications again" in done.stderr
    assert cli.offset("new") is None


def test_members_that_do_not_stop_are_started_again(cli, monkeypatch):
    """If members still run when ``--wait`` is over, the ``--restart-command`` runs, because others have stopped."""
    monkeypatch.setattr(migrate, "SystemClock", FakeClock)
    cli.cluster.join("old", MEMBER)
    done = cli(*MIGRATE, "--wait", "8s", "--stop-command", stops(cli), "--restart-command", RESTART, code=3)
    assert runs(cli) == ["stop", "restart"]
    assert "nothing was written; starting the old applications again: sh" in done.stderr


def test_nothing_is_started_again_while_the_stop_command_runs(cli):
    """If the ``--stop-command`` has not ended when ``--wait`` is over, the ``--restart-command`` does not run."""
    command = stops(cli, "read line < fifo")
    os.mkfifo(cli.folder / "fifo")
    done = cli(*MIGRATE, "--wait", "0s", "--stop-command", command, "--restart-command", RESTART, code=3)
    assert "--stop-command still runs: START THE OLD APPLICATIONS by hand, once it has ended" in done.stderr
    (cli.folder / "fifo").write_text("go on\n")
    assert "restart" not in runs(cli)


def test_a_restart_that_fails_is_said(cli, monkeypatch):
    """If the ``--restart-command`` fails or does not end, the user is told to start the old applications by hand."""
    monkeypatch.setattr(terminal, "SECONDS_TO_START", 0.05)
    for restart, how in (("false", "ended with exit code 1"), ("sleep 5", "has not ended")):
        done = cli(*MIGRATE, "--stop-command", stops(cli, "exit 1"), "--restart-command", restart, code=3)
        assert f"--restart-command: {restart.split()[0]} {how}" in done.stderr
        assert "START THE OLD APPLICATIONS NOW, by hand" in done.stderr
        assert "exit 3: --stop-command has run: start the old applications again" in done.stderr


def test_an_interrupt_after_the_stop_says_what_to_start(cli, monkeypatch):
    """After Ctrl-C in the wait, the message says that the old applications must be started again. No command runs."""

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cut_over.CutOver, "wait_for_stop", interrupt)
    done = cli(*MIGRATE, "--stop-command", stops(cli), "--restart-command", RESTART, code=130)
    assert done.stderr.splitlines()[-1] == (
        "interrupted; nothing was written to the cluster; --stop-command has run: start the old applications again"
    )
    assert runs(cli) == ["stop"]


def test_after_a_write_the_old_applications_stay_stopped(cli, monkeypatch):
    """If something was written, the ``--restart-command`` does not run, whatever fails then."""

    def fails(*_):
        raise ClusterUnavailable("the broker did not answer")

    monkeypatch.setattr(carry_out, "guard", fails)
    cli.outcome(*MIGRATE, "--stop-command", stops(cli), "--restart-command", RESTART)
    assert (runs(cli), cli.offset("new")) == (["stop"], 5)


def test_after_the_write_of_an_earlier_run_the_old_applications_stay_stopped(cli, monkeypatch):
    """If an earlier run has written, and the same command ends with exit code 3, ``--restart-command`` does not run.

    The new applications may have been started.
    """
    monkeypatch.setattr(migrate, "SystemClock", FakeClock)
    cli(*MIGRATE)
    cli.cluster.join("old", MEMBER)
    done = cli(*MIGRATE, "--wait", "8s", "--stop-command", stops(cli), "--restart-command", RESTART, code=3)
    assert (runs(cli), cli.offset("new")) == (["stop"], 5)
    assert "start the old applications" not in done.stderr


def test_a_restart_command_needs_a_stop_command(cli):
    """A ``--restart-command`` without a ``--stop-command`` is a wrong command line."""
    assert "--restart-command goes with --stop-command" in cli.fails(*MIGRATE, "--restart-command", "true", code=2)
