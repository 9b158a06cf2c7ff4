"""A topic on two clusters, and a group that has committed on the first one."""

from __future__ import annotations

import json
import time
from typing import Any

from confluent_kafka import Message

from migrate_groups.model.partitions import TopicPartition
from tests.support.cli import Cli
from tests.support.mirror import Change, records, write

# In milliseconds since 1970: old records would be deleted by the retention, or share no order with those produced now.
NOW = int(time.time() * 1000) - 60_000


def unchanged(message: Message) -> bytes | None:
    """Copy a record as it is."""
    return message.value()


class Two:
    """A topic on both clusters, a group that has committed on the source, and a mirror of our own."""

    def __init__(self, source: Any, target: Any, cli: Cli) -> None:
        self.source, self.target = source, target
        self.cli = cli
        self.topic, self.group = source.name("orders"), source.name("group")

    def create(self, *, on_target: dict[str, str] | None = None, **config: str) -> None:
        """Create the topic on both clusters."""
        self.source.create_topic(1, topic=self.topic, **config)
        self.target.create_topic(1, topic=self.topic, **(on_target or config))

    def mirror(self, first: int = 0, last: int | None = None, change: Change = unchanged) -> None:
        """Copy the records from index ``first`` to ``last``."""
        found = records(self.source.bootstrap_servers, self.topic, 0)
        write(self.target.bootstrap_servers, self.topic, 0, found[first:last], change)

    def commit(self, offset: int, there: int | None = None) -> None:
        """Commit on the source and, unless None, on the target."""
        self.source.commit(self.group, TopicPartition(self.topic, 0), offset)
        if there is not None:
            self.target.commit(self.group, TopicPartition(self.topic, 0), there)

    def compare(self, *options: str, code: int) -> dict[str, Any]:
        """Return what ``compare --format json`` says of the partition."""
        done = self.cli("compare", self.group, "--format", "json", *options, code=code)
        (partition,) = json.loads(done.stdout)["partitions"]
        return dict(partition)

    def place(self, *options: str, code: int) -> tuple[str, int | None]:
        """Return the status and the place."""
        found = self.compare(*options, code=code)
        return found["status"], found["place"]
