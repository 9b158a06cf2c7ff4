"""Start Spark on this machine, or get the session of spark-submit or Spark Connect."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate_groups.errors import INSTALL_SPARK, MissingDependency
from migrate_groups.spark.class_data import ClassData, class_data

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenSpark = Callable[[float], "AbstractContextManager[SparkSession]"]
"""Returns a context manager that yields a Spark session in ANSI mode and UTC, and stops what it has started.

It takes an estimate of the number of rows that the job reads. If Spark fails in the block, the context manager raises
`InvalidInput` or `MigrateGroupsError`."""

APP_NAME = "migrate-groups"

SMALL = 500_000
"""A job over fewer rows than this counts as small: it spends most of its time on the start of Spark."""

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m"
"""JVM options for a small job, which make the JVM compile less. This saves more time than slower code costs.

With the first option the JVM keeps only 48 MB of compiled code by default. Some hundred queries of one session fill
that, and then it compiles the same code again and again."""

SMALL_JOB = {
    "spark.sql.shuffle.partitions": "2",
    # With so few partitions there is nothing to adapt, so planning each query stage again would only cost time.
    "spark.sql.adaptive.enabled": "false",
    # Expressions are interpreted, because compiling them takes longer than processing so few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for a small job."""
_JOB_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Java compiles no method with more bytes of bytecode than this. A stage with such a method would take three times
    # as long (docs/kafka-behaviour.md#other-libraries).
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Over Spark Connect, Spark 4.0 resolves the plan of history in more steps than the default of 100.
    "spark.sql.analyzer.maxIterations": "1000",
}
# The time that a terminated JVM gets to remove its files.
_PATIENCE_S = 3
_NEEDS_JAVA = (
    "Spark can't start: it needs Java 17 or newer (such as Debian's openjdk-17-jre-headless) on PATH or in JAVA_HOME"
)


def require_pyspark() -> None:
    """Raise `MissingDependency` if PySpark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise MissingDependency(f"Spark is not installed: {INSTALL_SPARK}")


def local_session(
    *, small: bool = False, settings: dict[str, str] | None = None, archives: Path | None = None
) -> SparkSession:
    """Start Spark on all cores of this machine, and return a session. Spark listens on loopback only.

    If this process has an active session already, that session is set to ANSI mode and UTC, and returned.

    Args:
        small: whether the job has few rows (under 500,000). Such a job then takes half the time.
        settings: further Spark settings, which override those of this package.
        archives: a folder for a cache of Spark's classes. Later processes then start in half the time.

    Raises:
        MissingDependency: PySpark or Java 17 is missing, or Spark can't start.
    """
    require_pyspark()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    with _readable_start():
        if SparkSession.getActiveSession() is None:
            # Otherwise Spark looks up the name of this host in spite of spark.driver.host, slowly if DNS fails.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            wanted = _local_settings() | (SMALL_JOB if small else {}) | (settings or {})
            jvm_options = QUICK_START if small else ""
            if SparkContext._gateway is None:  # otherwise the JVM of a stopped session is still running
                gateway = _start_jvm(wanted, jvm_options, _class_data(archives) if archives else None)
                SparkContext._ensure_initialized(gateway=gateway)
                _look_up_once(SparkContext._jvm)
            SparkContext(conf=SparkConf(loadDefaults=False).setAll([*wanted.items()]))
        return submitted_session()


def active_session() -> SparkSession | None:
    """Return this process's active Spark session; None if there is none."""
    if "pyspark.sql" not in sys.modules:  # importing it takes most of a second
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def beside(active: SparkSession) -> Iterator[SparkSession]:
    """Yield a new session, in ANSI mode and UTC, in the Spark application of ``active``.

    ``active`` keeps its settings and views. After the block ``active`` is the active session again.
    """
    session = active.newSession()
    for key, value in _JOB_SETTINGS.items():
        session.conf.set(key, value)
    try:
        yield session
    finally:
        active.createDataFrame([], "nothing int")  # PySpark makes the session that creates a DataFrame the active one


def opener(spark: SparkSession | None) -> OpenSpark:
    """Return a function that opens ``spark``, else the active Spark, else a local one that is stopped at the end.

    Raises `MissingDependency` if PySpark is not installed.
    """
    # Now and not when a session is opened, because a log may be copied before.
    require_pyspark()

    @contextmanager
    def open_spark(rows: float) -> Iterator[SparkSession]:
        from migrate_groups.spark.failures import readable_failures

        active = active_session()
        with readable_failures():
            if spark is not None:
                yield spark
                return
            with beside(active) if active else local_session(small=rows < SMALL) as session:
                yield session

    return open_spark


def submitted_session() -> SparkSession:
    """Return the session that spark-submit or Spark Connect provides, in ANSI mode and UTC.

    Raises:
        MissingDependency: PySpark is missing.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

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
        # By default PySpark records the Python line that made each column, which doubles the time for planning.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.shuffle.partitions": str(32 * cores),  # adaptive execution merges small partitions
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / f"{APP_NAME}-warehouse"),
        # The default file system writes checksums: it leaves .crc files behind, and can't read a name with a colon
        # (HADOOP-14217).
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        **_JOB_SETTINGS,
    }


def end_jvm() -> None:
    """Stop the JVM that this process started for Spark, even if a Spark job is running."""
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
            f"Spark can't start: {first_line(error)}; check SPARK_LOCAL_DIRS and the Spark variables in the environment"
        ) from error


def _class_data(archives: Path) -> ClassData | None:
    import pyspark

    # As Spark's scripts look for Java.
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


class _LookedUp:
    """A Java class as PySpark offers it, with a cache of its methods."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        setattr(self, name, found)
        return found


def _look_up_once(jvm: Any) -> None:
    """Make PySpark cache the Java functions that make columns. This saves a third of its calls to Java."""
    # Otherwise PySpark would look up the class and the method for each column.
    functions = _LookedUp(jvm.functions)
    for name in ("functions", "org.apache.spark.sql.functions"):  # PySpark uses both names
        setattr(jvm, name, functions)


def _launch(settings: dict[str, str], options: str) -> Any:
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll([*settings.items(), ("spark.driver.extraJavaOptions", options)])
    # The JVM prints to a file, so that a terminal shows only the output of this package.
    with tempfile.TemporaryFile() as log:
        try:
            return launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        except (PySparkRuntimeError, OSError) as error:
            log.seek(0)
            said = [line for line in log.read().decode(errors="replace").splitlines() if not line.startswith("WARNING")]
            raise MissingDependency(f"{_NEEDS_JAVA}; Java printed: {said[0] if said else error}") from None
