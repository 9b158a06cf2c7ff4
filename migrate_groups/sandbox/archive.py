"""Make class-data archives (JEP 350): files of loaded Java classes, with which Kafka starts in about half the time."""

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
from migrate_groups.sandbox.node import JVM_OPTIONS, Setup, run_nodes

_PATIENCE_S = 60


def archive_options(kafka: KafkaJars, *, java: Java) -> tuple[str, ...]:
    """Return the JVM options with which Kafka starts faster, from a class-data archive (JEP 350).

    A missing archive is made first, in some 7 s. The result is empty if the archive can't be made.
    """
    # The JVM refuses an archive that was made with other jars.
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
    """Return a hash of the Java build, the JVM options, and the paths and modification times of the jars."""
    jars = [f"{jar} {jar.stat().st_mtime_ns}" for jar in kafka.jars]
    return hashlib.sha256("\n".join([java.build, *JVM_OPTIONS, *jars]).encode()).hexdigest()[:12]


def _make(archive: Path, kafka: KafkaJars, java: Java) -> None:
    """Run Kafka once, so that the JVM writes a class-data archive (JEP 350) to the path ``archive``.

    If the JVM writes no archive, an empty file is left at this path.
    """
    new = archive.with_suffix(".partial")
    new.unlink(missing_ok=True)
    options = [f"-XX:ArchiveClassesAtExit={new}"]
    with run_nodes(1, kafka, java=java, setup=Setup(), timeout=_PATIENCE_S, serve_options=options) as (node,):
        os.kill(node.pid, signal.SIGTERM)
        end = node.kept.hear(_PATIENCE_S)
    if isinstance(end, Ended) and end.exit_code == 128 + signal.SIGTERM and new.exists():
        new.rename(archive)
    else:
        archive.touch()
