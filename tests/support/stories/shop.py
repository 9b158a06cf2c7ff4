"""Type the pages about the group ``shop``: its replay, and reconcile, audit and history after its split."""

from __future__ import annotations

import time

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import BrokerWorld
from tests.support.reader import Reader, commits_as_member, committed

SPEC = """source = "shop"
[[target]]
group = "billing"
topics = ["payments"]
[[target]]
group = "shipping"
topics = ["orders", "returns"]
"""
ALL = {"orders": [1200, 1200], "payments": [450, 450], "returns": [30]}
_THREE_HOURS_MS = 3 * 60 * 60 * 1000


def of_shop(reader: Reader) -> None:
    world = reader.starts()
    _produce(world)
    committed(world, "shop", ALL)
    _replay(reader, world)
    _split(reader, world)

    def same_groups() -> None:
        reader.type("rm after.parquet; migrate-groups snapshot shop -o after.parquet")

    reader.reads(
        "docs/reconcile.md", before={"before.parquet after.parquet$": same_groups}, codes={" later.parquet": 6}
    )
    world.commit("shop", TopicPartition("payments", 0), 443)
    reader.reads("docs/audit.md", codes={"audit-log": 6})
    committed(world, "replay", ALL)
    reader.reads("docs/history.md")


def _produce(world: BrokerWorld) -> None:
    """Append records, half of them three hours old. All records of the topic ``returns`` are three hours old."""
    long_ago = int(time.time() * 1000) - _THREE_HOURS_MS
    for topic, partitions, old, new in (("orders", 2, 600, 600), ("payments", 2, 225, 225), ("returns", 1, 30, 0)):
        world.create_topic(partitions, topic=topic)
        for number in range(partitions):
            world.produce(topic, number, old, timestamp=long_ago)
            world.produce(topic, number, new)


def _replay(reader: Reader, world: BrokerWorld) -> None:
    def consumed() -> None:
        committed(world, "replay", ALL)

    at = "migrate-groups rewind --group shop -o at.csv --to-datetime"
    reader.type(f"{at} 2026-11-20T02:30:00", code=2)
    reader.reads("docs/replay.md", before={"watch": consumed})


def _split(reader: Reader, world: BrokerWorld) -> None:
    """Hand ``shop`` over to two groups, which then commit offsets.

    In one partition they commit a lower offset than was handed over. In another they commit a higher, then a lower one.
    """
    committed(world, "shop", {"orders": [1100, 1150], "payments": [440, 445], "returns": [30]})
    (reader.folder / "split.toml").write_text(SPEC)
    reader.type("migrate-groups snapshot shop -o before.parquet")
    reader.type("migrate-groups split before.parquet --spec split.toml -o split.csv")
    reader.type("migrate-groups migrate split.toml")
    reader.type("migrate-groups snapshot billing shipping -o after.parquet")
    commits_as_member(world, "billing", {"payments": [445, 447]})
    commits_as_member(world, "shipping", {"orders": [1160, 1140]}, {"orders": [1130]})
    reader.type("migrate-groups snapshot billing shipping -o later.parquet")
