"""Options of the commands sandbox and demo that say which Kafka they run, and the search for its jars."""

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

    home: the folder of a Kafka distribution, whose jars are used. If None, the jars of ``version`` come from the user's
    cache. If the cache lacks them, they are fetched first, and the progress is shown. maven_mirror: the URL of the
    Maven repository to fetch from; None: Maven Central.

    Raises `MissingDependency` if Java 17 or a package of the pip extra ``spark`` is not installed; `UsageError` if
    ``home`` or ``version`` is wrong; `ClusterUnavailable` if the jars can't be fetched.
    """
    from migrate_groups.sandbox.jars import fetch_jars, jars_of_distribution, user_cache
    from migrate_groups.sandbox.java import find_java

    java = find_java(os.environ)
    if home:
        return jars_of_distribution(home, cache=user_cache()), java
    with fetch_bar(f"Kafka {version}", DOWNLOAD_MB) as report:
        return fetch_jars(java=java, cache=user_cache(), version=version, mirror=maven_mirror, report=report), java


def find_mirror_maker(kafka: KafkaJars, java: Java, *, home: Path | None, maven_mirror: str | None) -> KafkaJars:
    """Return the jars of MirrorMaker 2, in the same version as ``kafka``.

    home: the folder of the Kafka distribution whose jars ``kafka`` names. MirrorMaker 2 is among them, so ``kafka`` is
    returned. If None, the jars come from the user's cache, or are fetched first. maven_mirror: the URL of
    the Maven repository to fetch from; None: Maven Central. Raises `ClusterUnavailable` if the jars can't be fetched;
    `UsageError` if the cache can't be written.
    """
    from migrate_groups.sandbox.jars import user_cache
    from migrate_groups.sandbox.mirror_maker import fetch_mirror_jars

    if home:
        return kafka
    with fetch_bar("MirrorMaker 2", MIRROR_MAKER_MB) as report:
        return fetch_mirror_jars(
            java=java, cache=user_cache(), version=kafka.version, mirror=maven_mirror, report=report
        )
