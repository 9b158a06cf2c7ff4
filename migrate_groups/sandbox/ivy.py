"""Fetch a Maven module and its dependencies with Apache Ivy, whose jar is part of PySpark."""

from __future__ import annotations

import html
import importlib.util
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import INSTALL_SPARK, ClusterUnavailable, MissingDependency
from migrate_groups.sandbox.java import Java

# Ivy's defaults do not fit: Ivy waits forever for a server that has stopped sending, assumes that a module has no
# dependencies if its description can't be fetched, and fetches sources and documentation. The lock is needed because an
# Ivy whose caller was killed may still download into the same cache.
_SETTINGS = """\
<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <settings defaultResolver="repository"/>
  <caches defaultCacheDir="{cache}" lockStrategy="artifact-lock-nio"/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="15000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="repository" m2compatible="true" descriptor="required" timeoutConstraint="patient"{root}/>
  </resolvers>
</ivysettings>
"""
_FAILED = re.compile(r"^\s*:: (\S+)#(\S+);([^\s:!]+)[:!]")
_REASON = re.compile(r"\(java[\w.]*\.(\w+: [^)]*)\)|SERVER ERROR: (.*?) url=|\[FAILED +\] \S+ (.*?) for http")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchProgress:
    """The numbers of jars that a download has found and downloaded so far.

    found: grows until all dependencies are resolved.
    """

    found: int = 0
    downloaded: int = 0


@dataclass(slots=True, kw_only=True)
class Ivy:
    """Runs Apache Ivy, which downloads jars from a Maven repository.

    folder: the folder of Ivy's cache, from which an interrupted download resumes. mirror: the URL of a Maven
    repository; None: Maven Central. report: called with the progress. found, downloaded: the numbers of jars so far.
    """

    java: Java
    folder: Path
    mirror: str | None
    report: Callable[[FetchProgress], None]
    found: int = 0
    downloaded: int = 0

    def retrieve(self, organisation: str, name: str, revision: str, into: Path, *, transitive: bool = False) -> None:
        """Download the jar of a Maven module into the folder ``into``.

        transitive: also download the jars of its dependencies. Raises `ClusterUnavailable` if a module can't be
        fetched; `MissingDependency` if PySpark, which contains Ivy, is not installed.
        """
        root = f' root="{html.escape(self.mirror)}"' if self.mirror else ""
        settings = self.folder / "ivysettings.xml"
        settings.write_text(
            _SETTINGS.format(cache=html.escape(str(self.folder / "cache")), root=root), encoding="utf-8"
        )
        said = self._run(
            *["-settings", str(settings), "-dependency", organisation, name, revision, "-confs", "default"],
            *["-retrieve", f"{into}/[artifact]-[revision].[ext]", *([] if transitive else ["-notransitive"])],
        )
        if said is not None:
            module = f"{organisation}:{name}:{revision}"
            raise ClusterUnavailable(
                f"{module} could not be fetched{_why(said, module)}; "
                "finished downloads are kept: run this again to resume, behind a firewall with --maven-mirror URL"
            )

    def _run(self, *arguments: str) -> list[str] | None:
        """Run Ivy with these arguments. Return None if it succeeded, else the lines of its output."""
        said = []
        command = [str(self.java.executable), "-XX:TieredStopAtLevel=1", "-jar", str(_ivy_jar()), *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                for line in process.stdout or ():
                    said.append(line)
                    self.found += line.startswith("\tfound ")
                    self.downloaded += line.startswith("\t[SUCCESSFUL ]")
                    self.report(FetchProgress(found=self.found, downloaded=self.downloaded))
            except BaseException:
                process.kill()
                raise
        return said if process.returncode else None


def _why(said: Iterable[str], asked_for: str) -> str:
    """Return the end of an error message: which modules Ivy could not fetch, and why.

    said: the lines of Ivy's output. asked_for: the requested module, as ``organisation:name:version``. The result is
    empty if the output names no module and no reason.
    """
    failed = dict.fromkeys(":".join(found.groups()) for line in said if (found := _FAILED.match(line)))
    reason = next((next(filter(None, found.groups())) for line in said if (found := _REASON.search(line))), None)
    if [*failed] == [asked_for] and not reason:
        return ": no such version, or the repository was not reached"
    return (f", because of {', '.join(failed)}" if failed else "") + (f" ({reason})" if reason else "")


def pyspark_jars() -> list[Path]:
    """Return the paths of the jars that are part of PySpark, sorted; empty if PySpark is not installed."""
    spark = importlib.util.find_spec("pyspark")
    folders = spark.submodule_search_locations if spark else None
    return sorted(jar for folder in folders or () for jar in Path(folder, "jars").glob("*.jar"))


def _ivy_jar() -> Path:
    for jar in pyspark_jars():
        if jar.name.startswith("ivy-"):
            return jar
    raise MissingDependency(f"fetching Kafka needs PySpark, which is not installed: {INSTALL_SPARK}")
