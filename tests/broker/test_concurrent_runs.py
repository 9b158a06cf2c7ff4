"""Two commands that write with copies of one run directory, at the same time, on a real broker."""

from __future__ import annotations

import shutil

import pytest

from tests.support.old_group import Old

NO_WAIT = ("--settle", "0s", "--guard", "0s", "--yes")


@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=pytest.mark.long)])
def test_rollback_and_delete_offsets_at_once(cli, world, rounds):
    """If `rollback` and `delete-offsets` run at once with copies of a run directory, each partition keeps an offset.

    If neither command fails, `rollback` has found the offsets deleted, and has set them again.
    """
    for number in range(rounds):
        old = Old(cli, world)
        expected = old.offsets(old.pay)
        run, copy = f"{number}.run", f"{number}.copy"
        cli("migrate", "split.toml", "--run-dir", run, *NO_WAIT)
        shutil.copytree(cli.folder / run, cli.folder / copy)
        both = [cli.start(*command, "--yes") for command in (("rollback", run), ("delete-offsets", copy))]
        ends = [process.communicate(timeout=60) for process in both]
        codes = [process.returncode for process in both]
        source, target = old.offsets(old.pay), world.committed(old.pay_group)
        assert set(codes) <= {0, 3, 4}, ends
        assert expected in (source, target), (codes, ends)
        if codes[0] == 0:
            assert (source, target) == (expected, {}), (codes, ends)
        elif codes[1] == 0:
            assert (source, target) == ({}, expected), (codes, ends)
