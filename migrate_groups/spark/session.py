"""Spark sessions: a quiet one on this machine, or the one that spark-submit has started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate_groups.errors import INSTALL_SPARK, MissingDependency
from migrate_groups.spark.class_data import ClassData, class_data

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP_NAME = "migrate-groups"

SMALL = 500_000
"""Rows of both sides up to which a job is small: mostly its own start."""

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM options that suit a small job: what they save in compiling is more than what the code then takes."""

_SMALL_JOB = {
    "spark.sql.shuffle.partitions": "2",
    # With so few partitions there is nothing to adapt, and each query stage would be planned anew.
    "spark.sql.adaptive.enabled": "false",
    # Expressions are interpreted: to compile them takes longer than so few rows do.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_JOB_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Java does not compile a method of more bytes: such a stage would be interpreted, three times as slow
    "spark.sql.codegen.hugeMethodLimit": "8000",
}
# What a JVM that was asked to end may take to remove its files.
_PATIENCE_S = 3
_NEEDS_PYSPARK = f"Spark is not installed: {INSTALL_SPARK}"
_NEEDS_JAVA = (
    "Spark can't start: it needs Java 17 or newer (such as Debian's openjdk-17-jre-headless) on PATH or in JAVA_HOME"
)


def local_session(
    *, small: bool = False, settings: dict[str, str] | None = None, archives: Path | None = None
) -> SparkSession:
    """A session on all cores of this machine that listens on loopback only and leaves no files behind.

    What the JVM says on stdout and stderr, its banner included, goes to an unnamed temporary file, so that a terminal
    shows nothing but our own lines. If this process has a session already, that one is returned as it is.

    Args:
        small: for a job of few rows (`SMALL`), which then takes half the time.
        settings: further Spark settings, which win over ours.
        archives: a folder to keep Spark's classes in (`class_data`): the exit of the first process that uses it takes
            10 s more, and the start of every later one half the time.

    Raises:
        MissingDependency: PySpark or Java 17 is not there, or the environment keeps Spark from starting.
    """
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingDependency(_NEEDS_PYSPARK) from None
    with _readable_start():
        if SparkSession.getActiveSession() is None:
            # spark.driver.host alone does not keep Spark from resolving the host's name, slow without a DNS server
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            wanted = _local_settings() | (_SMALL_JOB if small else {}) | (settings or {})
            jvm_options = QUICK_START if small else ""
            if SparkContext._gateway is None:  # a session that was stopped leaves its JVM behind, for the next one
                gateway = _start_jvm(wanted, jvm_options, _class_data(archives) if archives else None)
                SparkContext._ensure_initialized(gateway=gateway)
            SparkContext(conf=SparkConf(loadDefaults=False).setAll([*wanted.items()]))
        return submitted_session()


def active_session() -> SparkSession | None:
    """Return the active session of this process, None if it runs no Spark."""
    if "pyspark.sql" not in sys.modules:  # importing it takes most of a second
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def beside(active: SparkSession) -> Iterator[SparkSession]:
    """Yield a further session on the same Spark, with the settings that results depend on.

    The active session keeps its settings and views, runs on, and is the active one again afterwards.
    """
    session = active.newSession()
    for key, value in _JOB_SETTINGS.items():
        session.conf.set(key, value)
    try:
        yield session
    finally:
        active.createDataFrame([], "nothing int")  # PySpark activates the session that makes a DataFrame


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


def _local_settings() -> dict[str, str]:
    cores = os.cpu_count() or 1
    return {
        "spark.master": "local[*]",
        "spark.app.name": APP_NAME,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{min(1 + cores // 2, 30)}g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # else PySpark notes the line of Python behind every column: half of the time that a job's plan takes Python
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.shuffle.partitions": str(32 * cores),  # adaptive execution joins those that are small
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / f"{APP_NAME}-warehouse"),
        # the file system with checksums leaves .crc files about and can't read a name with a colon (HADOOP-14217)
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        **_JOB_SETTINGS,
    }


def end_jvm() -> None:
    """End the JVM of this process's session, whatever it is doing."""
    from pyspark import SparkContext

    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None:
        return
    jvm.terminate()
    try:
        jvm.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


@contextmanager
def _readable_start() -> Iterator[None]:
    from migrate_groups.spark.failures import first_line, is_of_spark

    try:
        yield
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise MissingDependency(
            f"Spark can't start: {first_line(error)}; see to SPARK_LOCAL_DIRS and the like in the environment"
        ) from error


def _class_data(archives: Path) -> ClassData | None:
    import pyspark

    # as Spark's own scripts find it
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home) / "bin" / "java") if home else shutil.which("java")
    return class_data(archives, java=Path(java), spark=Path(pyspark.__file__).parent / "jars") if java else None


def _start_jvm(settings: dict[str, str], options: str, classes: ClassData | None) -> Any:
    if classes is None:
        return _launch(settings, options)
    try:
        gateway = _launch(settings, f"{options} {classes.options}")
    except MissingDependency:
        gateway = _launch(settings, options)
        classes.give_up()
        return gateway
    classes.keep(gateway.proc)
    return gateway


def _launch(settings: dict[str, str], options: str) -> Any:
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll([*settings.items(), ("spark.driver.extraJavaOptions", options)])
    with tempfile.TemporaryFile() as log:
        try:
            return launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        except (PySparkRuntimeError, OSError) as error:
            log.seek(0)
            said = [line for line in log.read().decode(errors="replace").splitlines() if not line.startswith("WARNING")]
            raise MissingDependency(f"{_NEEDS_JAVA}; it said: {said[0] if said else error}") from None
