"""Spark on this machine, for the commands that need it."""

from __future__ import annotations

import importlib.util
import logging
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from migrate_groups.cli.console import talk
from migrate_groups.errors import INSTALL_SPARK, MissingDependency

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_spark() -> None:
    """Raise `MissingDependency` if a package of the extra ``spark`` is not installed, before any work is done."""
    for module, name in (("pyspark", "Spark"), ("jinja2", "Jinja2"), ("platformdirs", "platformdirs")):
        if importlib.util.find_spec(module) is None:
            raise MissingDependency(f"{name} is not installed: {INSTALL_SPARK}")


@contextmanager
def spark_here(rows: float, settings: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """Start Spark with a message on stderr, and yield a session for a job over ``rows`` rows; end Spark afterwards.

    If this process runs Spark already, as a notebook may, that Spark is used and not ended: the job gets a session of
    its own, and ``settings`` are not applied.

    Raises the errors of `local_session`, and Spark's failures as `readable_failures` translates them.
    """
    from migrate_groups.spark.session import active_session, beside

    active = active_session()
    with _readable(beside(active)) if active else _started(rows, settings) as spark:
        yield spark


@contextmanager
def _started(rows: float, settings: dict[str, str] | None) -> Iterator[SparkSession]:
    talk("starting Spark on this machine")
    from migrate_groups.sandbox.jars import user_cache
    from migrate_groups.spark.session import SMALL, local_session

    # Without a handler, the root logger would print the traceback that Py4J logs on an interrupt.
    logging.getLogger().addHandler(logging.NullHandler())
    with interrupted_later():
        spark = local_session(small=rows < SMALL, settings=settings, archives=user_cache() / "spark")
    with _readable(_stopped(spark)):
        yield spark


@contextmanager
def _readable(session: AbstractContextManager[SparkSession]) -> Iterator[SparkSession]:
    from migrate_groups.spark.failures import readable_failures

    with readable_failures(), session as spark:
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
    """Delay SIGINT, SIGTERM and SIGHUP until the block ends.

    If an interrupt came while PySpark starts its JVM, the JVM would keep running after this process.
    See docs/kafka-behaviour.md#other-libraries.
    """
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
