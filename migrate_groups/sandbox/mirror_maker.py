"""Run MirrorMaker 2 between two Kafka clusters. It copies topics, and translates the committed offsets of groups."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from migrate_groups.errors import ClusterUnavailable
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
