"""Fetch a module and its dependencies with Apache Ivy, whose jar PySpark ships."""

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

# These settings replace Ivy's defaults. By default Ivy waits forever for a server that has stopped sending, assumes
# that a module has no dependencies if its description can't be fetched, and asks for sources and documentation.
# The lock is needed because an Ivy whose caller was killed may still download into the same cache.
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
    """The jars that a fetch has found and downloaded so far. ``found`` grows while Ivy follows dependencies."""

    found: int = 0
    downloaded: int = 0


@dataclass(slots=True, kw_only=True)
class Ivy:
    """Runs Apache Ivy with a cache below ``folder``; an interrupted fetch resumes from this cache.

    ``mirror`` is the URL of a Maven repository to use instead of Maven Central; ``report`` is called after each step.
    """

    java: Java
    folder: Path
    mirror: str | None
    report: Callable[[FetchProgress], None]
    found: int = 0
    downloaded: int = 0

    def retrieve(self, organisation: str, name: str, revision: str, into: Path, *, transitive: bool = False) -> None:
        """Put a module's jar, and with ``transitive`` its dependencies, into the folder ``into``.

        Raises ClusterUnavailable with the modules that could not be fetched, MissingDependency without PySpark.
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
                "finished downloads are kept: run this again to resume, behind a firewall with --mirror URL"
            )

    def _run(self, *arguments: str) -> list[str] | None:
        """Run Ivy; return the lines of its output if it failed, else None."""
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
    """Return the modules that Ivy failed to fetch, and the first reason that it gives, for an error message.

    If that is only the module ``asked_for``, and Ivy gives no reason, return the two that are possible.
    """
    failed = dict.fromkeys(":".join(found.groups()) for line in said if (found := _FAILED.match(line)))
    reason = next((next(filter(None, found.groups())) for line in said if (found := _REASON.search(line))), None)
    if [*failed] == [asked_for] and not reason:
        return ": no such version, or the repository was not reached"
    return (f", because of {', '.join(failed)}" if failed else "") + (f" ({reason})" if reason else "")


def pyspark_jars() -> list[Path]:
    """Return the jars that PySpark ships, sorted; none without PySpark."""
    spark = importlib.util.find_spec("pyspark")
    folders = spark.submodule_search_locations if spark else None
    return sorted(jar for folder in folders or () for jar in Path(folder, "jars").glob("*.jar"))


def _ivy_jar() -> Path:
    for jar in pyspark_jars():
        if jar.name.startswith("ivy-"):
            return jar
    raise MissingDependency(f"fetching Kafka needs PySpark, which is not installed: {INSTALL_SPARK}")
