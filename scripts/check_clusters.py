"""Move running applications to another cluster, with a fault in each move, and count skipped and repeated records.

Usage: ``.venv/bin/python scripts/check_clusters.py mirror --runs 50`` (``scripts/test`` makes .venv). The script starts
two clusters and a MirrorMaker 2. In each run a producer keeps producing to a topic, an application consumes it, and
``migrate`` hands the application's group over to the other cluster. The fault is one of these:

- ``mirror``: MirrorMaker 2 is killed and started again up to two times, before the application stops
- ``tool``: ``migrate`` is killed at a step and run again; each run takes the next step, until there is none
- ``brokers``: the broker of one of the clusters is killed or stopped, and started again, at any moment

The seed of a run decides its random choices; with ``tool`` the seed is the number of the step. With ``--group-sync``
MirrorMaker 2 also writes committed offsets of the groups on the target. The producer of MirrorMaker 2 is idempotent and
saves its position each second, as docs/move-to-another-cluster.md advises; ``--mirror-defaults`` leaves this out.
``tests/support/cluster_move.py`` describes a run. Exit code 1: a record was skipped, or processed on both clusters.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # because the runs are in the test suite

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from migrate_groups.sandbox.mirror_maker import fetch_mirror_jars, mirror_maker
from migrate_groups.sandbox.node import Node
from tests.support.broker_world import wait_for_coordinators
from tests.support.cli import Cli
from tests.support.cluster_move import Mirrored, Moved, broker_fails, mirror_killed, mirrored, moving, tool_killed

_MOST_STEPS = 120  # the range from which a move's step is drawn; if the move has fewer steps, it has no fault
CAREFUL = {"target.producer.enable.idempotence": "true", "target.offset.flush.interval.ms": "1000"}
_FAULTS = ("mirror", "tool", "brokers")


def main() -> int:
    """Return 0 if no record was skipped, and none processed on both clusters; 1 otherwise."""
    parser = argparse.ArgumentParser(description="Move running applications to another cluster, and count by ledger.")
    parser.add_argument("fault", choices=_FAULTS)
    parser.add_argument("--runs", type=int, default=10, help="with tool: the most runs")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first run")
    parser.add_argument("--group-sync", action="store_true", help="MirrorMaker 2 writes offsets of the groups, too")
    parser.add_argument("--mirror-defaults", action="store_true", help="leave out the settings that keep copies few")
    parser.add_argument("--every", type=int, default=1, help="with tool: the distance from step to step")
    options = parser.parse_args()
    done = [*_moves(options)]
    skipped, again = sum(each.skipped for each in done), sum(each.again for each in done)
    repeated, lowered = sum(each.runs > 1 for each in done), sum(each.lowered > 0 for each in done)
    print(
        f"{len(done)} runs, {sum(each.records for each in done):,} records: {skipped} skipped, {again} twice; "
        f"{repeated} needed the same command again; in {lowered} MirrorMaker 2 lowered offsets before the application "
        "started"
    )
    if seconds := [each.seconds for each in done if each.seconds and each.runs == 1]:
        print(f"from stop to start {statistics.median(seconds):.1f} s (most {max(seconds):.1f})")
    return int(bool(skipped or again))


def _moves(options: argparse.Namespace) -> Iterator[Moved]:
    java, maven = find_java(os.environ), os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR")
    jars = fetch_jars(java=java, cache=user_cache(), mirror=maven)
    mirror_jars = fetch_mirror_jars(java=java, cache=user_cache(), version=jars.version, mirror=maven)
    settings = {
        "source->target.topics": "orders",
        "source->target.sync.group.offsets.enabled": str(options.group_sync).lower(),
    }
    if not options.mirror_defaults:
        settings |= CAREFUL
    with start_sandbox(jars, java=java) as here, start_sandbox(jars, java=java) as there:
        servers = here.bootstrap_servers, there.bootstrap_servers
        for each in servers:
            wait_for_coordinators(each)
        with (
            mirror_maker(mirror_jars, *servers, java=java, settings=settings) as maker,
            mirrored(*servers, maker, "orders") as pair,
        ):
            for seed in range(options.seed, options.seed + options.every * options.runs, options.every):
                began = time.monotonic()
                moved = _one(pair, (here.node, there.node), options, seed)
                print(
                    f"{seed:5}  {moved.fault:50}  {moved.records:6,} records  {moved.skipped} skipped  {moved.again} "
                    f"twice  {moved.lowered} lowered  {moved.runs} runs  {time.monotonic() - began:.0f} s",
                    flush=True,
                )
                yield moved
                if options.fault == "tool" and not moved.halted:
                    return


def _one(pair: Mirrored, nodes: tuple[Node, Node], options: argparse.Namespace, seed: int) -> Moved:
    rng = random.Random(f"{options.fault} {seed}")
    existing = ("--on-existing", "forward") if options.group_sync else ()
    with tempfile.TemporaryDirectory() as folder, moving(pair, Cli(Path(folder)), rng, *existing) as move:
        if options.fault == "mirror":
            return mirror_killed(move)
        if options.fault == "tool":
            return tool_killed(move, seed)
        return broker_fails(move, rng.choice(nodes), rng.choice([None, rng.randint(1, _MOST_STEPS)]))


if __name__ == "__main__":
    sys.exit(main())
