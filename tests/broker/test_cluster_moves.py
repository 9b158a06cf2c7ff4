"""Running applications move to another cluster, with a fault in each move: no record is skipped, none processed twice.

A producer keeps producing to a topic that a MirrorMaker 2 copies, an application consumes it, and ``migrate`` hands the
application's group over to the other cluster. ``tests/support/cluster_move.py`` describes a move. The producer of
MirrorMaker 2 is idempotent and saves its position each second, as docs/two-clusters.md advises.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_mirror_jars, user_cache
from migrate_groups.sandbox.mirror_maker import mirror_maker
from migrate_groups.sandbox.node import Node
from tests.support.broker_world import wait_for_coordinators
from tests.support.cli import Cli
from tests.support.cluster_move import (
    Mirrored,
    Moved,
    broker_fails,
    mirror_killed,
    mirrored,
    moving,
    source_lost,
    there_and_back,
    tool_killed,
)

CAREFUL = {"target.producer.enable.idempotence": "true", "target.offset.flush.interval.ms": "1000"}
LOSSES = 1  # how often the source is lost
RUNS = 1  # moves of each kind of fault; the number of a move is its seed
STEPS = range(27, 157, 78)  # a move has 156 steps; a `migrate` is killed at each of these
MOST_STEPS = 120  # the range from which a move's step is drawn; if the move has fewer steps, it has no fault

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


class Clusters:
    """Two clusters, and a topic that a MirrorMaker 2 copies from the first one to the second one."""

    def __init__(self, pair: Mirrored, nodes: tuple[Node, Node], *, group_sync: bool) -> None:
        self.pair, self.nodes = pair, nodes
        self._options = ("--on-existing", "forward") if group_sync else ()

    @contextmanager
    def move(self, folder: Path, fault: str, seed: int):
        """Yield a move and the source of its random choices. The fault and the seed decide these choices."""
        rng = random.Random(f"{fault} {seed}")
        with moving(self.pair, Cli(folder), rng, *self._options) as running:
            yield running, rng


@pytest.fixture(scope="module", params=["group offsets stay", "MirrorMaker 2 syncs group offsets"])
def clusters(request, java, kafka_jars) -> Iterator[Clusters]:
    """Two clusters with a MirrorMaker 2, which in one half of the tests also writes offsets of groups on the target."""
    sync = request.param == "MirrorMaker 2 syncs group offsets"
    jars = fetch_mirror_jars(java=java, cache=user_cache(), version=kafka_jars.version)
    synced = {"source->target.sync.group.offsets.enabled": str(sync).lower()}
    settings = {"source->target.topics": "orders", **synced, **CAREFUL}
    with start_sandbox(kafka_jars, java=java) as here, start_sandbox(kafka_jars, java=java) as there:
        servers = here.bootstrap_servers, there.bootstrap_servers
        for each in servers:
            wait_for_coordinators(each)
        with (
            mirror_maker(jars, *servers, java=java, settings=settings) as maker,
            mirrored(*servers, maker, "orders") as pair,
        ):
            yield Clusters(pair, (here.node, there.node), group_sync=sync)


def check(moved: Moved) -> None:
    """Raise AssertionError if a record was skipped, or processed on both clusters."""
    assert moved.records > 0
    assert (moved.skipped, moved.again) == (0, 0), moved


@pytest.mark.parametrize("seed", range(1, RUNS + 1))
def test_a_move_survives_kills_of_mirrormaker(clusters, tmp_path, seed):
    """MirrorMaker 2 is killed and started again up to two times, before the application stops."""
    with clusters.move(tmp_path, "mirror", seed) as (move, _):
        check(mirror_killed(move))


def test_a_group_goes_there_and_back(clusters, tmp_path):
    """A group moves, consumes on the target while MirrorMaker 2 is killed, and goes back with ``hand-back``.

    Of three applications, each record was processed by one: neither skipped nor processed again.
    """
    with clusters.move(tmp_path, "there and back", 1) as (move, _):
        check(there_and_back(move))


@pytest.mark.parametrize("seed", range(1, LOSSES + 1))
def test_the_source_is_lost_and_returns(clusters, tmp_path, seed):
    """The broker of the source is killed while the group runs there; the group starts on the target, and goes back.

    No record that MirrorMaker 2 had delivered is skipped, and no more are read again than the plan says. After the
    return none is skipped at all, and only those are read again that MirrorMaker 2 delivers again, or later, after the
    group had processed them on the source.
    """
    with clusters.move(tmp_path, "lost", seed) as (move, rng):
        found = source_lost(move, clusters.nodes[0], rng.choice([None, rng.randint(1, MOST_STEPS // 2)]))
        print(found)  # noqa: T201
        assert (found.skipped, found.returned.skipped) == (0, 0), found
        assert found.again <= found.most, found
        assert found.returned.again <= found.most + found.later + found.redelivered, found


@pytest.mark.parametrize("step", STEPS)
def test_a_move_survives_the_kill_of_migrate(clusters, tmp_path, step):
    """``migrate`` is killed at a step, and the same command is run again."""
    with clusters.move(tmp_path, "tool", step) as (move, _):
        check(tool_killed(move, step))


@pytest.mark.parametrize("seed", range(1, RUNS + 1))
def test_a_move_survives_the_failure_of_a_broker(clusters, tmp_path, seed):
    """The broker of one of the clusters is killed or stopped, and started again, at any moment."""
    with clusters.move(tmp_path, "brokers", seed) as (move, rng):
        check(broker_fails(move, rng.choice(clusters.nodes), rng.choice([None, rng.randint(1, MOST_STEPS)])))
