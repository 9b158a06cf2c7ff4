"""Run MirrorMaker 2 between two Kafka clusters. It copies topics, and translates the committed offsets of groups."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.sandbox.fetch import Fetch
from migrate_groups.sandbox.ivy import FetchProgress, Ivy
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.kept import Ended, KeptServer, ServerStarted, keep
from migrate_groups.sandbox.node import JVM_OPTIONS

_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
_PROPERTIES = "mirror.properties"
_SECONDS = 20.0
# Intervals of seconds instead of minutes, because topics, groups and offsets of a sandbox change quickly.
_SETTINGS = {
    "source->target.enabled": "true",
    "target->source.enabled": "false",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "refresh.topics.interval.seconds": "1",
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
}


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
        for api in list(new.glob("slf4j-api-*.jar")):
            ivy.retrieve("org.slf4j", "slf4j-simple", api.stem.removeprefix("slf4j-api-"), new)
        return {f"connect-mirror-{version}", f"connect-mirror-client-{version}", f"connect-runtime-{version}"}

    return KafkaJars(
        version=version,
        jars=Fetch(java=java, mirror=mirror, report=report).jars(folder, f"MirrorMaker {version}", retrieve),
        archives=folder,
        jvm_options=("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorMaker:
    """A MirrorMaker 2 process, which copies topics from one cluster to another."""

    kept: KeptServer

    def start(self) -> None:
        """Start the process again after it has ended. Does not wait until MirrorMaker 2 copies records.

        Raises `ClusterUnavailable` if the process does not start.
        """
        self.kept.serve_again()
        self.await_start()

    def await_start(self) -> None:
        """Wait until the process is started. Raises `ClusterUnavailable` if it does not start."""
        end = self.kept.hear(_SECONDS)
        if not isinstance(end, ServerStarted):
            raise ClusterUnavailable(f"MirrorMaker 2 could not be started ({end})")

    def kill(self) -> None:
        """Kill the process, as ``kill -9`` does, and wait until it has ended."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the process with SIGTERM, so that it can save its progress. Kill it if it has not ended after 20 s."""
        if not self._end(signal.SIGTERM):
            self.kill()

    def _end(self, number: int) -> bool:
        os.kill(self.kept.server_pid, number)
        return isinstance(self.kept.hear(_SECONDS), Ended)


@contextmanager
def mirror_maker(
    jars: KafkaJars, source: str, target: str, *, java: Java, settings: Mapping[str, str]
) -> Iterator[MirrorMaker]:
    """Run MirrorMaker 2 for the length of a ``with`` block; it is killed when the block or this process ends.

    source, target: the bootstrap servers of the two clusters, whose aliases are ``source`` and ``target``. settings:
    properties of MirrorMaker 2 to add or replace.
    """
    given = {
        "clusters": "source, target",
        "source.bootstrap.servers": source,
        "target.bootstrap.servers": target,
        **_SETTINGS,
        **settings,
    }
    properties = "".join(f"{key}={value}\n" for key, value in given.items())
    serve = [str(java.executable), *JVM_OPTIONS, *jars.jvm_options, "-cp", jars.classpath, _CLASS, _PROPERTIES]
    with keep(files={_PROPERTIES: properties}, prepare=[], serve=serve) as kept:
        running = MirrorMaker(kept=kept)
        running.await_start()
        yield running
