"""Snapshots from the log of ``__consumer_offsets``: nothing in them was handed over by a stopped group."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.schema import UNKNOWN_STATE
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.connected import Connected
from tests.support.rows import row
from tests.support.specs import split_spec

PARTITION = TopicPartition("t", 0)
THEN = datetime(2026, 11, 20, 2, 14, tzinfo=UTC)
SOURCE = (
    "1 offset from the log of __consumer_offsets as of 2026-11-20T02:14:00Z, which does not show whether the old group "
    "had stopped"
)


@pytest.fixture
def shell(tmp_path, monkeypatch) -> Connected:
    """A live group ``g``, which has committed offset 8 in ``t-0``; ``then.csv`` has its offset 3 of a moment before."""
    shell = Connected(tmp_path, monkeypatch)
    shell.cluster.commit("g", PARTITION, 8)
    shell.cluster.join("g", Member(member_id="m", client_id="m", host="/h", assignment=frozenset({PARTITION})))
    then = row(taken_at=THEN, group_state=UNKNOWN_STATE, group_type=None, offset=3, log_end_offset=None, topic_id=None)
    tables.save(SnapshotTable.of_rows([then]), tmp_path / "then.csv")
    return shell


@pytest.mark.parametrize("way", ["--to-group", "split"])
def test_apply_says_that_the_source_is_a_log_and_asks_no_old_group(shell, tmp_path, way):
    """``apply`` of offsets from the log names the log and the moment, and is allowed while the group runs.

    Nothing is called handed over by the group, also after ``split``.
    """
    (tmp_path / "split.toml").write_text(split_spec("g", {"new": "t"}))
    if way == "split":
        shell("split", "then.csv", "--spec", "split.toml", "-o", "new.csv")
    file = ["new.csv"] if way == "split" else ["then.csv", "--to-group", "new"]
    shown = shell("apply", *file, "--yes", "--guard", "0s")
    assert SOURCE in shown.stdout
    assert "handed over by" not in shown.stdout
    assert shell.offset("new") == 3


def test_restore_writes_a_past_offset_back_once_the_group_has_stopped(shell):
    """``apply --restore`` takes a group back to the moment; while the group runs it is refused."""
    restore = ("apply", "then.csv", "--restore", "--on-existing", "overwrite", "--yes", "--guard", "0s")
    shell(*restore, code=3)
    shell.cluster.leave("g", "m")
    shown = shell(*restore)
    assert SOURCE in shown.stdout
    assert shell.offset("g") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--at", "2026-11-20T02:14:00Z"), "--at goes with --log"),
        (("--known-only",), "--known-only goes with --log"),
        (("--log", "log", "--time-lag"), "--time-lag does not go with --log"),
        (("--log", "log", "--at", "2999-11-20T02:14:00Z"), "which is in the future"),
        (
            ("--log", "log", "--at", "2026-11-20T02:14:00"),
            "end it with Z or, for instance, +11:00\n",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(shell, arguments, message):
    """Options of a snapshot at a moment that contradict each other, or name no moment of the past, are refused."""
    assert message in shell("snapshot", "g", "-o", "x.csv", *arguments, code=2).stderr
