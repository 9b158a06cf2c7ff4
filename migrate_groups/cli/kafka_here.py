"""Find the Kafka that the commands sandbox and demo run; the options that say which one."""

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
    """Return Kafka's jars and a Java that runs them.

    The jars are those of the Kafka distribution in ``home``, if given. Otherwise they come from this user's cache, and
    are fetched first, with visible progress, if it lacks this version.
    """
    from migrate_groups.sandbox.jars import fetch_jars, jars_of_distribution, user_cache
    from migrate_groups.sandbox.java import find_java

    java = find_java(os.environ)
    if home:
        return jars_of_distribution(home, cache=user_cache()), java
    with fetch_bar(f"Kafka {version}", DOWNLOAD_MB) as report:
        return fetch_jars(java=java, cache=user_cache(), version=version, mirror=mirror, report=report), java
