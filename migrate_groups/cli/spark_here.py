"""Spark on this machine, for the commands that need it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from migrate_groups.cli.console import talk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_here(rows: float, settings: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """Say that Spark starts, and yield its session, made for a job of so many rows. Raises as `local_session`."""
    talk("starting Spark on this machine")
    from migrate_groups.sandbox.jars import user_cache
    from migrate_groups.spark.session import SMALL, local_session

    with local_session(small=rows < SMALL, settings=settings, archives=user_cache() / "spark") as spark:
        yield spark
