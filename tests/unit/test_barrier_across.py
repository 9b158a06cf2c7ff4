"""Commits that wait for a replica, in a move between two in-memory clusters: each cluster has its own barrier."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

import migrate_groups as mg
from migrate_groups.errors import Refused
from migrate_groups.migration.ports import Clients, Side
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC, OWN_GROUPS, log_partition, probe_group
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.check import Verdict
from tests.support.clock import FakeClock
from tests.support.in_memory import OFFSETS_PARTITIONS, InMemoryCluster, InMemoryRecords
from tests.support.move import OPTIONS, THERE, Move

PROBE = probe_group(log_partition("g", OFFSETS_PARTITIONS), OFFSETS_PARTITIONS)
NAMES = {"source": "barrier", "target": "target barrier"}


@pytest.fixture
def move(tmp_path) -> Move:
    """A group with committed offsets 30 and 10, and a mirror that has copied all records."""
    move = Move(tmp_path)
    move.commit(30, 10)
    move.copy(0, 50)
    return move


def side(move: Move, name: str) -> InMemoryCluster:
    return move.source if name == "source" else move.target


def probe_groups(move: Move) -> list[str]:
    groups = [*move.source.list_groups(), *move.target.list_groups()]
    return [each.group for each in groups if each.group.startswith(f"{OWN_GROUPS}barrier")]


def test_a_commit_of_the_source_group_that_waits_is_handed_over(move):
    """The source's cluster has accepted a commit that waits for a replica: `migrate` waits for it, and hands it over.

    No probe group is left on either cluster.
    """
    move.source.hang_follower()
    move.commit(40)
    move.migrate()
    assert move.there() == {0: 40, 1: 10}
    assert probe_groups(move) == []


def test_a_commit_of_the_target_group_that_waits_is_not_overwritten(move):
    """A commit of the target group that waits for a replica is seen before the write, which is refused."""
    move.target.hang_follower()
    move.target.commit("g", THERE, 45)
    with pytest.raises(Refused, match="existing offsets"):
        move.migrate()
    assert move.there() == {0: 45}
    assert probe_groups(move) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_probe_without_an_answer_is_a_refusal_on_each_cluster(move, name):
    """If a probe gets no answer within the time-out on one of the clusters, nothing is written."""
    side(move, name).hang_follower(past_timeout=True)
    with pytest.raises(Refused, match=f"^{NAMES[name]}: no answer to the commit to {PROBE}"):
        move.migrate()
    assert move.there() == {}
    side(move, name).follower_goes_on()
    move.migrate()
    assert move.there() == {0: 30, 1: 10}
    assert probe_groups(move) == []


@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_without_the_permission_on_one_cluster_settle_must_be_ten_seconds(move, name, hidden):
    """A cluster without Describe on the offsets topic, or Read on the probe group, gets no commit.

    Then a settle under 10 s is refused, and 10 s is a warning. The name of the check says which cluster.
    """
    if hidden:
        side(move, name).delete_topic(OFFSETS_TOPIC)
    else:
        side(move, name).deny(Resource(ResourceType.GROUP, PROBE), Operation.READ)
    with pytest.raises(Refused, match=f"^{NAMES[name]}: .* --settle 10s"):
        move.migrate()
    long = replace(OPTIONS, settle=10)
    verdicts = {check.name: check.verdict for check in move.plan(long).checks if "barrier" in check.name}
    other = next(each for each in NAMES.values() if each != NAMES[name])
    assert verdicts == {NAMES[name]: Verdict.WARN, other: Verdict.PASS}
    side(move, name).commit_probes = None  # type: ignore[method-assign,assignment]
    move.migrate(long)
    assert move.there() == {0: 30, 1: 10}


def test_a_dry_run_has_no_writer_and_a_write_needs_one(move):
    """A dry run plans with clients that only read. A write with them is an error before anything is written."""
    move.mirror = move.mirror._replace(source=move.mirror.source._replace(writer=None))
    assert move.verdict("barrier")[0] is Verdict.PASS
    with pytest.raises(ValueError, match="opened for a dry run"):
        move.migrate()
    assert (move.there(), probe_groups(move)) == ({}, [])


def test_the_python_api_waits_for_commits_on_both_clusters(move, tmp_path, monkeypatch):
    """`Cluster.migrate` to another cluster hands over a commit that waits for a replica on the source's cluster.

    `Cluster.plan_migrate` opens no client that writes.
    """
    found = {"a:1": move.source, "b:1": move.target}
    opened: list[tuple[str, bool]] = []

    def open_side(config, *, writes=False):
        cluster = found[config.bootstrap_servers]
        opened.append((config.bootstrap_servers, writes))
        return nullcontext(Side(cluster, InMemoryRecords(cluster), cluster if writes else None))

    def open_writer(config):
        cluster = found[config.bootstrap_servers]
        return nullcontext(Clients(cluster, cluster))

    monkeypatch.setattr("migrate_groups.api.reading.open_side", open_side)
    monkeypatch.setattr("migrate_groups.api.reading.open_writer", open_writer)
    monkeypatch.setattr(
        "migrate_groups.api.reading.open_reader", lambda each: nullcontext(found[each.bootstrap_servers])
    )
    a, b = (mg.connect(each, clock=FakeClock()) for each in found)
    split, run = mg.Split(source="g", targets={"g": ["orders"]}), Path(tmp_path) / "run"
    options = mg.WriteOptions(settle=0, guard=0)
    assert a.plan_migrate(split, run_dir=run, to=b, options=options) is not None
    assert opened == [("a:1", False), ("b:1", False)]
    move.source.hang_follower()
    move.commit(40)
    assert a.migrate(split, run_dir=run, to=b, options=options) is not None
    assert ("b:1", True) not in opened
    assert move.there() == {0: 40, 1: 10}
    assert probe_groups(move) == []
