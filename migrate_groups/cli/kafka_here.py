"""Options of ``sandbox`` and ``demo`` that choose a version of Kafka, and the search for its jars."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli.progress import fetch_bar
from migrate_groups.sandbox.versions import DOWNLOAD_MB, MIRROR_MAKER_MB, VERSIONS

if TYPE_CHECKING:
    from migrate_groups.sandbox.jars import KafkaJars
    from migrate_groups.sandbox.java import Java

KafkaVersion = Annotated[
    str,
    typer.Option(
        "--kafka-version",
        metavar="VERSION",
        help=f"The version of Kafka to fetch. Tested: {', '.join(VERSIONS)}.",
    ),
]
KafkaHome = Annotated[
    Path | None,
    typer.Option(
        "--kafka-home",
        metavar="FOLDER",
        envvar="MIGRATE_GROUPS_KAFKA_HOME",
        help="An unpacked Kafka distribution to use; nothing is fetched then.",
    ),
]
MavenMirror = Annotated[
    str | None,
    typer.Option(
        "--maven-mirror",
        metavar="URL",
        envvar="MIGRATE_GROUPS_MAVEN_MIRROR",
        help="A Maven repository to fetch Kafka from.",
        show_default="Maven Central",
    ),
]


def find_kafka(*, version: str, home: Path | None, maven_mirror: str | None) -> tuple[KafkaJars, Java]:
    """Return the jars of a Kafka and a Java that runs them.

    home: the folder of a Kafka distribution to use. If None, ``version`` is used, and downloaded if the user's cache
    lacks it.

    Raises `MissingDependency` if Java 17 or a package of the pip extra ``spark`` is missing, `UsageError` if ``home``
    or ``version`` is wrong, and `ClusterUnavailable` if the download fails.
    """
    from migrate_groups.sandbox.jars import fetch_jars, jars_of_distribution, user_cache
    from migrate_groups.sandbox.java import find_java

    java = find_java(os.environ)
    if home:
        return jars_of_distribution(home, cache=user_cache()), java
    with fetch_bar(f"Kafka {version}", DOWNLOAD_MB) as report:
        return fetch_jars(java=java, cache=user_cache(), version=version, mirror=maven_mirror, report=report), java


def find_mirror_maker(kafka: KafkaJars, java: Java, *, home: Path | None, maven_mirror: str | None) -> KafkaJars:
    """Return the jars of MirrorMaker 2 in the version of ``kafka``. They are downloaded if the user's cache lacks them.

    home: the folder of a Kafka distribution. If given, ``kafka`` is returned, because it includes MirrorMaker 2. Raises
    `ClusterUnavailable` if the download fails, and `UsageError` if the cache can't be written.
    """
    from migrate_groups.sandbox.jars import fetch_mirror_jars, user_cache

    if home:
        return kafka
    with fetch_bar("MirrorMaker 2", MIRROR_MAKER_MB) as report:
        return fetch_mirror_jars(
            java=java, cache=user_cache(), version=kafka.version, mirror=maven_mirror, report=report
        )
