"""Open Spark for a call of the Python API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from migrate_groups.spark.session import SMALL, active_session, beside, local_session, require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from migrate_groups.spark.session import OpenSpark


def opener(spark: SparkSession | None) -> OpenSpark:
    """Return a function that opens ``spark``, else the active Spark, else a local one that is stopped at the end.

    Raises `MissingDependency` if PySpark is not installed.
    """
    # Now and not when a session is opened, because a log may be copied before.
    require_pyspark()

    @contextmanager
    def open_spark(rows: float) -> Iterator[SparkSession]:
        from migrate_groups.spark.failures import readable_failures

        with readable_failures(), ExitStack() as opened:
            if spark is not None:
                yield spark
                return
            active = active_session()
            yield opened.enter_context(beside(active) if active else local_session(small=rows < SMALL))

    return open_spark
