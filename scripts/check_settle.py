"""Show what each length of settle lets through, while old consumers come back or never leave.

This is no test, because it takes hundreds of hand-overs, and what one of them lets through is chance.
``tests/broker/test_stragglers.py`` tests the outcomes that are certain.

``scripts/test`` makes .venv; then ``.venv/bin/python scripts/check_settle.py --file runs.jsonl``. It starts a Kafka
with the default group.initial.rebalance.delay.ms (3 s). Each run hands a group over with one kind of straggler
(``tests/support/stragglers.py``), one length of ``--settle``, and ``--hold`` or not. It counts the records that were
skipped or processed twice: a producer appends 20 records a second, and a ledger has every record that the old and new
consumers process. The new consumer starts at START, and the old ones stop as soon as `migrate` names them. Many runs
are under way at once, because they wait most of the time. Each result is a line of the file. A run that is in the file
already is not repeated. The script prints Markdown tables.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _sandbox import sandbox

from tests.support.broker_world import wait_for_coordinators
from tests.support.stragglers import STRAGGLERS, hand_over

_DELAY = {"group.initial.rebalance.delay.ms": "3000"}
Run = dict[str, Any]


def main() -> None:
    """Run what is not in the file yet, and print the tables."""
    parser = argparse.ArgumentParser(description="What does each length of settle let through?")
    parser.add_argument("--runs", type=int, default=3, help="how many of each kind")
    parser.add_argument("--settle", nargs="+", default=["0s", "1s", "3s", "10s"], metavar="DURATION")
    parser.add_argument("--hold", choices=["no", "yes", "both"], default="both")
    parser.add_argument("--only", nargs="+", choices=[*STRAGGLERS], metavar="KIND", help="only these kinds")
    parser.add_argument("--at-once", type=int, default=24)
    parser.add_argument("--file", type=Path, default=Path("settle.jsonl"), help="the results, one run a line")
    options = parser.parse_args()
    done = [json.loads(line) for line in options.file.read_text().splitlines()] if options.file.exists() else []
    known = {_key(each) for each in done}
    left = [each for each in _wanted(options) if _key(each) not in known]
    if left:
        with sandbox(settings=_DELAY) as running, options.file.open("a") as file:
            wait_for_coordinators(running.bootstrap_servers)
            with ThreadPoolExecutor(options.at_once) as pool:
                for one in as_completed([pool.submit(_one, running.bootstrap_servers, each) for each in left]):
                    done.append(one.result())
                    file.write(json.dumps(one.result()) + "\n")
                    file.flush()
                    print(f"{len(done):4}  {one.result()}", file=sys.stderr, flush=True)
    for hold in {"no": [False], "yes": [True], "both": [False, True]}[options.hold]:
        print("\n".join(_table(done, options.settle, hold=hold)))


def _wanted(options: argparse.Namespace) -> Iterator[Run]:
    holds = {"no": [False], "yes": [True], "both": [False, True]}[options.hold]
    for number in range(options.runs):
        for settle in options.settle:
            for hold in holds:
                for kind in options.only or STRAGGLERS:
                    yield {"kind": kind, "settle": settle, "hold": hold, "run": number}


def _key(run: Run) -> tuple[object, ...]:
    return run["kind"], run["settle"], run["hold"], run["run"]


def _one(bootstrap_servers: str, run: Run) -> Run:
    options = ["--settle", run["settle"], *(["--hold"] if run["hold"] else [])]
    try:
        outcome = hand_over(bootstrap_servers, run["kind"], options)
    except Exception as error:  # noqa: BLE001  one run that fails must not end the others
        return {**run, "failed": f"{type(error).__name__}: {error}"}
    return {**run, "outcome": outcome.kind, **asdict(outcome)}


def _table(done: Sequence[Run], settles: Sequence[str], *, hold: bool) -> Iterator[str]:
    head = [f"{'with' if hold else 'without'} `--hold`", *(f"`--settle {each}`" for each in settles)]
    yield f"\n| {' | '.join(head)} |"
    yield "|---" * (len(settles) + 1) + "|"
    for kind in STRAGGLERS:
        cells = [
            _cell([each for each in done if (each["kind"], each["settle"], each["hold"]) == (kind, settle, hold)])
            for settle in settles
        ]
        if any(cells):
            yield f"| {kind} | " + " | ".join(cells) + " |"


def _cell(runs: Sequence[Run]) -> str:
    """Return a table cell: the number of runs by outcome, with the medians of their counts.

    A clean outcome has the median seconds from the last member's leave until the new groups may start.
    """
    parts = []
    for outcome, number in Counter(each.get("outcome", "failed") for each in runs).most_common():
        those = [each for each in runs if each.get("outcome", "failed") == outcome]
        counts = [
            f"{statistics.median(each[what] for each in those):g} {name}"
            for what, name in (("late", "late"), ("twice", "twice"), ("skipped", "skipped"))
            if any(each.get(what) for each in those)
        ]
        if outcome == "clean":
            counts.append(f"{statistics.median(each['stop'] for each in those):.1f} s")
        parts.append(f"{number} {outcome}" + (f" ({', '.join(counts)})" if counts else ""))
    return "; ".join(parts)


if __name__ == "__main__":
    main()
