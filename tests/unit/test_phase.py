"""A reader for one phase: it remembers topics, permissions and the cluster id, and reads everything else each time."""

from __future__ import annotations

import inspect

import pytest

from migrate_groups.migration.ports import GroupWriter
from migrate_groups.migration.reading.phase import PhaseReader, for_one_phase
from migrate_groups.model.permissions import Resource, ResourceType
from tests.support.in_memory import PORT, Asked

REMEMBERED = {"cluster_id", "describe_topics", "permissions"}


class Counting(Asked):
    """A cluster that keeps the names of its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def before_request(self, name: str) -> None:
        self.asked.append(name)


@pytest.fixture
def cluster() -> Counting:
    made = Counting()
    made.create_topic("orders", 2)
    made.create_topic("bills", 1)
    return made


@pytest.mark.parametrize("name", sorted(name for name in PORT.keys() - REMEMBERED if name not in vars(GroupWriter)))
def test_what_may_change_is_read_each_time(cluster, name):
    """Groups, committed offsets, log offsets and settings of brokers are read again at each request."""
    reader = for_one_phase(cluster)
    needed = [
        parameter
        for parameter in inspect.signature(PORT[name]).parameters.values()
        if parameter.name not in ("self", "calls") and parameter.default is parameter.empty
    ]
    for _ in range(2):
        getattr(reader, name)(*("" if each.annotation == "str" else {} for each in needed))
    assert cluster.asked.count(name) == 2


def test_topics_permissions_and_the_cluster_id_are_requested_once(cluster):
    """A topic, a permission and the cluster id are requested once; permissions on described topics not at all."""
    reader, group = for_one_phase(cluster), Resource(ResourceType.GROUP, "g")
    for _ in range(2):
        assert reader.cluster_id() == "in-memory"
        assert reader.describe_topics(None).keys() >= {"orders", "bills"}
        assert reader.describe_topics(["orders"]).keys() == {"orders"}
        assert reader.permissions([Resource(ResourceType.TOPIC, "orders"), group]).keys() >= {group}
    assert [name for name in cluster.asked if name != "describe_topics"] == ["cluster_id", "permissions"]
    cluster.delete_topic("orders")
    assert "orders" in reader.describe_topics(None)
    assert "orders" not in for_one_phase(cluster).describe_topics(None)


def test_a_result_is_not_what_is_remembered(cluster):
    """A later request does not change an earlier result, and a change of a result does not change later ones."""
    reader, resource = for_one_phase(cluster), Resource(ResourceType.TOPIC, "orders")
    every, permissions = reader.describe_topics(None), reader.permissions([resource])
    cluster.create_topic("later", 1)
    reader.describe_topics(["later"])
    assert "later" not in every
    for result in (every, permissions):
        assert isinstance(result, dict)
        result.clear()
    assert reader.describe_topics(None).keys() >= {"orders", "bills", "later"}
    assert reader.permissions([resource])[resource]


def test_a_reader_is_wrapped_once(cluster):
    """A reader for one phase is used as it is where a phase begins within another one."""
    reader = for_one_phase(cluster)
    assert isinstance(reader, PhaseReader)
    assert for_one_phase(reader) is reader
