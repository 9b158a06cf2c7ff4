"""The README names the commands and options that the command line has."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from migrate_groups.cli.registry import command_line

README = (Path(__file__).parents[2] / "README.md").read_text()
COMMANDS = typer.main.get_group(command_line()).commands
# The README shows these options of other programs.
OTHERS = {
    "--reset-offsets",
    "--from-file",
    "--execute",
    "--export",
    "--py-files",
    "--out",
    "--body-file",
    "--kafka",
    "--runs",
    "--seed",
    "--long",
    "--targets",
    "--coverage",
}


def test_every_command_stands_in_the_table():
    """The table of commands has exactly the commands that --help lists."""
    table = README.split("## Commands")[1].split("## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)[ `]", table, re.MULTILINE)) == set(COMMANDS)


def test_every_option_that_the_readme_names_exists():
    """Every option that the README names exists."""
    existing = {name for command in COMMANDS.values() for option in command.params for name in option.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert named - existing - OTHERS - {"--version", "--help"} == set()
