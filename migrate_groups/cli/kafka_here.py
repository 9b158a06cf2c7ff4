"""Options of the commands sandbox and demo that say which Kafka they run, and the search for its jars."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate_groups.cli.progress import fetch_bar
from migrate_groups.sandbox.versions import DOWNLOAD_MB, VERSIONS

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
Mirror = Annotated[
    str | None,
    typer.Option(
        "--mirror",
        metavar="URL",
        envvar="MIGRATE_GROUPS_MAVEN_MIRROR",
        help="A Maven repository to fetch Kafka from.",
        show_default="Maven Central",
    ),
]


def find_kafka(*, version: str, home: Path | None, mirror: str | None) -> tuple[KafkaJars, Java]:
    """Return the jars of a Kafka and a Java that runs them.

    home: the folder of a Kafka distribution, whose jars are used. If None, the jars of ``version`` come from the user's
    cache. If the cache lacks them, they are fetched first, and the progress is shown. mirror: the URL of the Maven
    repository to fetch from; None: Maven Central.

    Raises `MissingDependency` if Java 17 or a package of the pip extra ``spark`` is not installed; `UsageError` if
    ``home`` or ``version`` is wrong; `ClusterUnavailable` if the jars can't be fetched.
    """
    from migrate_groups.sandbox.jars import fetch_jars, jars_of_distribution, user_cache
    from migrate_groups.sandbox.java import find_java

    java = find_java(os.environ)
    if home:
        return jars_of_distribution(home, cache=user_cache()), java
    with fetch_bar(f"Kafka {version}", DOWNLOAD_MB) as report:
        return fetch_jars(java=java, cache=user_cache(), version=version, mirror=mirror, report=report), java
