"""The error for a group that does not exist names the groups with a similar name."""

from __future__ import annotations

import pytest

from migrate_groups.errors import ClusterUnavailable, GroupNotFound
from migrate_groups.migration.reading.hints import similar_groups_named
from migrate_groups.migration.reading.take import take_snapshot
from migrate_groups.model.partitions import TopicPartition
from tests.support.clock import FakeClock
from tests.support.in_memory import InMemoryCluster


@pytest.fixture
def cluster() -> InMemoryCluster:
    """A cluster with groups ``big-group`` and ``other``."""
    cluster = InMemoryCluster()
    cluster.create_topic("t", 1)
    for group in ("big-group", "other"):
        cluster.commit(group, TopicPartition("t", 0), 0)
    return cluster


def complaint(cluster: InMemoryCluster, group: str) -> str:
    """Take a snapshot of a group that does not exist, and return the text of the error."""
    with pytest.raises(GroupNotFound) as raised, similar_groups_named(cluster):
        take_snapshot(cluster, [group], FakeClock())
    return str(raised.value)


@pytest.mark.parametrize("typed", ["big-grup", "Big-Group", "biggroup"])
def test_a_similar_name_is_suggested(cluster, typed):
    """If a group does not exist, the error suggests a group whose name is similar or differs only in letter case."""
    assert complaint(cluster, typed) == f"group {typed!r} does not exist on this cluster: did you mean big-group?"


@pytest.mark.parametrize("typed", ["billing", "x" * 32_767])
def test_without_a_similar_name_the_connection_may_be_wrong(cluster, typed):
    """If a group does not exist and no name is similar, the error advises to check the name and the cluster."""
    assert complaint(cluster, typed).endswith("does not exist on this cluster: " + ADVICE)


def test_a_cluster_that_does_not_list_its_groups(cluster, monkeypatch):
    """If a group does not exist and the groups can't be listed, the error still says that the group does not exist."""

    def fails():
        raise ClusterUnavailable("no answer")

    monkeypatch.setattr(cluster, "list_groups", fails)
    assert complaint(cluster, "big-grup").endswith(ADVICE)


ADVICE = "check the name and --bootstrap-server, and try again if brokers have just restarted"
