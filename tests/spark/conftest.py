from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.reconciliation import job, reconcile
from migrate_groups.spark.reconciliation.snapshots import SNAPSHOT

NOON = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
DEFAULTS: dict[str, Any] = {
    "cluster_id": "cluster-a",
    "taken_at": NOON,
    "group": "big",
    "source_group": None,
    "group_state": "Empty",
    "group_type": "classic",
    "topic": "orders",
    "topic_id": "id",
    "partition": 0,
    "offset": 100,
    "leader_epoch": 3,
    "metadata": "",
    "log_start_offset": 0,
    "log_end_offset": 150,
}


@pytest.fixture
def snapshot(spark: SparkSession) -> Callable[..., DataFrame]:
    """Return a function that makes a snapshot of committed offsets.

    Each row is given as a dict of the columns that differ from `DEFAULTS`.
    """

    def make(*rows: dict[str, Any]) -> DataFrame:
        return local_table(spark, [tuple((DEFAULTS | row).values()) for row in rows], SNAPSHOT)

    return make


@pytest.fixture
def csv_file(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes lines to a file and returns the file's path."""

    def write(*lines: str, name: str = "snapshot.csv") -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        return str(path)

    return write


@pytest.fixture
def always_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `run_reconcile` treat any number of rows as many, so that it uses `pairs.single_rows` if it can."""
    monkeypatch.setattr(job, "SMALL", 0)


@pytest.fixture
def by_hash_only(always_large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if reconcile uses `pairs.latest_rows`, which sorts rows."""
    monkeypatch.setattr(reconcile, "latest_rows", _forbidden)


@pytest.fixture
def by_order_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if reconcile uses `pairs.single_rows`, which puts rows into a hash table."""
    monkeypatch.setattr(reconcile, "single_rows", _forbidden)


def _forbidden(*_: object) -> DataFrame:
    raise AssertionError
