"""With ``--events FILE``, a command that waits or writes appends what happens to a file, as JSON lines."""

from __future__ import annotations

import json
import os
from typing import Any, get_args

import pytest

from migrate_groups.migration.hand_over import cut_over
from migrate_groups.show.event import EventName
from tests.support.connected import APPLY, MIGRATE, Connected
from tests.support.documents import DOCS, parsed


def events(printed: str) -> list[dict[str, Any]]:
    """Return the events of JSON lines, each checked with the schema."""
    return [parsed(line) for line in printed.splitlines()]


def names(found: list[dict[str, Any]]) -> list[str]:
    return [each["event"] for each in found]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (MIGRATE, ["planned", "waiting", "stopped", "written", "START", "moved", "done"]),
        (("migrate", "split.toml", "--dry-run"), ["planned", "done"]),
        (APPLY, ["planned", "written", "START", "moved", "done"]),
        (("verify", "old", "--settle", "0s"), ["stopped", "done"]),
        (("delete-group", "old", "--yes"), ["planned", "written", "done"]),
        (
            ("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s", "--yes"),
            ["planned", "written", "moved", "done"],
        ),
        (("watch", "old", "--wait", "0s"), ["done"]),
    ],
)
def test_events_of_a_command(cli: Connected, command, expected):
    """Each event is one line in the file, in the order in which it happened; the last one has the exit code."""
    status, _, _ = cli.outcome(*command, "--events", "events.jsonl")
    found = events((cli.folder / "events.jsonl").read_text())
    assert names(found) == expected
    assert [each["exit_code"] for each in found] == [*[None] * (len(found) - 1), status]
    assert {each["command"] for each in found} == {command[0]}


@pytest.mark.parametrize(("verb", "start"), [("rollback", ["START"]), ("delete-offsets", [])])
def test_events_of_a_way_back(cli: Connected, verb, start):
    """The events of a way back name the run and the groups of its hand-over; a deletion lets no application start."""
    cli(*MIGRATE)
    cli(verb, "split.toml.run", "--yes", "--events", "events.jsonl")
    found = events((cli.folder / "events.jsonl").read_text())
    assert names(found) == ["planned", "written", *start, "moved", "done"]
    assert {(each["run"], *each["source_groups"]) for each in found} == {("split.toml.run", "old")}


def test_each_event_names_its_run_and_groups(cli: Connected):
    """Each event of migrate names the run directory, the source group and the target groups; offsets are counted."""
    cli(*MIGRATE, "--events", "events.jsonl")
    found = events((cli.folder / "events.jsonl").read_text())
    assert {(each["run"], *each["source_groups"], *each["target_groups"]) for each in found} == {
        ("split.toml.run", "old", "new")
    }
    offsets = {each["event"]: (each["offsets"], each["not_confirmed"]) for each in found}
    assert (offsets["planned"], offsets["written"], offsets["moved"]) == ((1, None), (1, 0), (1, None))


def test_events_are_appended(cli: Connected):
    """Another command appends its events to the file."""
    for _ in range(2):
        cli("verify", "old", "--settle", "0s", "--events", "events.jsonl")
    assert names(events((cli.folder / "events.jsonl").read_text())) == ["stopped", "done"] * 2


@pytest.mark.parametrize("command", [MIGRATE, ("verify", "old")])
def test_stdout_has_only_events(cli: Connected, command):
    """With ``--events -`` stdout has only events, and all other output goes to stderr."""
    done = cli(*command, "--settle", "0s", "--events", "-")
    assert names(events(done.stdout))[-1] == "done"
    assert "old" in done.stderr


def test_two_outputs_on_stdout_are_refused(cli: Connected):
    """``--events -`` is refused with a format that needs stdout, and nothing is written."""
    done = cli(*MIGRATE, "--events", "-", "--format", "json", code=2)
    assert json.loads(done.stdout)["error"]["message"].startswith("--events - and --format json both write to stdout")
    assert cli.offset("new") is None


def test_a_file_that_can_not_be_written_is_refused(cli: Connected):
    """If the file can't be opened, the exit code is 2, and nothing is written."""
    done = cli(*MIGRATE, "--events", "missing/events.jsonl", code=2)
    assert done.stderr == "error: --events missing/events.jsonl can't be written: No such file or directory\n"
    assert cli.offset("new") is None


def test_a_full_disk_does_not_stop_the_write(cli: Connected):
    """If an event can't be written, stderr says so once, and the command goes on."""
    done = cli(*MIGRATE, "--events", "/dev/full")
    lost = "warning: --events /dev/full can't be written any more: No space left on device"
    assert done.stderr.splitlines().count(lost) == 1
    assert cli.offset("new") == 5


def test_a_pipe_that_nobody_reads_does_not_stop_the_write(cli: Connected):
    """If the pipe is full because its reader does not read, the command goes on without the pipe."""
    os.mkfifo(cli.folder / "pipe")
    reader = os.open(cli.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(cli.folder / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    try:
        for size in (65536, 1):
            try:
                while os.write(writer, b"x" * size):
                    pass
            except BlockingIOError:
                continue
        assert "pipe can't be written any more" in cli(*MIGRATE, "--events", "pipe").stderr
    finally:
        os.close(writer)
        os.close(reader)
    assert cli.offset("new") == 5


def test_a_failure_is_the_last_event(cli: Connected):
    """If a command fails, the event ``done`` has the exit code and the error, also if it fails before its plan."""
    done = cli("migrate", "nothing.toml", "--yes", "--events", "events.jsonl", code=2)
    (last,) = events((cli.folder / "events.jsonl").read_text())
    assert (last["event"], last["exit_code"], f"error: {last['error']}\n") == ("done", 2, done.stderr)


def test_offsets_that_are_not_in_place(cli: Connected, monkeypatch):
    """If an offset is not confirmed, ``written`` counts it, and neither ``START`` nor ``moved`` follows."""
    cli.refuse_writes(monkeypatch)
    cli(*MIGRATE, "--events", "events.jsonl", code=4)
    found = events((cli.folder / "events.jsonl").read_text())
    assert names(found)[-2:] == ["written", "done"]
    assert "START" not in names(found)
    assert (found[-2]["offsets"], found[-2]["not_confirmed"], found[-1]["exit_code"]) == (0, 1, 4)


def test_an_interrupt_is_the_last_event(cli: Connected, monkeypatch):
    """If Ctrl-C ends the command, the event ``done`` has the exit code 130 and says what was written."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cut_over, "prove_stopped", interrupted)
    cli(*MIGRATE, "--events", "events.jsonl", code=130)
    last = events((cli.folder / "events.jsonl").read_text())[-1]
    assert (last["event"], last["exit_code"]) == ("done", 130)
    assert last["error"].startswith("interrupted; nothing was written")


def test_the_page_names_each_event():
    """docs/reference/json.md has a row for each event."""
    page = (DOCS / "reference" / "json.md").read_text()
    for name in get_args(EventName):
        assert f"| `{name}` |" in page
