"""Start two Kafka clusters on this machine, and a MirrorMaker 2 that copies topics from one to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.kept import Ended
from migrate_groups.sandbox.mirror_maker import MirrorMaker, mirror_maker

GROUP_SYNC = {"source->target.sync.group.offsets.enabled": "true"}
"""The setting with which MirrorMaker 2 writes the offsets of groups without members, and lowers them, too."""
CAREFUL = {
    "source.consumer.isolation.level": "read_committed",
    "target.offset.flush.interval.ms": "1000",
    "target.producer.enable.idempotence": "true",
}
"""The settings that docs/two-clusters.md advises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredSandbox:
    """Two clusters of one broker each, and the MirrorMaker 2 that copies from ``source`` to ``target``."""

    source: Sandbox
    target: Sandbox
    maker: MirrorMaker

    def wait(self) -> None:
        """Wait until a broker or MirrorMaker 2 has ended, then raise `ClusterUnavailable`. This never returns."""
        processes = {
            "the source's Kafka": self.source.node.kept,
            "the target's Kafka": self.target.node.kept,
            "MirrorMaker 2": self.maker.kept,
        }
        while True:
            for name, kept in processes.items():
                if isinstance(end := kept.hear(0.5), Ended):
                    raise ClusterUnavailable(f"{name} has ended ({end}): run the command again")


@contextmanager
def start_mirrored(
    kafka: KafkaJars, mirror: KafkaJars, *, java: Java, settings: Mapping[str, str]
) -> Iterator[MirroredSandbox]:
    """Run two clusters and a MirrorMaker 2 for the length of a ``with`` block, which begins when both clusters answer.

    MirrorMaker 2 copies every topic, such as ``orders`` to ``source.orders``. The first records are copied some 10 to
    20 s after the block begins. settings: properties of MirrorMaker 2.

    Raises `ClusterUnavailable` if a process does not start.
    """
    with (
        start_sandbox(kafka, java=java) as source,
        start_sandbox(kafka, java=java) as target,
        mirror_maker(mirror, source.bootstrap_servers, target.bootstrap_servers, java=java, settings=settings) as maker,
    ):
        yield MirroredSandbox(source=source, target=target, maker=maker)
