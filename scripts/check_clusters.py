"""Move running applications to another cluster behind MirrorMaker 2, which is killed at random, and count by ledger.

``scripts/test`` makes .venv; then ``.venv/bin/python scripts/check_clusters.py --runs 50 --seed 1``. It starts two
clusters and a MirrorMaker 2. In each run an application consumes a topic that is produced to all the time,
MirrorMaker 2 is killed and started again up to two times, and ``migrate`` hands the group over to the other cluster as
soon as the application stops. A run's seed gives the number of kills and their moments.
``tests/support/cluster_move.py`` describes a run. Exit 1 if a record was skipped or processed on both clusters.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # because the runs are in the test suite

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from migrate_groups.sandbox.mirror_maker import fetch_mirror_jars, mirror_maker
from tests.support.broker_world import broker_world, wait_for_coordinators
from tests.support.cli import Cli
from tests.support.cluster_move import PARTITIONS, Moved, move

_SETTINGS = {"source->target.topics": "topic-.*", "refresh.topics.interval.seconds": "1"}


def main() -> int:
    """Return 0 if no record was skipped, and none processed on both clusters; 1 otherwise."""
    parser = argparse.ArgumentParser(description="Move running applications to another cluster, and count by ledger.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first run")
    options = parser.parse_args()
    java, maven = find_java(os.environ), os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR")
    jars = fetch_jars(java=java, cache=user_cache(), mirror=maven)
    mirror_jars = fetch_mirror_jars(java=java, cache=user_cache(), version=jars.version, mirror=maven)
    done: list[Moved] = []
    with start_sandbox(jars, java=java) as here, start_sandbox(jars, java=java) as there:
        servers = here.bootstrap_servers, there.bootstrap_servers
        for each in servers:
            wait_for_coordinators(each)
        with mirror_maker(mirror_jars, *servers, java=java, settings=_SETTINGS) as maker:
            for seed in range(options.seed, options.seed + options.runs):
                with (
                    broker_world(servers[0]) as source,
                    broker_world(servers[1]) as target,
                    tempfile.TemporaryDirectory() as folder,
                ):
                    cli = Cli(Path(folder), servers[0])
                    cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"] = servers[1]
                    topic = source.create_topic(PARTITIONS)
                    done.append(move(source, target, maker, topic, cli, random.Random(f"move {seed}")))
                _tell(seed, done[-1])
    skipped, again = sum(each.skipped for each in done), sum(each.again for each in done)
    seconds = [each.seconds for each in done]
    print(
        f"{len(done)} runs, {sum(each.kills for each in done)} kills, {sum(each.produced for each in done):,} records: "
        f"{skipped} skipped, {again} processed twice; from stop to start {statistics.median(seconds):.1f} s "
        f"(most {max(seconds):.1f})"
    )
    return int(bool(skipped or again))


def _tell(seed: int, moved: Moved) -> None:
    print(
        f"{seed:5}  {moved.kills} kills  {moved.produced:6,} produced  {moved.skipped} skipped  {moved.again} twice  "
        f"{moved.seconds:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
