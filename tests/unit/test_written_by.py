"""Receipts and results say who wrote, with which version of the tool, and why."""

from __future__ import annotations

import json
import os
import platform
import pwd

import pytest
import typer.main

import migrate_groups as mg
from migrate_groups.cli.registry import COMMANDS, command_line
from migrate_groups.errors import UsageError
from migrate_groups.files.runs.compared import compared
from tests.support.connected import APPLY, MIGRATE, PARTITION
from tests.support.documents import parsed

OPERATOR = f"{pwd.getpwuid(os.geteuid()).pw_name}@{platform.node()}"


def executions(cli, path="split.toml.run/receipt.json"):
    keys = ("verb", "operator", "version", "reference")
    return [tuple(each[key] for key in keys) for each in json.loads((cli.folder / path).read_text())["executions"]]


def test_each_write_of_a_run_has_its_operator_version_and_reference(cli):
    """The receipt has user, host, version and ``--reference`` of each write; without the option it is empty.

    The result of a write and ``status`` show them too.
    """
    done = cli(*MIGRATE, "--reference", "CHG-7")
    assert f"run by {OPERATOR}, migrate-groups {mg.__version__}, reference CHG-7\n" in done.stdout
    undone = cli("rollback", "split.toml.run", "--yes")
    assert f"run by {OPERATOR}, migrate-groups {mg.__version__}\n" in undone.stdout
    assert executions(cli) == [
        ("hand-over", OPERATOR, mg.__version__, "CHG-7"),
        ("rollback", OPERATOR, mg.__version__, ""),
    ]
    status = parsed(cli("status", "split.toml.run", "--format", "json").stdout)
    assert [(each["operator"], each["version"], each["reference"]) for each in status["writes"]] == [
        (OPERATOR, mg.__version__, "CHG-7"),
        (OPERATOR, mg.__version__, None),
    ]
    assert "CHG-7" in cli("status", "split.toml.run").stdout


def test_apply_and_the_ways_back_take_a_reference(cli):
    """``apply``, ``hand-back`` and ``delete-offsets`` put their own ``--reference`` into the receipt."""
    cli(*APPLY, "--reference", "CHG-1")
    cli.cluster.commit("new", PARTITION, 7)
    cli("hand-back", "receipt.json", "--yes", "--reference", "CHG-2")
    assert [each[3] for each in executions(cli, "receipt.json")] == ["CHG-1", "CHG-2"]
    cli("delete-offsets", "--group", "old", "--topic", "t", "--settle", "0s", "--yes", "--reference", "CHG-3")
    assert [each[3] for each in executions(cli, "old.delete-offsets.receipt.json")] == ["CHG-3"]


def test_the_report_of_a_run_says_who_handed_over(cli):
    """What ``reconcile`` compares for a run directory comes with who handed over, for its report in every format."""
    cli(*MIGRATE, "--reference", "CHG-7")
    found = compared([str(cli.folder / "split.toml.run")], [], has_spec=False)
    assert found.hints[-1] == f"handed over by {OPERATOR}, migrate-groups {mg.__version__}, reference CHG-7"


def test_a_deleted_group_has_the_operator_in_its_document(cli):
    """``delete-group`` has no receipt: its JSON document has operator, version and reference."""
    document = parsed(cli("delete-group", "old", "--yes", "--reference", "CHG-4", "--format", "json").stdout)
    assert (document["operator"], document["version"], document["reference"]) == (OPERATOR, mg.__version__, "CHG-4")


@pytest.mark.parametrize("reference", ["x" * 201, "a\nb", "a\x1b[2J"])
def test_a_reference_is_one_short_line(cli, reference):
    """A reference that is too long or has unprintable characters ends with exit code 2, and nothing is written."""
    assert "the reference is longer than 200 characters, or not one printable line" in cli.fails(
        *MIGRATE, "--reference", reference, code=2
    )
    assert cli.offset("new") is None
    with pytest.raises(UsageError):
        mg.connect("a:9092", reference=reference)


def test_a_user_without_a_name_is_its_number(monkeypatch):
    """If the user of the process has no name, as in some containers, the operator is the user's number."""

    def unknown(_):
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert mg.connect("a:9092")._by.operator == f"{os.geteuid()}@{platform.node()}"


@pytest.mark.parametrize(
    "name", [name for name, command in COMMANDS.items() if 4 in command.exit_codes and name != "doctor"]
)
def test_each_command_that_writes_takes_a_reference(name):
    """Each command that writes to the cluster has the option ``--reference``, but `doctor`, which keeps no receipt."""
    parsed_command = typer.main.get_group(command_line()).commands[name]
    assert "--reference" in {option for each in parsed_command.params for option in each.opts}
