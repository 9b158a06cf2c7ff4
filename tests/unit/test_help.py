"""What ``--help`` shows of each command and option, and what the program completes for a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import typer.main

from migrate_groups.cli.registry import COMMANDS, GROUPS, command_line
from tests.support.cli import CliHere

PARSED = typer.main.get_group(command_line()).commands
DURATIONS = {"wait", "settle", "guard", "timeout", "every", "by_duration"}


def test_help_lists_each_command_once_in_its_group(tmp_path):
    """``--help`` lists every command exactly once, under the title of its section, and the exit codes at the end."""
    shown = CliHere(tmp_path)("--help").stdout
    titles = [line.removesuffix(":") for line in shown.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert titles == ["Options", *GROUPS, "Exit codes"]
    assert re.findall(r"^  ([a-z][a-z-]+)  ", shown, re.M) == [name for group in GROUPS.values() for name in group]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_is_complete(tmp_path, name):
    """The help of each command has an example, describes each argument and option, and ends with the exit codes."""
    for each in PARSED[name].params:
        assert getattr(each, "help", None), f"{name} {each.name} has no help"
        if each.name in DURATIONS:
            assert each.make_metavar(typer.Context(PARSED[name])) == "DURATION"
    shown = CliHere(tmp_path)(name, "--help").stdout
    assert "Example: migrate-groups " + name in " ".join(shown.split())
    codes = shown.split("Exit codes:\n")[1]
    assert [int(code) for code in re.findall(r"^  (\d+) ", codes, re.M)] == list(COMMANDS[name].exit_codes)
    assert "default: (" not in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_only_what_the_command_has(name):
    """Each option in the help of a command is one of it, or of a command or a tool that the sentence names.

    Each exit code in the help is one with which the command can end. Every command can end with 1 and 130.
    """
    options = {each: {option for one in PARSED[each].params for option in one.opts} for each in PARSED}
    texts = [str(getattr(each, "help", None)) for each in (PARSED[name], *PARSED[name].params)]
    for sentence in (part for text in texts for part in re.split(r"(?<=[.;])\s", text)):
        for option in re.findall(r"--[a-z][a-z-]+", sentence):
            others = re.findall(r"[a-z-]{4,}", sentence.split(option)[0])
            tool = "kafka-consumer-groups" in sentence or "Kafka's tool" in sentence
            has = [each for each in (name, *others) if option in options.get(each, ())]
            assert tool or has, f"{option} in: {sentence}"
        for code in re.findall(r"\bexit\b.{0,20} (\d+)\b", sentence):
            assert int(code) in COMMANDS[name].exit_codes, sentence
    assert {1, 130} <= {*COMMANDS[name].exit_codes}


@pytest.mark.parametrize("name", COMMANDS)
def test_exit_codes_in_the_help_name_only_options_of_the_command(tmp_path, name):
    """The meanings of exit codes in the help of a command name only options of this command."""
    meanings = CliHere(tmp_path)(name, "--help").stdout.split("Exit codes:\n")[1]
    assert {*re.findall(r"--[a-z][a-z-]+", meanings)} <= {option for one in PARSED[name].params for option in one.opts}


def test_help_of_apply_does_not_offer_latest(tmp_path):
    """Only ``migrate`` can start at the log end offset, so the help of ``apply`` does not name ``latest``."""
    cli = CliHere(tmp_path)
    assert "latest" not in cli("apply", "--help").stdout
    assert "(latest)" in cli("migrate", "--help").stdout


def test_short_options_of_help_and_version(tmp_path):
    """``-h`` is short for ``--help``, ``-V`` for ``--version``."""
    cli = CliHere(tmp_path)
    assert cli("-h").stdout == cli("--help").stdout
    assert cli("-V").stdout == cli("--version").stdout


def asked(words: str, shell: str) -> dict[str, str]:
    """Return the variables by which a shell asks the program to complete the last word of a command line."""
    if shell == "bash":
        more = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    else:
        more = {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return {"_MIGRATE_GROUPS_COMPLETE": f"complete_{shell}", **more}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(tmp_path, monkeypatch, shell):
    """The program completes commands, options and option values in each shell.

    In bash, it leaves file names to the shell.
    """
    # Typer takes the program's name from its path only if the path is no module of a package.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)
    cli = CliHere(tmp_path)
    environment = cli.environment

    def completed(words: str) -> str:
        cli.environment = environment | asked(words, shell)
        return cli().stdout

    assert "verify" in completed("migrate-groups ver")
    assert "--approved" in completed("migrate-groups migrate --app")
    assert "overwrite" in completed("migrate-groups migrate --on-existing o")
    if shell == "bash":
        assert completed("migrate-groups migrate spl").split() == []


def test_completion_in_a_new_process():
    """The program completes a command when a shell starts it."""
    program = "import sys\nsys.argv = ['migrate-groups']\nfrom migrate_groups.cli.app import main\nmain()"
    environment = os.environ | asked("migrate-groups ver", "bash")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["verify"]


@pytest.mark.parametrize("name", COMMANDS)
def test_yes_has_a_short_form(name):
    """Each command with ``--yes`` also takes ``-y``."""
    assert all("-y" in each.opts for each in PARSED[name].params if "--yes" in each.opts)


def test_options_of_migrate_stand_by_when_one_needs_them(tmp_path):
    """The help of ``migrate`` has its options under titles, in the order of a cut-over; none has more than eight."""
    shown = CliHere(tmp_path)("migrate", "--help").stdout
    parts = re.split(r"^([A-Z][a-z ]+):$", shown, flags=re.M)[1:]
    titles = dict(zip(parts[::2], parts[1::2], strict=True))
    assert [*titles][:8] == [
        *("Arguments", "Options", "Review", "Applications", "Write", "Safety", "Another cluster", "Cluster")
    ]
    options = {title: re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M) for title, text in titles.items()}
    assert options["Applications"] == ["--stop-command", "--start-command", "--restart-command", "--app-principal"]
    assert max(map(len, options.values())) <= 8
