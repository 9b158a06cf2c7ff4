from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import migrate_groups.spark
from migrate_groups.cli.spark_here import spark_here
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


def test_the_session_is_utc_strict_and_local(spark: SparkSession) -> None:
    """The session has the settings that results depend on, and those that keep it off the network."""
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.master": "local[*]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    assert {name: spark.conf.get(name) for name in settings} == settings


def test_a_second_session_is_the_first(spark: SparkSession) -> None:
    """A second session shares the JVM of the first, because a process has one."""
    assert local_session().sparkContext is spark.sparkContext


def test_a_command_borrows_the_callers_session(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """A command has its own settings and views; the caller's session keeps its own, stays active, and runs on."""
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


def test_a_missing_java_is_one_line(tmp_path: Path) -> None:
    """Without Java the error says what to install, and nothing else is printed."""
    program = "try: local_session()\nexcept Exception as error: print(type(error).__name__, error)"
    done = in_a_new_process(tmp_path, program, PATH="/usr/bin:/bin", JAVA_HOME=str(tmp_path / "nothing"))
    assert done.stdout.startswith("MissingDependency Spark can't start: it needs Java 17 or newer")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_missing_pyspark_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PySpark the error has the command that installs it, for a package that is on no index, too."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingDependency, match=re.escape(INSTALL_SPARK)):
        local_session()


def test_the_command_that_installs_spark_is_that_of_the_extra() -> None:
    """The install command has the requirements of the extra in pyproject.toml."""
    extra = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "spark"
    ]
    assert f"run pip install {' '.join(map(repr, extra))}" == INSTALL_SPARK


def test_an_environment_that_spark_cannot_start_in_is_one_line(tmp_path: Path) -> None:
    """If Spark's Java process ends at the start, as without writable folders, the error is one line."""
    program = "try: local_session(small=True)\nexcept Exception as error: print(type(error).__name__, error)"
    done = in_a_new_process(tmp_path, program, **{**os.environ, "SPARK_LOCAL_DIRS": "/proc/nope"})
    assert done.stdout.startswith("MissingDependency Spark can't start: Spark's Java process has ended")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_an_interrupt_within_a_job_ends_the_jvm_as_well() -> None:
    """Ctrl-C, which Java ignores, ends the JVM as well, and neither Spark nor Java prints anything."""
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
from migrate_groups.cli.spark_here import spark_here
try:
    with spark_here(1) as spark:
        print("works", flush=True)
        spark.range(10**13).selectExpr("sum(id)").collect()
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
        process.stdout.readline()
        jvms = children_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (out, err) == ("interrupted\n", "starting Spark on this machine\n")
    assert jvms
    assert all(gone(jvm) for jvm in jvms)


@pytest.mark.parametrize("module", JOB)
def test_jobs_run_everywhere(module: str) -> None:
    """A job uses no Python UDF, no sparkContext or RDD (for Spark Connect), and no import that workers lack."""
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not used & {"sparkContext", "rdd", "udf", "pandas_udf", "toPandas", "toArrow", "_jvm", "_jdf"}
    imports = {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    imports |= {
        name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert imports <= {*sys.stdlib_module_names, "pyspark", "migrate_groups"}
    ours = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert not {name for name in ours if name.startswith("migrate_groups")} - {
        "migrate_groups",
        "migrate_groups.errors",
        "migrate_groups.schema",
        "migrate_groups.spark",
        "migrate_groups.spark.offsets_topic",
        "migrate_groups.spark.reconciliation",
        "migrate_groups.spark.session",
        "migrate_groups.text",
        *(f"migrate_groups.spark.{name}" for name in JOB),
    }
