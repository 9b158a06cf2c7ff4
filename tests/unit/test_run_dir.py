"""What a run directory keeps of the new groups after the write."""

from __future__ import annotations

from migrate_groups.cli.cutover import keep_after
from migrate_groups.cluster.in_memory import InMemoryCluster
from migrate_groups.cluster.ports import TopicPartition
from migrate_groups.files import tables
from migrate_groups.files.run_dir import RunDir
from migrate_groups.migration.cutover import prepare
from migrate_groups.migration.write import apply_plan
from migrate_groups.offsets.selection import TopicPattern
from migrate_groups.offsets.split import SplitSpec, SplitTarget
from migrate_groups.plan.options import WriteOptions
from tests.support.clock import FakeClock


def test_the_new_groups_as_they_are_after_the_write(tmp_path, capsys):
    """Of groups written to; the next write removes what an earlier one left; a failure is said, not raised."""
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
    before, prepared = prepare(made, spec, WriteOptions(), FakeClock())
    (tmp_path / "split.toml").write_text("source = 'big'")
    run = RunDir.beside(tmp_path / "split.toml")
    with run.opened():
        run.save(tmp_path / "split.toml", before, prepared.named, prepared.plan)
        keep_after(made, prepared.plan, run)
        assert "after.parquet was not written: group 'bill' does not exist" in capsys.readouterr().err
        assert not run.after.exists()

        apply_plan(made, made, prepared.plan, FakeClock(), lambda receipt: None)
        keep_after(made, prepared.plan, run)
        rows = [(row.group, row.topic, row.offset, row.log_end_offset) for row in tables.load(run.after).rows()]
        assert rows == [("bill", "inv", 5, 10)]

        run.save(tmp_path / "split.toml", before, prepared.named, prepared.plan)
        assert not run.after.exists()
