"""Run MirrorMaker 2 between two sandboxes. It copies topics, and translates the committed offsets of groups."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from migrate_groups.sandbox.fetch import Fetch
from migrate_groups.sandbox.ivy import FetchProgress, Ivy
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.node import JVM_OPTIONS

_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
_SECONDS_TO_END = 20.0
# Few seconds instead of minutes: topics, groups and offsets of a sandbox change while somebody watches.
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
) -> tuple[Path, ...]:
    """Return the jars of MirrorMaker 2 from its folder below ``cache``; fetch them first if they are missing.

    The arguments and the errors are those of `fetch_jars`.
    """

    def retrieve(ivy: Ivy, new: Path) -> set[str]:
        ivy.retrieve("org.apache.kafka", "connect-mirror", version, new, transitive=True)
        for api in list(new.glob("slf4j-api-*.jar")):
            ivy.retrieve("org.slf4j", "slf4j-simple", api.stem.removeprefix("slf4j-api-"), new)
        return {f"connect-mirror-{version}", f"connect-mirror-client-{version}", f"connect-runtime-{version}"}

    folder = cache / "kafka" / f"mirror-maker-{version}"
    return Fetch(java=java, mirror=mirror, report=report).jars(folder, f"MirrorMaker {version}", retrieve)


@dataclass(slots=True, kw_only=True)
class MirrorMaker:
    """A MirrorMaker 2 from one cluster to another one, and its log. `kill` and `start` make it fail and come back."""

    command: tuple[str, ...]
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Start the process, and do not wait until it copies."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """Kill the process, as ``kill -9`` does, and wait until it has ended."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop the process with SIGTERM; kill it if it has not ended after 20 s."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def mirror_maker(
    jars: tuple[Path, ...], source: str, target: str, *, java: Java, settings: Mapping[str, str]
) -> Iterator[MirrorMaker]:
    """Run MirrorMaker 2 for the length of a ``with`` block; it is killed at the end.

    source, target: the bootstrap servers of both clusters, whose aliases are ``source`` and ``target``. settings:
    properties that replace or complement those of the sandbox.
    """
    with TemporaryDirectory(prefix="migrate-groups-mirror-") as folder:
        given = {
            "clusters": "source, target",
            "source.bootstrap.servers": source,
            "target.bootstrap.servers": target,
            **_SETTINGS,
            **settings,
        }
        properties = Path(folder, "mirror.properties")
        properties.write_text("".join(f"{key}={value}\n" for key, value in given.items()), encoding="utf-8")
        options = (*JVM_OPTIONS, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        classpath = os.pathsep.join(map(str, jars))
        running = MirrorMaker(
            command=(str(java.executable), *options, "-cp", classpath, _CLASS, str(properties)),
            log=Path(folder, "mirror.log"),
        )
        running.start()
        try:
            yield running
        finally:
            running.kill()
