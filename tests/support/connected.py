"""The command line in this process, connected to an in-memory cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext

import pytest

from migrate_groups.cli.connect import Connection
from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.migration.ports import Clients
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from tests.support.cli import CliHere
from tests.support.in_memory import InMemoryCluster
from tests.support.planning import handed_over

PARTITION = TopicPartition("t", 0)
SPEC = 'source = "old"\n[[target]]\ngroup = "new"\ntopics = ["t"]\n[options]\nsettle = "0s"\nguard = "1ms"\n'
APPLY = ("apply", "split.csv", "--settle", "0s", "--guard", "1ms", "--yes", "--receipt", "receipt.json")
MIGRATE = ("migrate", "split.toml", "--yes")


class Connected(CliHere):
    """The command line on an in-memory cluster. The group ``old`` has committed offset 5 in a log of 10 records."""

    def __init__(self, folder, monkeypatch, cluster: InMemoryCluster | None = None) -> None:
        super().__init__(folder)
        self.cluster = cluster or InMemoryCluster()
        self.cluster.create_topic("t", 1)
        self.cluster.produce("t", 0, 10)
        self.cluster.commit("old", PARTITION, 5)
        self.at_the_close = lambda: None
        tables.save(handed_over(self.cluster, "old", "new"), folder / "split.csv")
        (folder / "split.toml").write_text(SPEC)

        @contextmanager
        def open_writer(_):
            try:
                yield Clients(self.cluster, self.cluster)
            finally:
                self.at_the_close()

        monkeypatch.setattr(Connection, "open_reader", lambda _: nullcontext(self.cluster))
        monkeypatch.setattr(Connection, "open_writer", open_writer)

    def refuse_writes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the brokers refuse all later writes, but not the claims."""
        claim = self.cluster.alter

        def refuse(group, partitions):
            if group.startswith(journal_group("")):
                return claim(group, partitions)
            return dict.fromkeys(partitions, WriteAnswer(answer=Answer.REFUSED, error="NOT_LEADER"))

        monkeypatch.setattr(self.cluster, "alter", refuse)
        monkeypatch.setattr(self.cluster, "delete", refuse)

    def offset(self, group: str) -> int | None:
        found = self.cluster.offsets(group).get(PARTITION)
        return None if found is None else found.offset


def right_after(
    monkeypatch: pytest.MonkeyPatch, cluster: InMemoryCluster, method: str, act: Callable[[], object]
) -> None:
    """Let something happen right after each call of a method of the cluster, such as another client's commit."""
    original = getattr(cluster, method)

    def both(*arguments, **named):
        answers = original(*arguments, **named)
        act()
        return answers

    monkeypatch.setattr(cluster, method, both)
