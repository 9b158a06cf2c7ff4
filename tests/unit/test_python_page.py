"""``docs/python.md`` names all that the Python API offers, and the API offers what the command line does."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import migrate_groups as mg
from migrate_groups.cli.registry import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
CODE = " ".join(re.findall(r"```py.*?```|`[^`\n]+`", PAGE, re.DOTALL))
# Where the Python API has each parameter of a command: FUNCTION.PARAMETER, or the reason why it is not needed there.
IN_PYTHON = {
    "audit": {
        "run": "audit.run_dir",
        "log": "audit.log",
        "without_membership": "audit.without_membership",
        "target": "audit.to",
    },
    "history": {
        "groups": "history.groups",
        "group": "history.groups",
        "log": "history.log",
        "output": "history.output",
        "every": "history.every",
    },
    "advise": {
        "groups": "advise.groups",
        "group": "costs.groups",
        "log": "costs.log",
        "report": "costs_after.output",
        "since": "costs.since",
        "after": "costs_after.run_dir",
        "spec_for": "propose_split.group",
        "application": "propose_split.applications",
        "output": "propose_split returns the text",
    },
    "status": {"run": "status.run", "target": "status.to"},
    "doctor": {
        "write": "try_out.cluster",
        "settle": "try_out.settle",
        "yes": "it does not ask",
    },
}


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


def test_the_page_has_every_name():
    """The page has each name that the package exports, and each method of a cluster and of a snapshot, as code."""
    names = {*mg.__all__, *public(mg.Cluster), *public(mg.Snapshot)}
    assert sorted(names - {*re.findall(r"\w+", CODE)}) == []


def test_the_page_has_no_other_name():
    """Each name of the package, and each method of a cluster, that the page uses exists."""
    assert {*re.findall(r"\bmg\.(\w+)", CODE)} - {*mg.__all__} == set()
    called = {*re.findall(r"\b(?:cluster|source|target|starting)\.(\w+)\(", CODE)}
    assert called - {*public(mg.Cluster)} == set()
    types = {*re.findall(r"`([A-Z]\w+)`", PAGE.partition("## Names")[2].partition("## Errors")[0])}
    assert types - {*mg.__all__} == set()


@pytest.mark.parametrize("command", IN_PYTHON)
def test_python_can_do_what_the_command_does(command):
    """Each parameter of the command, but those for the output and the login, has a parameter in the Python API."""
    given = {*inspect.signature(COMMANDS[command].load()).parameters} - {"output_format", "connection"}
    assert given == {*IN_PYTHON[command]}
    for place in IN_PYTHON[command].values():
        function, _, parameter = place.partition(".")
        if parameter:
            found = getattr(mg.Cluster, function, None) or getattr(mg, function)
            assert parameter in inspect.signature(found).parameters
