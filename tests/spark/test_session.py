from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

import migrate_groups.spark
from migrate_groups.cli.spark_here import _stages, spark_here
from migrate_groups.errors import INSTALL_SPARK, InvalidInput, MissingDependency
from migrate_groups.spark.reconciliation.snapshots import read_snapshots
from migrate_groups.spark.session import active_session, local_session
from tests.support.processes import children_of, gone

PACKAGE = Path(migrate_groups.spark.__file__).parent
ON_THIS_MACHINE = ("class_data", "session")  # the other modules may be submitted to a cluster
JOB = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in PACKAGE.rglob("[!_]*.py")
    if path.stem not in ON_THIS_MACHINE
)


def test_session_uses_utc_and_ansi_mode_and_is_local(spark: SparkSession) -> None:
    """The local Spark session uses UTC and ANSI mode, on which results depend.

    Its driver listens on 127.0.0.1 only, and the Spark UI is off.
    """
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.master": "local[*]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    assert {name: spark.conf.get(name) for name in settings} == settings


def test_second_session_shares_the_jvm(spark: SparkSession) -> None:
    """A second Spark session uses the JVM of the first, because a process has only one JVM."""
    assert local_session().sparkContext is spark.sparkContext


def test_command_does_not_change_the_callers_session(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """If the caller has a Spark session, a command uses a new one, with its own settings and views.

    The caller's session keeps its settings and views, and stays active.
    """
    zone = "spark.sql.session.timeZone"
    spark.conf.set(zone, "Asia/Tokyo")
    with spark_here(1) as ours:
        assert ours.sparkContext is spark.sparkContext
        assert ours.conf.get(zone) == "UTC"
        ours.createDataFrame([(1,)], "n int").createOrReplaceTempView("ours")
    with pytest.raises(InvalidInput, match=r"missing\.csv: no such file"), spark_here(1) as ours:
        read_snapshots(ours, ["missing.csv"])
    assert active_session() is spark
    assert spark.conf.get(zone) == "Asia/Tokyo"
    spark.conf.set(zone, "UTC")
    assert not spark.catalog.tableExists("ours")
    assert spark.range(3).count() == 3
    assert capsys.readouterr() == ("", "")


def in_a_new_process(folder: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path[:0] = {sys.path!r}\nfrom migrate_groups.spark.session import *\n"
    return subprocess.run(
        [sys.executable, "-c", start + program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_missing_java_is_a_one_line_error(tmp_path: Path) -> None:
    """Without Java, Spark's start fails with one line that says that Java 17 is needed, and nothing else is printed."""
    program = "try: local_session()\nexcept Exception as error: print(type(error).__name__, error)"
    done = in_a_new_process(tmp_path, program, PATH="/usr/bin:/bin", JAVA_HOME=str(tmp_path / "nothing"))
    assert done.stdout.startswith("MissingDependency Spark can't start: it needs Java 17 or newer")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_missing_pyspark_is_a_one_line_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PySpark, the error contains the command that installs it."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingDependency, match=re.escape(INSTALL_SPARK)):
        local_session()


def test_install_command_has_the_requirements_of_the_extra() -> None:
    """The install command in the error for a missing PySpark has the requirements of the extra in pyproject.toml."""
    extra = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "spark"
    ]
    assert f"run pip install {' '.join(map(repr, extra))}" == INSTALL_SPARK


def test_spark_that_cannot_start_is_a_one_line_error(tmp_path: Path) -> None:
    """If Spark's Java process ends while it starts, for example without a writable folder, the error is one line."""
    program = "try: local_session(small=True)\nexcept Exception as error: print(type(error).__name__, error)"
    done = in_a_new_process(tmp_path, program, **{**os.environ, "SPARK_LOCAL_DIRS": "/proc/nope"})
    assert done.stdout.startswith("MissingDependency Spark can't start: Spark's Java process has ended")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_ctrl_c_during_a_job_ends_the_jvm() -> None:
    """Ctrl-C during a Spark job also ends the JVM, although Java ignores the signal.

    Neither Spark nor Java prints anything.
    """
    program = f"""
import sys, threading, time
sys.path[:0] = {sys.path!r}
from migrate_groups.cli.spark_here import spark_here

def tell(tracker):
    while not tracker.getActiveJobsIds():
        time.sleep(0.05)
    print("works", flush=True)

try:
    with spark_here(1) as spark:
        threading.Thread(target=tell, args=[spark.sparkContext.statusTracker()], daemon=True).start()
        spark.range(10**13).selectExpr("max(id)").collect()
except KeyboardInterrupt:
    print("interrupted")
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "works\n"
        jvms = children_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    said = [line for line in err.splitlines() if "tasks of Spark's stage" not in line]  # our own line on a slow machine
    assert (out, said) == ("interrupted\n", ["starting Spark on this machine"])
    assert jvms
    assert all(gone(jvm) for jvm in jvms)


def test_stages_are_shown_until_ctrl_c() -> None:
    """If stderr is not a terminal, the running Spark stage is printed as a line from time to time.

    After Ctrl-C no stage is printed.
    """
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
from migrate_groups.cli import progress_display
from migrate_groups.cli.spark_here import spark_here
progress_display._Lines.first = progress_display._Lines.pause = 0.01
try:
    with spark_here(1) as spark:
        spark.range(10**13).selectExpr("sum(id)").collect()
except KeyboardInterrupt:
    sys.stderr.write("interrupted\\n")
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], start_new_session=True, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        lines = [process.stderr.readline(), process.stderr.readline()]
        jvms = children_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        lines += process.communicate(timeout=120)[1].splitlines(keepends=True)
    assert lines[0] == "starting Spark on this machine\n"
    assert lines[-1] == "interrupted\n"
    stages = [re.fullmatch(r" +\d+ s  tasks of Spark's stage \d+: 0 of \d+\n", line) for line in lines[1:-1]]
    assert stages
    assert all(stages), lines
    assert jvms
    assert all(gone(jvm) for jvm in jvms)


def test_no_stage_is_shown_while_spark_is_idle(spark: SparkSession) -> None:
    """Between Spark jobs, the line of progress shows no Spark stage."""
    assert _stages(spark) is None


def test_spark_connect_shows_no_stages() -> None:
    """In a Spark Connect session, the line of progress shows no Spark stage, and no error is raised.

    Such a session has no SparkContext.
    """

    def unsupported(_: object) -> None:
        raise PySparkAttributeError("JVM_ATTRIBUTE_NOT_SUPPORTED")

    remote = type("Remote", (), {"sparkContext": property(unsupported)})()
    assert _stages(cast("SparkSession", remote)) is None


@pytest.mark.parametrize("module", JOB)
def test_jobs_use_only_what_every_cluster_has(module: str) -> None:
    """A module of the Spark jobs uses no Python UDF, and needs no package but PySpark.

    It uses neither sparkContext nor RDDs, because Spark Connect has none.
    """
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    optional = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any(ast.unparse(each.type or node) == "ImportError" for each in node.handlers)
        for each in node.body
        if isinstance(each, ast.Import)
        for name in each.names
    }
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not used & {"sparkContext", "rdd", "udf", "pandas_udf", "toPandas", "toArrow", "_jvm", "_jdf"}
    imports = {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    imports |= {
        name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert imports - optional <= {*sys.stdlib_module_names, "pyspark", "migrate_groups"}
    ours = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert not {name for name in ours if name.startswith("migrate_groups")} - {
        "migrate_groups",
        "migrate_groups.applications",
        "migrate_groups.errors",
        "migrate_groups.schema",
        "migrate_groups.spark",
        "migrate_groups.spark.offsets_topic",
        "migrate_groups.spark.reconciliation",
        "migrate_groups.spark.session",
        "migrate_groups.text",
        *(f"migrate_groups.spark.{name}" for name in JOB),
    }
