"""Spark sessions: a quiet one on this machine, or the one that spark-submit has started."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate_groups.errors import MissingDependency

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

APP_NAME = "migrate-groups"

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM options that suit a small job: 9.5 s instead of 14 s for a session and its first queries on two cores. A job of
millions of rows is better off without."""

_JOB_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
_NEEDS_PYSPARK = "Spark is not installed: run pip install 'migrate-groups[spark]'"
_NEEDS_JAVA = (
    "Spark can't start: it needs Java 17 or newer (such as Debian's openjdk-17-jre-headless) on PATH or in JAVA_HOME"
)


def local_session(*, jvm_options: str = "", settings: dict[str, str] | None = None) -> SparkSession:
    """A session on all cores of this machine that listens on loopback only and leaves no files behind.

    What the JVM says on stdout and stderr, its banner included, goes to an unnamed temporary file, so that a terminal
    shows nothing but our own lines. If this process has a session already, that one is returned as it is.

    Args:
        jvm_options: options for the JVM, such as `QUICK_START`.
        settings: further Spark settings, which win over ours.

    Raises:
        MissingDependency: PySpark or Java 17 is not there.
    """
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingDependency(_NEEDS_PYSPARK) from None
    if SparkSession.getActiveSession() is None:
        # spark.driver.host alone does not keep Spark from resolving the host's name, which is slow without a DNS server
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf = SparkConf(loadDefaults=False).setAll([*(_local_settings(jvm_options) | (settings or {})).items()])
        if SparkContext._gateway is None:  # a session that was stopped leaves its JVM behind, for the next one
            SparkContext._ensure_initialized(gateway=_start_jvm(conf), conf=conf)
        SparkContext(conf=conf)
    return submitted_session()


def submitted_session() -> SparkSession:
    """The session that spark-submit (or Spark Connect) was told to use, whatever its master is.

    Raises:
        MissingDependency: PySpark is not there.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingDependency(_NEEDS_PYSPARK) from None
    builder = SparkSession.builder.appName(APP_NAME)
    for key, value in _JOB_SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _local_settings(jvm_options: str) -> dict[str, str]:
    cores = os.cpu_count() or 1
    return {
        "spark.master": "local[*]",
        "spark.app.name": APP_NAME,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": jvm_options,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(max(4, cores)),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / f"{APP_NAME}-warehouse"),
        # the file system with checksums leaves .crc files about and can't read a name with a colon (HADOOP-14217)
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        **_JOB_SETTINGS,
    }


def _start_jvm(conf: SparkConf) -> Any:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    with tempfile.TemporaryFile() as log:
        try:
            return launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        except (PySparkRuntimeError, OSError) as error:
            log.seek(0)
            said = [line for line in log.read().decode(errors="replace").splitlines() if not line.startswith("WARNING")]
            raise MissingDependency(f"{_NEEDS_JAVA}; it said: {said[0] if said else error}") from None
