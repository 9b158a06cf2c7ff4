"""Reading a Parquet file starts no threads."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from migrate_groups.files.runs import stop_checkpoint_parquet
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.model.offsets_topic import StopCheckpoint
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.rows import row

_COUNT = """
import os, sys
from pathlib import Path
from migrate_groups.files.{module} import load
before = os.listdir("/proc/self/task")
load(Path(sys.argv[1]))
print(len(os.listdir("/proc/self/task")) - len(before))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
@pytest.mark.parametrize(
    ("name", "module"), [("s.parquet", "snapshots.any_format"), ("f.parquet", "runs.stop_checkpoint_parquet")]
)
def test_parquet_is_read_without_threads(tmp_path, name, module):
    """Reading a Parquet file starts no thread.

    Arrow's threads sometimes abort a process that ends soon afterwards.
    """
    tables.save(SnapshotTable.of_rows(row(partition=number) for number in range(20)), tmp_path / "s.parquet")
    stop_checkpoint_parquet.save(
        {"p": [StopCheckpoint(cluster_id="x", taken_at=datetime.now(UTC), ends={0: 1})]}, tmp_path / "f.parquet"
    )
    counting = [sys.executable, "-c", _COUNT.format(module=module), str(tmp_path / name)]
    done = subprocess.run(counting, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout == "0\n"
