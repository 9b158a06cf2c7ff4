"""The files that a run directory contains after a write."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from migrate_groups.cli.terminal import Terminal
from migrate_groups.errors import InvalidInput
from migrate_groups.files.runs.compared import compared
from migrate_groups.files.runs.receipt_file import ReceiptFile
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.migration.clusters import one_cluster
from migrate_groups.migration.hand_over.migrate import keep
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.migration.write import write
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.connected import MIGRATE, PARTITION, SPEC, Connected
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import prepare


def save_files(made, content, prepared, run, execution):
    """Save in the run directory the files that `migrate` keeps after a write."""
    file = SplitFile(spec=prepared.spec, options=WriteOptions(), content=content)
    wanted = MigrateRequest(file=file, run=run)
    keep(one_cluster(made), wanted, prepared, execution, ReceiptFile(run.receipt), FakeClock(), Terminal())


def test_after_parquet_has_the_target_groups_after_the_write(tmp_path, capsys):
    """After a write, ``after.parquet`` contains the offsets of the target groups.

    If it can't be made, a message says so, and an earlier ``after.parquet`` is deleted. The log end offsets in
    ``before.parquet`` are read after the write, too.
    """
    made = InMemoryCluster()
    made.create_topic("inv", 1)
    made.create_topic("cat", 1)
    for topic in ("inv", "cat"):
        made.produce(topic, 0, 10)
    made.commit("big", TopicPartition("inv", 0), 5)
    spec = SplitSpec(
        source="big", targets=(SplitTarget(group="bill", topics=(TopicPattern("inv"),)),), stay=(TopicPattern("cat"),)
    )
    made.commit("big", TopicPartition("cat", 0), 5)
    prepared = prepare(made, spec, WriteOptions(), FakeClock())
    spec_file = tmp_path / "split.toml"
    run = RunDir.beside(spec_file)
    run.make()
    unwritten = Execution.of(prepared.plan, FakeClock().now())
    done = replace(unwritten, changes=())
    save_files(made, b"source", prepared, run, done)
    assert "after.parquet was not written: group 'bill' does not exist" in capsys.readouterr().err
    assert not run.after.exists()

    done = write(made.clients, Execution.of(prepared.plan, FakeClock().now()), lambda execution: None)
    made.produce("inv", 0, 2)
    save_files(made, b"source", prepared, run, done)
    rows = [(row.group, row.topic, row.offset, row.log_end_offset) for row in tables.load(run.after).rows()]
    assert rows == [("bill", "inv", 5, 12)]
    before = [(row.topic, row.offset, row.log_end_offset) for row in tables.load(run.before).rows()]
    assert before == [("cat", 5, 10), ("inv", 5, 12)]
    assert (run.folder / "spec.toml").read_bytes() == b"source"

    save_files(made, b"", prepared, run, unwritten)
    assert not run.after.exists()
    assert run.before.exists()


def test_offsets_csv_is_omitted_if_kafkas_tool_cannot_read_the_group_name(tmp_path):
    """If a group's name contains a line feed, no ``offsets.csv`` is written, and an earlier one is deleted.

    Kafka's tool could not read the name.
    """
    made = InMemoryCluster()
    for topic in ("inv", "cat"):
        made.create_topic(topic, 1)
        made.commit("big", TopicPartition(topic, 0), 0)
    targets = tuple(
        SplitTarget(group=group, topics=(TopicPattern(topic),)) for group, topic in (("a\nb", "inv"), ("c", "cat"))
    )
    prepared = prepare(made, SplitSpec(source="big", targets=targets), WriteOptions(), FakeClock())
    run = RunDir(tmp_path)
    run.offsets.touch()
    done = write(made.clients, Execution.of(prepared.plan, FakeClock().now()), lambda execution: None)
    save_files(made, b"", prepared, run, done)
    assert run.after.exists()
    assert not run.offsets.exists()


def test_files_that_can_not_be_saved_after_the_write_are_an_error(tmp_path, monkeypatch):
    """If a file of the run can't be saved after the write, the command says which, and that offsets were written."""
    cli = Connected(tmp_path, monkeypatch)

    def full(*_: object) -> None:
        raise InvalidInput("plan.json can't be written: No space left on device")

    monkeypatch.setattr(RunDir, "save", full)
    assert (
        "error: offsets were written, but not all files of the run could be saved: plan.json can't be written: No "
        "space left on device; fix this, and run the same command again"
    ) in cli.fails(*MIGRATE, code=4)
    assert cli.cluster.offsets("new").get(PARTITION) is not None


@pytest.mark.parametrize("name", ["plan.json", "split.parquet", "after.parquet"])
def test_files_of_another_run_are_not_reconciled(tmp_path, monkeypatch, name):
    """If a file of a run directory is of another run than ``receipt.json``, `reconcile` of the directory is refused."""
    cli = Connected(tmp_path, monkeypatch)
    cli(*MIGRATE)
    cli.cluster.commit("old", PARTITION, 7)
    (tmp_path / "later.toml").write_text(SPEC.replace('"new"', '"newer"'))
    cli("migrate", "later.toml", "--yes", "--copy")
    ours, later = tmp_path / "split.toml.run", tmp_path / "later.toml.run"
    assert compared([str(ours)], [], has_spec=False).after == [str(ours / "after.parquet")]
    shutil.copy(later / name, ours / name)
    with pytest.raises(InvalidInput, match=rf"{name} is not of the run that receipt\.json records"):
        compared([str(ours)], [], has_spec=False)
    if name == "after.parquet":  # another AFTER is not compared with it
        assert compared([str(ours)], ["split.csv"], has_spec=False).after == ["split.csv"]
