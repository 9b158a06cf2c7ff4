"""Run migrations on 3 brokers, each with one fault: ``.venv/bin/python scripts/fault_campaign.py --runs 200 --seed 1``.

A run's seed gives its fault and the moment of the fault; the seeds count up from ``--seed``. Each failing run is
printed as JSON, and a summary at the end. Exit 1 if a run failed. ``--json`` saves every run.

``tests/support/campaign.py`` describes a run and what must hold after it. A seed decides the actions, and the steps of
the command at which they happen. Apart from this, brokers and processes run freely, as in production.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # because the runs are in the test suite

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from tests.support.campaign import Run, run
from tests.support.three_brokers import ThreeBrokers

_RUNS_A_CLUSTER = 25


def main() -> int:
    """Return 0 if every run passes its checks, 1 otherwise."""
    parser = argparse.ArgumentParser(description="Run migrations, each with one fault, on three brokers.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first run")
    parser.add_argument("--json", type=Path, help="write every run to this file")
    options = parser.parse_args()
    java = find_java(os.environ)
    jars = fetch_jars(java=java, cache=user_cache(), mirror=os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR"))
    seeds = range(options.seed, options.seed + options.runs)
    runs: list[Run] = []
    for start in range(0, len(seeds), _RUNS_A_CLUSTER):
        with start_sandbox(jars, java=java, brokers=3, timeout=120) as sandbox:
            brokers = ThreeBrokers(sandbox)
            for seed in seeds[start : start + _RUNS_A_CLUSTER]:
                with tempfile.TemporaryDirectory() as folder:
                    runs.append(run(seed, brokers, Path(folder)))
                _tell(runs[-1])
                if options.json:
                    options.json.write_text(json.dumps([asdict(each) for each in runs], indent=1) + "\n")
    _sum_up(runs)
    return int(any(each.problems for each in runs))


def _tell(done: Run) -> None:
    moment = f"step {done.step}" if done.halted else "at the end" if done.step else "while waiting"
    print(f"{done.seed:5}  {done.fault:34}{moment:15}exits {done.exits}  {done.seconds} s", flush=True)
    if done.problems:
        print(json.dumps(asdict(done)), flush=True)


def _sum_up(runs: list[Run]) -> None:
    failed = [each.seed for each in runs if each.problems]
    faults, exits = Counter(each.fault for each in runs), Counter(each.exits[0] for each in runs if each.exits)
    print(
        f"{len(runs)} runs, seeds {runs[0].seed} to {runs[-1].seed}: {len(failed)} failed {failed or ''}"
        f"; {sum(each.records for each in runs):,} records, {sum(each.skipped for each in runs)} skipped, "
        f"{sum(each.twice for each in runs)} twice"
    )
    print("first exits:", ", ".join(f"{code}: {count}" for code, count in sorted(exits.items())))
    print("faults:", ", ".join(f"{fault}: {count}" for fault, count in sorted(faults.items())))
    print(
        f"completed by a re-run: {sum(len(each.exits) > 1 for each in runs)}; "
        f"open entries in between: {sum(each.open_entries for each in runs)}; "
        f"confirmed by one client only: {sum(each.one_client_only for each in runs)}; "
        f"median {statistics.median(each.seconds for each in runs)} s a run"
    )


if __name__ == "__main__":
    sys.exit(main())
