"""Kafka's own jars: fetched once into the user's cache, or those of an unpacked distribution."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import is_zipfile

from filelock import FileLock
from platformdirs import user_cache_path

from migrate_groups.errors import ClusterUnavailable, UsageError
from migrate_groups.sandbox.ivy import Ivy, Progress
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.versions import DEFAULT_VERSION

_COMPLETE = "complete.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaJars:
    """The jars of one version of Kafka.

    ``archives`` is the folder for class-data archives made from these jars; ``jvm_options`` are what these jars need,
    so that they log warnings and errors to stderr and nothing to stdout.
    """

    version: str
    jars: tuple[Path, ...]
    archives: Path
    jvm_options: tuple[str, ...]

    @property
    def classpath(self) -> str:
        """The jars as one string for ``java -cp``, always in the same order."""
        return os.pathsep.join(map(str, self.jars))


def user_cache() -> Path:
    """Return this user's cache folder for this program (reads the environment: for ``cli/`` and tests)."""
    return user_cache_path("migrate-groups", appauthor=False)


def fetch_jars(
    *,
    java: Java,
    cache: Path,
    version: str = DEFAULT_VERSION,
    mirror: str | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> KafkaJars:
    """Return the jars below ``cache``, fetched from Maven Central or ``mirror`` (a URL) if they are not there yet.

    ``report`` is called only if something is fetched, at once and then at each step. A fetch that fails or is killed
    leaves nothing that is ever used as Kafka, and the next one resumes it.

    Raises ClusterUnavailable (a download failed), UsageError (no version, or a cache that can't be written) and
    MissingDependency (no PySpark, which brings Ivy).
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise UsageError(f"{version!r} is not a version of Kafka: write one like {DEFAULT_VERSION}")
    folder = cache / "kafka" / version
    try:
        if not _complete(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(folder.with_name(f"{version}.lock")):
                if not _complete(folder):
                    _fetch(folder, java=java, version=version, mirror=mirror, report=report)
    except OSError as error:
        raise UsageError(f"the jars of Kafka can't be kept in {folder}: {error.strerror or error}") from error
    return KafkaJars(
        version=version,
        jars=tuple(sorted(folder.glob("*.jar"))),
        archives=folder,
        jvm_options=("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",),
    )


def jars_of_distribution(kafka_home: Path, *, cache: Path) -> KafkaJars:
    """Return the jars of an unpacked Kafka distribution. Raises UsageError if ``kafka_home`` is none."""
    jars = tuple(sorted(kafka_home.absolute().glob("libs/*.jar")))
    versions = [found[1] for jar in jars if (found := re.fullmatch(r"kafka_2\.\d+-(\d[\w.-]*)\.jar", jar.name))]
    if len(versions) != 1:
        raise UsageError(f"{kafka_home} is no unpacked Kafka distribution: it has no libs/kafka_2.x-VERSION.jar")
    config = kafka_home.absolute() / "config"
    return KafkaJars(
        version=versions[0],
        jars=jars,
        archives=cache / "kafka",
        jvm_options=(
            f"-Dlog4j.configuration={(config / 'tools-log4j.properties').as_uri()}",
            f"-Dlog4j2.configurationFile={(config / 'tools-log4j2.yaml').as_uri()}",
        ),
    )


def _fetch(folder: Path, *, java: Java, version: str, mirror: str | None, report: Callable[[Progress], None]) -> None:
    """Retrieve all jars beside ``folder``, and give them its name when all are there."""
    work = folder.with_name(f"{version}.partial")
    work.mkdir(exist_ok=True)
    report(Progress())
    new = Path(tempfile.mkdtemp(prefix="jars-", dir=work))
    ivy = Ivy(java=java, folder=work, mirror=mirror, report=report)
    ivy.retrieve("org.apache.kafka", "kafka_2.13", version, new, transitive=True)
    ivy.retrieve("org.apache.kafka", "kafka-tools", version, new)
    # The modules log through slf4j and bring no implementation of it: a broker that fails would say nothing.
    for api in list(new.glob("slf4j-api-*.jar")):
        ivy.retrieve("org.slf4j", "slf4j-simple", api.stem.removeprefix("slf4j-api-"), new)
    _check(new, version)
    sizes = {jar.name: jar.stat().st_size for jar in new.glob("*.jar")}
    (new / _COMPLETE).write_text(json.dumps(sizes, indent=1, sort_keys=True), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    shutil.rmtree(work, ignore_errors=True)


def _check(folder: Path, version: str) -> None:
    """Refuse what is not all of Kafka, whatever Ivy says: a mirror may answer with a page of its own."""
    wanted = {f"kafka_2.13-{version}", f"kafka-clients-{version}", f"kafka-tools-{version}"}
    damaged = [jar.name for jar in sorted(folder.glob("*.jar")) if not is_zipfile(jar)]
    missing = sorted(wanted - {jar.stem for jar in folder.glob("*.jar")})
    if damaged or missing:
        raise ClusterUnavailable(
            f"Kafka {version} was not fetched whole (damaged or missing: {', '.join(damaged + missing)}): "
            f"look at the mirror, and delete {folder.parent}"
        )


def _complete(folder: Path) -> bool:
    """Say whether every jar that was fetched is still there, whole."""
    try:
        sizes = json.loads((folder / _COMPLETE).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False
