"""Start a Kafka for a script. Importing this module lets the script import the modules of the tests, too."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # this checkout, and its tests

from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars, fetch_jars, user_cache
from migrate_groups.sandbox.java import Java, find_java


def kafka() -> tuple[Java, KafkaJars]:
    """Return the Java of this machine, and Kafka's jars, which are downloaded once."""
    java = find_java(os.environ)
    mirror = os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR")
    return java, fetch_jars(java=java, cache=user_cache(), mirror=mirror)


@contextmanager
def sandbox(**options: Any) -> Iterator[Sandbox]:
    """Run a Kafka for the length of a ``with`` block. ``options`` are those of `start_sandbox`."""
    java, jars = kafka()
    with start_sandbox(jars, java=java, **options) as running:
        yield running
