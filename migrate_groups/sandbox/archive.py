"""Make class-data archives (JEP 350): files of loaded Java classes, with which Kafka starts in about half the time.

Each archive is for one Kafka version and one Java.
"""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

from filelock import FileLock

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.kept import Ended
from migrate_groups.sandbox.node import JVM_OPTIONS, run_node

_PATIENCE_S = 60


def archive_options(kafka: KafkaJars, *, java: Java) -> tuple[str, ...]:
    """Return the JVM options with which Kafka starts from its class-data archive, in about half the time.

    A missing archive is made first (some 7 s, once for this Kafka and this Java). If it can't be made, no options are
    returned, because Kafka also starts without it.
    """
    archive = kafka.archives / f"classes-{_key(kafka, java)}.jsa"
    try:
        if not archive.exists():
            archive.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(archive.with_suffix(".lock")):
                if not archive.exists():
                    _make(archive, kafka, java)
        # An empty file marks a failed attempt, so that not every start tries again.
        return (f"-XX:SharedArchiveFile={archive}",) if archive.stat().st_size else ()
    except (OSError, ClusterUnavailable):
        return ()


def _key(kafka: KafkaJars, java: Java) -> str:
    """Return a hash for an archive's file name: of the Java build, the JVM options, and the jars as last modified.

    Another Java, option or jar gives another file name, because the JVM refuses an archive whose jars have changed.
    """
    jars = [f"{jar} {jar.stat().st_mtime_ns}" for jar in kafka.jars]
    return hashlib.sha256("\n".join([java.build, *JVM_OPTIONS, *jars]).encode()).hexdigest()[:12]


def _make(archive: Path, kafka: KafkaJars, java: Java) -> None:
    """Start and stop a Kafka, whose JVM writes the archive when it exits; make an empty file if the JVM writes none."""
    new = archive.with_suffix(".partial")
    new.unlink(missing_ok=True)
    with run_node(kafka, java=java, timeout=_PATIENCE_S, serve_options=[f"-XX:ArchiveClassesAtExit={new}"]) as node:
        os.kill(node.pid, signal.SIGTERM)
        end = node.kept.hear(_PATIENCE_S)
    if isinstance(end, Ended) and end.exit_code == 128 + signal.SIGTERM and new.exists():
        new.rename(archive)
    else:
        archive.touch()
