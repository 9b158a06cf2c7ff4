"""The Spark jobs over Spark Connect: a server in its own process, and a client without a JVM."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyspark
import pytest

from tests.support.other_pyspark import installed
from tests.support.reconcile_in_duckdb import fingerprint, verdicts
from tests.support.spark_cluster import connect_server

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "support" / "over_connect.py"
_EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
[OLDEST] = re.findall(r"pyspark>=([\d.]+)", " ".join(_EXTRAS["spark"]))


@pytest.mark.long
@pytest.mark.parametrize("version", [f"{OLDEST}.0", pyspark.__version__], ids=["oldest", "newest"])
def test_jobs_run_over_spark_connect(tmp_path: Path, version: str) -> None:
    """reconcile, audit and history run over Spark Connect.

    The rows of reconcile's table equal those that DuckDB computes.
    """
    pyspark = installed(version)
    with connect_server(tmp_path, pyspark / "pyspark") as url:
        paths = (pyspark, ROOT, ROOT / "scripts")
        environment = {**os.environ, "SPARK_REMOTE": url, "PYTHONPATH": os.pathsep.join(map(str, paths))}
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout.split() == ["pyspark.sql.connect.session", "reconcile", "audit", "history"], done.stderr
    table = f"FROM read_parquet('{tmp_path}/out/partition_verdict.parquet/*.parquet')"
    assert fingerprint(table) == fingerprint(verdicts(tmp_path / "before.csv", tmp_path / "after.csv"))
