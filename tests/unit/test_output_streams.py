"""If stdout or stderr can't be written, a command still does its work, and ends with the documented exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOWrapper

import pytest

from migrate_groups.cli import app
from migrate_groups.cli.console import show
from migrate_groups.cli.streams import Outlet, open_streams
from migrate_groups.migration import carry_out
from migrate_groups.migration.guard import guard
from tests.support.cli import Cli
from tests.support.connected import APPLY, MIGRATE

FULL = "stdout could not be written: No space left on device\n"
DRY = ("apply", "split.csv", "--dry-run", "--settle", "0s")
FILES = {"spec.toml", "plan.json", "offsets.csv", "receipt.json", "before.parquet", "split.parquet", "after.parquet"}


def outlet(number: int) -> TextIOWrapper:
    return TextIOWrapper(Outlet(number, "w", closefd=False), "utf-8", line_buffering=True)


@contextmanager
def pipe_without_a_reader():
    """Yield the write end of a pipe whose read end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@pytest.fixture
def without_output(monkeypatch):
    """Connect stdout and stderr of commands in this process to a pipe without a reader."""

    def main():
        with pipe_without_a_reader() as number, redirect_stdout(outlet(number)), redirect_stderr(outlet(number)):
            app.main()

    monkeypatch.setattr("tests.support.cli.main", main)


def test_a_write_without_stdout_and_stderr_is_finished(cli, without_output, monkeypatch):
    """If neither stdout nor stderr can be written, `migrate` still writes the offsets and saves all files.

    It also watches the old group after the write, and ends with exit code 0.
    """
    watched = []

    def watch(*arguments):
        watched.append(True)
        return guard(*arguments)

    monkeypatch.setattr(carry_out, "guard", watch)
    cli(*MIGRATE)
    assert cli.offset("new") == 5
    assert watched
    assert {path.name for path in (cli.folder / "split.toml.run").iterdir()} >= FILES


@pytest.mark.usefixtures("without_output")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (APPLY, 0),
        (DRY, 1),
        ((*DRY, "--detailed-exitcode"), 1),
        ((*DRY, "--format", "json"), 1),
        (("apply", "none.csv", "--yes"), 2),
        (("delete-group", "old", "--yes"), 0),
        (("delete-group", "none", "--yes"), 3),
        (("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s", "--yes"), 0),
        (("delete-offsets", "--group", "old", "--topic", "t", "--dry-run"), 1),
        (("apply", "--from-group", "old", "--to-group", "new", "--settle", "0s", "--guard", "1ms", "--yes"), 0),
    ],
)
def test_lost_output_is_exit_1_but_never_hides_the_outcome_of_a_write(cli, command, code):
    """If a command's output can't be written, and it writes nothing to the cluster, it ends with exit code 1.

    A command that wrote to the cluster, or that failed, keeps its exit code.
    """
    cli(*command, code=code)


def test_a_write_whose_output_was_lost_is_exit_0_with_a_warning(cli, monkeypatch):
    """If stdout can't be written, `apply` still ends with exit code 0 after its write, and warns on stderr."""

    def main():
        with open("/dev/full", "wb", buffering=0) as full, redirect_stdout(outlet(full.fileno())):  # noqa: PTH123
            app.main()

    monkeypatch.setattr("tests.support.cli.main", main)
    assert cli(*APPLY).stderr.endswith(f"warning: {FULL}")
    assert cli.offset("new") == 5


def through_a_shell(cli: Cli, command: str, **environment: str) -> tuple[int, str, str]:
    """Run a shell command line in which ``$M`` stands for migrate-groups; return exit code, stdout and stderr."""
    environ = cli.environment | {"M": f"{sys.executable} -m migrate_groups"} | environment
    done = subprocess.run(
        ["sh", "-c", command], cwd=cli.folder, env=environ, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("$M --help >/dev/full", 1, f"error: {FULL}"),
        ("$M filter split.csv -o - >/dev/full", 1, f"error: {FULL}"),
        ("$M --version >&-", 1, "error: stdout could not be written: Bad file descriptor\n"),
        ("$M --version 2>&-", 0, ""),
        ("$M export none.csv -o - 2>&-", 2, ""),
        ("$M --none 2>&-", 2, ""),
        ("$M apply split.csv <&-", 2, "error: stdin is not a terminal: pass --yes to write, or --dry-run to look\n"),
    ],
)
def test_a_full_or_closed_stream_is_one_line_on_stderr(cli, command, code, said):
    """If stdin, stdout or stderr is full or closed, the command prints no traceback, and at most one line about it.

    It ends with the documented exit code.
    """
    found, _, err = through_a_shell(cli, command)
    assert (found, err.removeprefix("1 partition of 1 kept\n")) == (code, said)


def test_a_reader_that_closes_the_pipe_is_exit_1_without_a_message(cli):
    """If the reader of stdout closes the pipe, the command ends with exit code 1, without a message.

    The exit code is not 0, because the output is incomplete.
    """
    with pipe_without_a_reader() as writer:
        done = subprocess.run(
            [sys.executable, "-m", "migrate_groups", "--help"],
            env=cli.environment,
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"")


def test_characters_that_stdout_cannot_encode_are_escaped(monkeypatch, tmp_path):
    """A character that an ASCII stdout can't encode is escaped, and causes no traceback."""
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # so that the test's end restores it
    with (tmp_path / "out").open("w", encoding="ascii") as file:
        for name in ("stdout", "__stdout__"):
            monkeypatch.setattr(sys, name, file)
        open_streams()
        show("größe")
    assert (tmp_path / "out").read_text() == "gr\\xf6\\xdfe\n"


def test_an_unbuffered_stream_stays_unbuffered(monkeypatch, tmp_path):
    """With ``python -u``, output is written at once, so that a killed process has shown all of it."""
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # so that the test's end restores it
    with (tmp_path / "err").open("wb", buffering=0) as file:
        stream = TextIOWrapper(file, "utf-8", write_through=True)
        for name in ("stderr", "__stderr__"):
            monkeypatch.setattr(sys, name, stream)
        open_streams()
        sys.stderr.write("interrupted")
        assert (tmp_path / "err").read_text() == "interrupted"


def test_a_slow_reader_of_a_non_blocking_pipe_gets_everything():
    """While a non-blocking pipe is full, `Outlet` waits, and then writes the rest."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    many, read = b"x" * 1_000_000, []

    def read_all():
        with os.fdopen(reader, "rb") as stream:
            read.append(stream.read())

    thread = threading.Thread(target=read_all)
    with os.fdopen(writer, "wb", buffering=0), Outlet(writer, "w", closefd=False) as stream:
        thread.start()
        assert stream.write(many) == len(many)
    thread.join()
    assert read == [many]
