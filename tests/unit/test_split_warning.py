"""The command ``split``: options that the user must pass to `apply`, and spaces in ``--to``."""

from __future__ import annotations

import pytest

from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.cli import CliHere
from tests.support.rows import row

SPEC = 'source = "g"\n[[target]]\ngroup = "a"\ntopics = ["t"]\n[options]\n'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", None),
        ('settle = "10s"', None),
        (
            'settle = "1m30s"\nguard = "250ms"\non_existing = "forward"\nany_kind = true',
            "pass --on-existing forward --settle 90s --guard 0.25s --any-kind to apply",
        ),
        ('settle = "0s"\nguard = "20d"', "pass --settle 0s --guard 1728000s to apply"),
        (
            'on_out_of_range = "earliest"\non_removed = "restore"\non_uncommitted = "leave"',
            "pass --on-uncommitted leave --on-out-of-range earliest --on-removed restore to apply",
        ),
        ('on_uncommitted = "latest"', 'on_uncommitted = "latest" is for migrate alone'),
        (
            'on_uncommitted = "latest"\nguard = "1s"',
            'pass --guard 1s to apply; on_uncommitted = "latest" is for migrate alone',
        ),
    ],
)
def test_split_names_the_flags_to_pass_to_apply(tmp_path, options, said):
    """`split` prints on stderr the flags that `apply` needs for the spec's options, and `apply` accepts these flags.

    Options equal to the defaults of `apply` are not printed.
    """
    tables.save(SnapshotTable.of_rows([row()]), tmp_path / "s.csv")
    (tmp_path / "split.toml").write_text(SPEC + options)
    cli = CliHere(tmp_path, "localhost:1")
    lines = cli("split", "s.csv", "--spec", "split.toml", "-o", "split.csv").stderr.splitlines()
    found = [line for line in lines if "not in the table" in line]
    assert found == ([f"the options of split.toml are not in the table: {said}"] if said else [])
    if said and said.startswith("pass "):
        flags = said.removeprefix("pass ").partition(" to apply")[0].split()
        assert "Connection refused" in cli.fails("apply", "split.csv", "--dry-run", *flags, code=5)


def test_spaces_around_the_equals_sign_of_to_are_ignored(tmp_path):
    """``--to 'a = t'`` means the same as ``--to a=t``: spaces around the equals sign are ignored."""
    tables.save(SnapshotTable.of_rows([row()]), tmp_path / "s.csv")
    cli = CliHere(tmp_path, "localhost:1")
    cli("split", "s.csv", "--to", " a = t ", "-o", "split.csv")
    assert tables.load(tmp_path / "split.csv").groups() == ["a"]
    assert "expected GROUP=TOPICS" in cli.fails("split", "s.csv", "--to", " = t", "-o", "-", code=2)
