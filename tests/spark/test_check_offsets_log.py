"""The short form of ``scripts/check_offsets_log.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from pyspark.sql import SparkSession

from migrate_groups.sandbox.broker import start_sandbox

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_offsets_log.py"


def test_decoding_is_that_of_kafkas_own_formatter(spark: SparkSession, tmp_path, java, kafka_jars) -> None:
    """10,000 commits, plain, in transactions, aborted and deleted, are decoded as Kafka's own tool prints them."""
    specification = importlib.util.spec_from_file_location("check_offsets_log", SCRIPT)
    check = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(check)
    with start_sandbox(kafka_jars, java=java) as sandbox:
        check.commit(sandbox.bootstrap_servers, 10_000)
        found = check.compare(sandbox, spark, tmp_path)
    committed, all_of_them = found["read_committed"], found["read_uncommitted"]
    assert committed == (committed[0], committed[0], 0)
    assert all_of_them == (committed[0] + 20, committed[0] + 20, 0)
    assert committed[0] > 10_000
