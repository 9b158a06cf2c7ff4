"""Run commands on 3 brokers, each with one fault: ``.venv/bin/python scripts/fault_campaign.py --seeds 1-1000``.

A run's seed gives its scenario, its fault and the step of the fault; consecutive seeds go through all pairs of scenario
and fault. A step is the time before or after a request to the cluster, a question to the second client, or a write of
the receipt. Half of the runs choose a step from the first write of the receipt on. The fault happens at the step, or
while the command continues. For cut and slow connections both clients reach the brokers through a proxy of the tests.
The clock jumps only in the process of the command, and monotonic clocks do not jump.

After the command, and again after its re-run, on a repaired cluster:

1. Each partition has the offset that the receipt states. If its outcome is open, it has the offset from before or the
   planned one. If the exit code says that nothing was written, nothing was.
2. The re-run completes what is open, with exit code 0. All groups have exactly the offsets that they must have, also
   those that the command does not write.
3. The applications process every record that was not processed, once. Of a transactional application only output of
   committed transactions counts. A replay group processes every record from its offset on, the live group each once.

``tests/support/campaign/`` describes the scenarios, the faults and the checks. Each failing run is printed as JSON, and
tables of all runs at the end. Exit 1 if a run failed.

``--results FILE`` adds a line of JSON for each run to a file. The same command again leaves out the seeds that have a
verdict in the file; several processes may share it. ``--seeds 417`` runs one seed again. The seed decides which
actions happen, and at which steps of the command. It does not decide how brokers and processes interleave.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from _sandbox import sandbox

from tests.support.campaign.run import Result, run
from tests.support.campaign.tables import tables
from tests.support.three_brokers import LISTENERS, SETTINGS, ThreeBrokers

_RUNS_A_CLUSTER = 50


def main() -> int:
    """Return 0 if every run passes its checks, 1 otherwise."""
    parser = argparse.ArgumentParser(description="Run commands, each with one fault, on three brokers.")
    parser.add_argument("--seeds", type=_seeds, default=_seeds("1-200"), help="for instance 1-1000, or 3,17 (1-200)")
    parser.add_argument(
        "--results", type=Path, help="add each run to this file, and leave out those with a verdict in it"
    )
    options = parser.parse_args()
    done = _saved(options.results)
    for result in _runs([seed for seed in options.seeds if seed not in done]):
        done[result.seed] = result
        _tell(result)
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    of_seeds = [done[seed] for seed in options.seeds if seed in done]
    print("\n".join(tables(of_seeds)))
    return int(any(each.problems or each.no_verdict for each in of_seeds))


def _seeds(text: str) -> list[int]:
    ends = [part.partition("-") for part in text.split(",")]
    return [seed for first, _, last in ends for seed in range(int(first), int(last or first) + 1)]


def _saved(path: Path | None) -> dict[int, Result]:
    lines = path.read_text().splitlines() if path and path.exists() else []
    results = [Result(**json.loads(line)) for line in lines]
    return {each.seed: each for each in results if not each.no_verdict}


def _runs(seeds: Sequence[int]) -> Iterator[Result]:
    for start in range(0, len(seeds), _RUNS_A_CLUSTER):
        with sandbox(brokers=3, timeout=120, listeners=LISTENERS, settings=SETTINGS) as running:
            brokers = ThreeBrokers(running)
            for seed in seeds[start : start + _RUNS_A_CLUSTER]:
                with tempfile.TemporaryDirectory() as folder:
                    yield run(seed, brokers, Path(folder))


def _tell(done: Result) -> None:
    moment = f"step {done.steps}" if done.halted else "while waiting" if done.step == "0" else "at the end"
    what = f"{done.scenario:40}{done.fault:34}{moment:14}"
    print(f"{done.seed:5}  {what}exits {done.exits or done.left_out}  {done.seconds} s", flush=True)
    if done.problems or done.no_verdict:
        print(json.dumps(asdict(done)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
