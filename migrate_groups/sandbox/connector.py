"""Spark's own connector to Kafka, as jars that go with the PySpark that is installed."""

from __future__ import annotations

import re
from pathlib import Path

from migrate_groups.errors import INSTALL_SPARK, MissingDependency
from migrate_groups.sandbox.fetch import Fetch
from migrate_groups.sandbox.ivy import Ivy, pyspark_jars

DOWNLOAD_MB = 70  # of which 10 are kept: PySpark has the rest


def connector_version() -> tuple[str, str]:
    """Return the versions of Scala and of Spark that this PySpark has. Raises MissingDependency without PySpark."""
    for jar in pyspark_jars():
        if found := re.fullmatch(r"spark-core_(\d+\.\d+)-(\d[\w.-]*)\.jar", jar.name):
            return found[1], found[2]
    raise MissingDependency(f"Spark is not installed: {INSTALL_SPARK}")


def fetch_connector(fetch: Fetch, *, cache: Path) -> tuple[Path, ...]:
    """Return the connector's jars below ``cache``, without those that PySpark has. Raises as `Fetch.jars`."""
    scala, version = connector_version()

    def retrieve(ivy: Ivy, new: Path) -> set[str]:
        names = [f"spark-{name}-0-10_{scala}" for name in ("sql-kafka", "token-provider-kafka")]
        ivy.retrieve("org.apache.spark", names[0], version, new, transitive=True)
        there = {jar.name for jar in pyspark_jars()}
        for jar in list(new.glob("*.jar")):
            if jar.name in there:
                jar.unlink()
        return {f"{name}-{version}" for name in names}

    return fetch.jars(cache / "spark-kafka" / f"{version}-{scala}", f"Spark's Kafka connector {version}", retrieve)
