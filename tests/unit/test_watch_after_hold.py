"""With ``--hold``, the source group is watched again after the tool has left it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import migrate
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.migration.ports import Clients
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster


@pytest.mark.parametrize(("commits_after", "seen"), [(58, True), (61, False)])
def test_the_group_is_watched_after_the_hold_for_as_long_as_after_the_write(tmp_path: Path, commits_after, seen):
    """After the tool's own membership (``--hold``) ends, the source group is watched for the time ``guard`` again.

    A commit within this time is reported, a later one is not.
    """
    cluster, partition = InMemoryCluster(), TopicPartition("t", 0)
    cluster.create_topic("t", 1)
    cluster.produce("t", 0, 10)
    cluster.commit("old", partition, 5)

    def commits() -> None:
        if clock.slept >= commits_after:
            cluster.commit("old", partition, 7)

    clock = FakeClock(commits)
    done = migrate(Clients(cluster, cluster), _held(tmp_path, guard=30), clock, Events())
    assert done is not None
    assert ("t-0 5 → 7" in "".join(done.execution.moved)) == seen


def test_the_group_is_watched_after_the_hold_although_partitions_were_added(tmp_path: Path):
    """If partitions are added during the first watch, a commit after the hold is reported too."""
    cluster, partition = InMemoryCluster(), TopicPartition("t", 0)
    cluster.create_topic("t", 1)
    cluster.produce("t", 0, 10)
    cluster.commit("old", partition, 5)

    def add_and_commit() -> None:
        if clock.slept >= 10:
            cluster.add_partitions("t", 2)
        if clock.slept >= 40:
            cluster.commit("old", partition, 7)

    clock = FakeClock(add_and_commit)
    done = migrate(Clients(cluster, cluster), _held(tmp_path, guard=30), clock, Events())
    assert done is not None
    assert "t-0 5 → 7" in "".join(done.execution.moved)
    assert done.execution.added == ("partition new t-1 added since the write, without a committed offset",)


def _held(folder: Path, guard: float) -> MigrateRequest:
    spec = SplitSpec(source="old", targets=(SplitTarget(group="new", topics=(TopicPattern("t"),)),))
    options = WriteOptions(settle=0, guard=guard)
    file = SplitFile(content=b"", spec=spec, options=options)
    return MigrateRequest(file=file, run=RunDir(folder / "run"), hold=True)
