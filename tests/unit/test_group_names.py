"""Group names on the command line that are not UTF-8."""

from __future__ import annotations

import os

import pytest

from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.cli import CliHere
from tests.support.rows import row

GROUP = os.fsdecode(b"g\xff")


@pytest.mark.parametrize(
    "arguments",
    [
        ["split", "good.csv", "--to", f"{GROUP}=t", "-o", "-"],
        ["filter", "good.csv", "--group", GROUP, "-o", "-"],
        ["apply", "good.csv", "--to-group", GROUP, "--dry-run"],
        ["migrate", "good.toml", "--rename", f"g={GROUP}", "--dry-run"],
        ["snapshot", GROUP, "-o", "-"],
        ["describe", GROUP],
        ["verify", GROUP],
        ["delete-group", GROUP, "--yes"],
        ["watch", GROUP, "--until", "good.csv"],
        ["rewind", "--group", GROUP, "--to-earliest", "-o", "-"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_group_name_that_is_not_utf_8_is_exit_2(tmp_path, arguments):
    """If a group name is not UTF-8, the command prints a one-line error and ends with exit code 2.

    No cluster is contacted.
    """
    tables.save(SnapshotTable.of_rows([row()]), tmp_path / "good.csv")
    (tmp_path / "good.toml").write_text('source = "g"\n[[target]]\ngroup = "a"\ntopics = ["t"]\n')
    error = CliHere(tmp_path, "localhost:1").fails(*arguments, code=2)
    if arguments[0] == "filter":  # because filter looks for the name in a file
        assert error == r"error: group g\udcff not found in the file: did you mean g?"
    else:
        assert "is not UTF-8 text, as every group name in Kafka is" in error
