"""``reconcile`` run with spark-submit: in one process, and on a Spark cluster of several processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrate_groups.spark.reconciliation.reconcile import STATUSES
from tests.support.spark_cluster import spark_cluster, submit

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "spark_reconcile.py"
HEADER = "cluster_id,group,source_group,topic,partition,offset,log_start_offset,log_end_offset"
SPLIT = ("c,00123,big,007,0,10,0,15", "c,00123,big,007,1,20,0,25", "c,search,big,catalog,0,5,0,5")
GOOD = ("c,00123,,007,0,10,0,15", "c,00123,,007,1,20,0,30", "c,search,,catalog,0,5,0,5")
ONE_BEHIND_ONE_MISSING = ("c,00123,,007,0,9,0,15", "c,search,,catalog,0,5,0,5")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The wheel of the package, built from the checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "dist"), "-t", "wheel"]
    subprocess.run(command, cwd=ROOT, check=True)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    return wheel


@pytest.fixture
def reconciled(csv_file: Callable[..., str], tmp_path: Path, package: Path) -> Callable[..., Any]:
    """Return a function that runs reconcile with spark-submit, checks the exit code, and returns the printed totals."""
    folder, out = tmp_path / "cwd", tmp_path / "out"
    folder.mkdir()

    def run(master: str, after: tuple[str, ...], code: int) -> Any:
        files = (csv_file(HEADER, *SPLIT, name="split.csv"), csv_file(HEADER, *after, name="after.csv"))
        done = submit(master, SCRIPT, *files, "--out", str(out), package=package, cwd=folder)
        assert done.returncode == code, done.stderr
        assert (out / "partition_verdict.parquet" / "_SUCCESS").exists()
        assert not [*folder.iterdir()]
        return json.loads(done.stdout)

    return run


def counted(**counts: int) -> dict[str, int]:
    return dict.fromkeys(STATUSES, 0) | counts


def test_spark_submit_runs_the_job(reconciled: Callable[..., Any]) -> None:
    """spark-submit runs reconcile in one process, with the package as a wheel.

    The exit code is 6 because offsets are wrong. The tables are complete, and stdout is one JSON document with the
    totals.
    """
    found = reconciled("local[2]", ONE_BEHIND_ONE_MISSING, 6)
    assert (found["clean"], found["counts"]) == (False, counted(behind=1, missing=1, exact=1))


@pytest.mark.long
@pytest.mark.parametrize(
    ("after", "code", "counts"),
    [(ONE_BEHIND_ONE_MISSING, 6, counted(behind=1, missing=1, exact=1)), (GOOD, 0, counted(exact=3))],
    ids=["broken", "good"],
)
def test_a_cluster_runs_the_job(
    reconciled: Callable[..., Any], tmp_path: Path, after: tuple[str, ...], code: int, counts: dict[str, int]
) -> None:
    """In a Spark cluster with two workers, both workers take part in reconcile.

    The exit code is 0 after a good hand-over and 6 after a broken one, and the counts are right.
    """
    with spark_cluster(tmp_path) as cluster:
        found = reconciled(cluster.url, after, code)
        assert cluster.took_part() == [True, True]
    assert (found["clean"], found["counts"]) == (code == 0, counts)
