"""A source group on a broker, and the spec that splits it."""

from __future__ import annotations

from migrate_groups.model.partitions import TopicPartition
from tests.support.specs import split_spec


class Old:
    """A group ``big`` with committed offsets in two topics, and a spec that splits the group.

    Each topic has two partitions with ten records each.
    """

    def __init__(self, cli, world, *, stay: bool = False, options: str = "") -> None:
        self.world, self.group = world, world.name("big")
        self.pay, self.find = (world.create_topic(2, topic=world.name(what)) for what in ("pay", "find"))
        for topic in (self.pay, self.find):
            for partition in (0, 1):
                world.produce(topic, partition, 10)
                world.commit(self.group, TopicPartition(topic, partition), 4 + partition)
        targets = {self.pay_group: "pay-*"} | ({} if stay else {self.find_group: "find-*"})
        spec = split_spec(self.group, targets, stay=["find-*"] if stay else [])
        (cli.folder / "split.toml").write_text(f"{spec}{options}\n")

    @property
    def pay_group(self) -> str:
        return f"{self.group}-pay"

    @property
    def find_group(self) -> str:
        return f"{self.group}-find"

    def offsets(self, topic: str) -> dict[TopicPartition, int]:
        return {tp: offset for tp, offset in self.world.committed(self.group).items() if tp.topic == topic}
