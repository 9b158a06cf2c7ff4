"""``audit`` refuses what it cannot prove on this cluster, before it reads any record."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from migrate_groups.cli.commands import audit
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from tests.support.connected import MIGRATE, Connected
from tests.support.in_memory import InMemoryCluster


class Another(InMemoryCluster):
    """A cluster whose id is not the receipt's."""

    def cluster_id(self) -> str:
        return "another"


@pytest.fixture
def cli(tmp_path, monkeypatch) -> Connected:
    """The command line after a migration; audit gets the log of ``cli.cluster``, and no reader of its records."""
    made = Connected(tmp_path, monkeypatch)
    made.cluster.create_topic(OFFSETS_TOPIC, 50)
    made(*MIGRATE)

    @contextmanager
    def open_offsets_topic(_):
        yield made.cluster, None

    monkeypatch.setattr(audit, "open_offsets_topic", open_offsets_topic)
    return made


def test_a_receipt_of_another_cluster_is_refused(cli):
    """Groups of the same name on another cluster are other groups: exit 2, with both cluster ids."""
    ours, cli.cluster = cli.cluster.cluster_id(), Another()
    refusal = cli.fails("audit", "split.toml.run", code=2)
    assert refusal == f"error: this is cluster another; the receipt is of cluster {ours}"


def test_an_offsets_topic_with_other_partitions_proves_nothing(cli):
    """With another partition count, groups map to other partitions of the offsets topic: exit 7, with both numbers."""
    cli.cluster.delete_topic(OFFSETS_TOPIC)
    cli.cluster.create_topic(OFFSETS_TOPIC, 25)
    assert f"{OFFSETS_TOPIC} had 50 partitions, and has 25" in cli.fails("audit", "split.toml.run", code=7)
