"""The job on a Spark cluster, which runs in other processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate_groups.spark.reconciliation.reconcile import STATUSES
from tests.support.spark_cluster import spark_cluster

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "spark_reconcile.py"
HEADER = "cluster_id,group,source_group,topic,partition,offset,log_start_offset,log_end_offset"
SPLIT = ("c,00123,big,007,0,10,0,15", "c,00123,big,007,1,20,0,25", "c,search,big,catalog,0,5,0,5")
GOOD = ("c,00123,,007,0,10,0,15", "c,00123,,007,1,20,0,30", "c,search,,catalog,0,5,0,5")
ONE_BEHIND_ONE_MISSING = ("c,00123,,007,0,9,0,15", "c,search,,catalog,0,5,0,5")


@pytest.mark.parametrize(
    ("after", "code", "counts"),
    [
        (ONE_BEHIND_ONE_MISSING, 6, {"behind": 1, "missing": 1, "exact": 1}),
        pytest.param(GOOD, 0, {"exact": 3}, marks=pytest.mark.long),
    ],
    ids=["broken", "good"],
)
def test_a_cluster_runs_the_job(
    csv_file: Callable[..., str], tmp_path: Path, after: tuple[str, ...], code: int, counts: dict[str, int]
) -> None:
    """spark-submit runs the job on a master and two workers, with the package as a wheel.

    Both workers take part; the exit code, the tables and the totals as one line of JSON are right.
    """
    files = (csv_file(HEADER, *SPLIT, name="split.csv"), csv_file(HEADER, *after, name="after.csv"))
    folder, out = tmp_path / "cwd", tmp_path / "out"
    folder.mkdir()
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "dist"), "-t", "wheel"]
    subprocess.run(command, cwd=ROOT, check=True)
    [package] = (tmp_path / "dist").glob("*.whl")
    with spark_cluster(tmp_path) as cluster:
        done = cluster.submit(SCRIPT, *files, "--out", str(out), package=package, cwd=folder)
        assert done.returncode == code, done.stderr
        assert cluster.took_part() == [True, True]
    assert (out / "partition_verdict.parquet" / "_SUCCESS").exists()
    result = json.loads(done.stdout)
    assert (result["clean"], result["counts"]) == (code == 0, dict.fromkeys(STATUSES, 0) | counts)
    assert not [*folder.iterdir()]
