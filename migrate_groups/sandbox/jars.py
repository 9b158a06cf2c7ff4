"""Find the jars of Kafka and MirrorMaker 2: download them once into the user's cache, or use a distribution's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import INSTALL_SPARK, MissingDependency, UsageError
from migrate_groups.sandbox.fetch import Fetch, Retrieve
from migrate_groups.sandbox.ivy import FetchProgress, Ivy
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.versions import DEFAULT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaJars:
    """The jars of one version of Kafka.

    archives: the folder for class-data archives (JEP 350), with which Kafka starts faster. jvm_options: Java options
    with which Kafka logs only warnings and errors, to stderr.
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
    """Return the path of this user's cache folder for this program. The folder may not exist yet.

    Raises `MissingDependency` if the package platformdirs is not installed.
    """
    try:
        from platformdirs import user_cache_path
    except ImportError:
        raise MissingDependency(
            f"the sandbox's cache needs platformdirs, which is not installed: {INSTALL_SPARK}"
        ) from None
    # This reads environment variables, so that only ``cli/`` and tests may call this function.
    return user_cache_path("migrate-groups", appauthor=False)


def fetch_jars(
    *,
    java: Java,
    cache: Path,
    version: str = DEFAULT_VERSION,
    mirror: str | None = None,
    report: Callable[[FetchProgress], None] = lambda progress: None,
) -> KafkaJars:
    """Return the jars of a Kafka version from a folder below ``cache``; download them first if they are missing.

    mirror: the URL of a Maven repository; None: Maven Central. report: called with the progress of a download.

    Raises `UsageError` if ``version`` is not a version number or the folder can't be written; `ClusterUnavailable` if a
    download fails; `MissingDependency` if PySpark, which contains the downloader, is not installed.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise UsageError(f"{version!r} is not a version of Kafka: pass a version such as {DEFAULT_VERSION}")
    folder = cache / "kafka" / version

    def retrieve(ivy: Ivy, new: Path) -> set[str]:
        ivy.retrieve("org.apache.kafka", "kafka_2.13", version, new, transitive=True)
        ivy.retrieve("org.apache.kafka", "kafka-tools", version, new)
        return {f"kafka_2.13-{version}", f"kafka-clients-{version}", f"kafka-tools-{version}"}

    return _fetched(Fetch(java=java, mirror=mirror, report=report), folder, "Kafka", version, retrieve)


def fetch_mirror_jars(
    *,
    java: Java,
    cache: Path,
    version: str,
    mirror: str | None = None,
    report: Callable[[FetchProgress], None] = lambda progress: None,
) -> KafkaJars:
    """Return the jars of MirrorMaker 2 from a folder below ``cache``; download them first if they are missing.

    version: of Kafka. mirror: the URL of a Maven repository; None: Maven Central. report: called with the progress of a
    download.

    Raises `UsageError` if the folder can't be written; `ClusterUnavailable` if a download fails; `MissingDependency` if
    PySpark, which contains the downloader, is not installed.
    """
    folder = cache / "kafka" / f"mirror-maker-{version}"

    def retrieve(ivy: Ivy, new: Path) -> set[str]:
        ivy.retrieve("org.apache.kafka", "connect-mirror", version, new, transitive=True)
        return {f"connect-mirror-{version}", f"connect-mirror-client-{version}", f"connect-runtime-{version}"}

    return _fetched(Fetch(java=java, mirror=mirror, report=report), folder, "MirrorMaker", version, retrieve)


def _fetched(fetch: Fetch, folder: Path, what: str, version: str, retrieve: Retrieve) -> KafkaJars:
    """Return the jars in ``folder``; download them first if they are missing, with an implementation of slf4j.

    what: the name of the jars in error messages. retrieve: as for `Fetch.jars`.
    """

    def with_logging(ivy: Ivy, new: Path) -> Collection[str]:
        expected = retrieve(ivy, new)
        # Kafka's modules log through slf4j, which logs nothing without an implementation such as slf4j-simple.
        for api in list(new.glob("slf4j-api-*.jar")):
            ivy.retrieve("org.slf4j", "slf4j-simple", api.stem.removeprefix("slf4j-api-"), new)
        return expected

    return KafkaJars(
        version=version,
        jars=fetch.jars(folder, f"{what} {version}", with_logging),
        archives=folder,
        jvm_options=("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",),
    )


def jars_of_distribution(kafka_home: Path, *, cache: Path) -> KafkaJars:
    """Return the jars of the unpacked Kafka distribution in the folder ``kafka_home``.

    cache: the user's cache folder. Raises `UsageError` if ``kafka_home/libs`` has no Kafka jar, or the jars of several
    Kafka versions.
    """
    jars = tuple(sorted(kafka_home.absolute().glob("libs/*.jar")))
    versions = [found[1] for jar in jars if (found := re.fullmatch(r"kafka_2\.\d+-(\d[\w.-]*)\.jar", jar.name))]
    if len(versions) != 1:
        raise UsageError(
            f"{kafka_home} has no libs/kafka_2.x-VERSION.jar: pass the folder of an unpacked Kafka distribution"
        )
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
