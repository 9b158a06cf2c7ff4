"""Measure a move to another cluster, to which MirrorMaker 2 copies the topic.

Usage: ``.venv/bin/python scripts/bench_move.py`` (``scripts/test`` makes .venv). The script starts two Kafkas and a
MirrorMaker 2. A producer sends 1,000 records a second to a topic of ``--partitions`` partitions, and an application
keeps up with it. ``migrate`` hands the application's group over. The script prints the seconds from the moment at which
the application has left its group to ``START THE NEW GROUPS NOW``: median, minimum and maximum. ``settle`` is 0 s, so
that it does not count. Exit code 1: a record was skipped, or processed on both clusters.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

from _sandbox import kafka, sandbox

from migrate_groups.sandbox.jars import fetch_mirror_jars, user_cache
from migrate_groups.sandbox.mirror_maker import mirror_maker
from tests.support.broker_world import wait_for_coordinators
from tests.support.cli import Cli
from tests.support.cluster_move import Moved, mirror_killed, mirrored, moving


def main() -> int:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description="Measure the stop of an application that moves to another cluster.")
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--requests", action="store_true", help="show the requests of migrate, and how long they took")
    options = parser.parse_args()
    java, jars = kafka()
    maven = os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR")
    mirror_jars = fetch_mirror_jars(java=java, cache=user_cache(), version=jars.version, mirror=maven)
    with sandbox() as here, sandbox() as there:
        servers = here.bootstrap_servers, there.bootstrap_servers
        for each in servers:
            wait_for_coordinators(each)
        topics = {"source->target.topics": "orders"}
        with (
            mirror_maker(mirror_jars, *servers, java=java, settings=topics) as maker,
            mirrored(*servers, maker, "orders", options.partitions) as pair,
        ):
            done: list[Moved] = []
            for _ in range(options.runs):
                more = ("-v",) if options.requests else ()
                with (
                    tempfile.TemporaryDirectory() as folder,
                    moving(pair, Cli(Path(folder)), random.SystemRandom(), *more) as move,
                ):
                    done.append(mirror_killed(move, 0))
                    if options.requests:
                        print(move.said)
    seconds = [each.seconds for each in done]
    skipped, again = sum(each.skipped for each in done), sum(each.again for each in done)
    print(
        f"{options.partitions} partitions, {os.cpu_count()} cores: from stop to start "
        f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}); "
        f"{sum(each.records for each in done):,} records, {skipped} skipped, {again} processed twice"
    )
    return int(bool(skipped or again))


if __name__ == "__main__":
    sys.exit(main())
