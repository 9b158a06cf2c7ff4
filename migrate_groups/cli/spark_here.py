"""Start and stop Spark on this machine for a command."""

from __future__ import annotations

import importlib.util
import logging
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from migrate_groups.cli.console import talk
from migrate_groups.cli.progress_display import Work, shown_looks
from migrate_groups.errors import INSTALL_SPARK, MissingDependency
from migrate_groups.text import named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_spark() -> None:
    """Raise `MissingDependency` if a package of the pip extra ``spark`` is not installed."""
    from migrate_groups.spark.session import require_pyspark

    require_pyspark()
    if importlib.util.find_spec("platformdirs") is None:
        raise MissingDependency(f"platformdirs is not installed: {INSTALL_SPARK}")


@contextmanager
def spark_here(rows: float) -> Iterator[SparkSession]:
    """Start Spark on this machine, yield a session, and stop Spark after the block.

    rows: an estimate of the number of rows to process. If this process runs Spark already, that Spark is used, and
    keeps running.

    Raises `MissingDependency` if PySpark or Java 17 is missing, or if Spark can't start. If Spark fails in the block,
    raises `InvalidInput` or `MigrateGroupsError`.
    """
    from migrate_groups.spark.session import active_session, beside

    active = active_session()
    opened = _readable(beside(active)) if active else _started(rows)
    with opened as spark, shown_looks(lambda: _stages(spark)):
        yield spark


def _stages(spark: SparkSession) -> Work | None:
    """Return the running Spark stages and their progress in tasks; None if no stage runs or this is not known."""
    try:
        tracker = spark.sparkContext.statusTracker()
        found = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except Exception:  # noqa: BLE001  Spark Connect has no such tracker, and an ending JVM does not answer
        return None
    stages = [stage for stage in found if stage is not None]
    if not stages:
        return None
    amounts = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
    return Work("tasks of " + named("Spark's stage", [stage.stageId for stage in stages]), amounts)


@contextmanager
def _started(rows: float) -> Iterator[SparkSession]:
    talk("starting Spark on this machine")
    from migrate_groups.sandbox.jars import user_cache
    from migrate_groups.spark.session import SMALL, local_session

    # Without a handler, the root logger would print the traceback that Py4J logs on an interrupt.
    logging.getLogger().addHandler(logging.NullHandler())
    with interrupted_later():
        spark = local_session(small=rows < SMALL, archives=user_cache() / "spark")
    with _readable(_stopped(spark)):
        yield spark


@contextmanager
def _readable(session: AbstractContextManager[SparkSession]) -> Iterator[SparkSession]:
    from migrate_groups.spark.failures import readable_failures

    # The inner call lets the session see an interrupt that PySpark has hidden. The outer call is for failures at the
    # end of the session.
    with readable_failures(), session as spark, readable_failures():
        yield spark


@contextmanager
def _stopped(spark: SparkSession) -> Iterator[SparkSession]:
    from migrate_groups.spark.session import end_jvm

    try:
        yield spark
    except KeyboardInterrupt:
        end_jvm()  # because the JVM is busy with a job, and does not react to stop()
        raise
    except Exception:
        with suppress(Exception):  # because the first failure says more
            spark.stop()
        raise
    spark.stop()


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Delay SIGINT, SIGTERM and SIGHUP until the block ends."""
    # An interrupt while PySpark starts its JVM would leave the JVM running after this process
    # (docs/kafka-behaviour.md#other-libraries).
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = {each: before for each in numbers if (before := signal.getsignal(each)) is not signal.SIG_IGN}
    for number in heeded:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
