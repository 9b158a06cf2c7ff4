"""Real servers of Spark on loopback: a standalone master with two workers, in a process each; and Spark Connect."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyspark

from migrate_groups.spark.session import QUICK_START, SMALL_JOB

_SPARK = Path(pyspark.__file__).parent / "bin"
_PATIENCE_S = 240  # on a busy machine
# All processes listen on loopback only, also for their web pages. There is no REST server, because its port is fixed.
_ENVIRONMENT = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "1g",  # at most; Spark Connect does not start with less than half
    "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_START} -Dspark.master.rest.enabled=false",
    "PYSPARK_PYTHON": sys.executable,
}
# Expressions are interpreted, because compiling them takes longer than a few rows.
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK_START,
    **SMALL_JOB,
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCluster:
    """A running Spark cluster. url: the master's URL. workers: each worker's folder, with the logs of its executors."""

    url: str
    workers: tuple[Path, Path]

    def took_part(self) -> list[bool]:
        """Return for each worker whether it has run an executor."""
        return [any(worker.glob("app-*/*/stderr")) for worker in self.workers]


def submit(master: str, main: Path, *arguments: str, package: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the Python file ``main`` with ``spark-submit`` on a master, and return the completed process.

    master: the URL of the master. package: the wheel of this package, for ``--py-files``. cwd: the working directory.
    """
    settings = {
        **_SETTINGS,
        "spark.executor.extraJavaOptions": QUICK_START,
        "spark.executor.memory": "512m",
    }
    options = [option for item in settings.items() for option in ("--conf", "=".join(item))]
    command = [str(_SPARK / "spark-submit"), "--master", master, *options, "--py-files", str(package), str(main)]
    command += arguments
    with _process(*command, cwd=cwd) as process:
        out, err = process.communicate(timeout=_PATIENCE_S)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """Run a Spark cluster for the length of a ``with`` block. At its end kill all processes, even after an error."""
    with ExitStack() as stack:
        log = folder / "master.log"
        start = ("spark-class", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
        master = stack.enter_context(_daemon(*start, "--webui-port", "0", log=log))
        [url] = _logged(master, log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)", times=1)
        workers = (folder / "worker-1", folder / "worker-2")
        for work in workers:
            start = ("spark-class", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0")
            sizes = ("--cores", "1", "--memory", "512m", "--webui-port", "0", "--work-dir", str(work))
            stack.enter_context(_daemon(*start, *sizes, url, log=work.with_suffix(".log")))
        _logged(master, log, r"Registering worker (\S+)", times=2)
        yield SparkCluster(url=url, workers=workers)


@contextmanager
def connect_server(folder: Path, pyspark: Path) -> Iterator[str]:
    """Start a Spark Connect server on loopback, and yield its URL. pyspark: the folder of PySpark."""
    log = folder / "connect.log"
    settings = {
        **_SETTINGS,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    options = [option for item in settings.items() for option in ("--conf", "=".join(item))]
    main = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    start = (str(pyspark / "bin" / "spark-submit"), "--master", "local[2]", *options, *main)
    with log.open("w") as file, _process(*start, cwd=folder, stdout=file, stderr=file) as server:
        [port] = _logged(server, log, r"Spark Connect server started at: \S+:(\d+)", times=1)
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _daemon(script: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    with log.open("w") as file, _process(str(_SPARK / script), *arguments, stdout=file, stderr=file) as process:
        yield process


@contextmanager
def _process(
    *command: str,
    cwd: Path | None = None,
    stdout: int | IO[str] = subprocess.PIPE,
    stderr: int | IO[str] = subprocess.PIPE,
) -> Iterator[subprocess.Popen[str]]:
    """Run a process in a new process session. At the end kill the whole session, which includes Spark's executors."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **_ENVIRONMENT},
        text=True,
        start_new_session=True,
        stdout=stdout,
        stderr=stderr,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _logged(process: subprocess.Popen[str], log: Path, pattern: str, *, times: int) -> list[str]:
    """Wait until a process has logged a pattern ``times`` times. Return each match of the pattern's first group.

    log: the file to which the process logs.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while len(found := re.findall(pattern, log.read_text())) < times:
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {times} of {pattern!r}:\n{log.read_text()}")
        time.sleep(0.1)
    return found
