"""Measure the CPU time of a cut-over without Kafka, on the cluster in memory of the tests: scripts/bench_in_memory.py.

``scripts/test`` makes .venv; then ``.venv/bin/python scripts/bench_in_memory.py``. For each of ``--sizes`` it hands all
partitions of a stopped group over to one group, and prints the seconds of CPU time from the end of the wait until the
new groups may start, and of the whole cut-over. The files of the run are written; no request is encoded or sent.

CPU time depends little on what else the machine does. So two checkouts can be compared in turns: with PYTHONPATH set to
a checkout, the script measures that one.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # the cluster in memory is in the tests

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.files import split_toml
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.migrate import migrate
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.migration.ports import Clients
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.run_states import Verb
from tests.support.in_memory import InMemoryCluster

_A_TOPIC = 100
_SPEC = 'source = "old"\n[[target]]\ngroup = "new"\ntopics = ["bench-*"]\n'


class Moments(Events):
    """The CPU time of this process when the wait for the stop ends, and when the new groups may start."""

    stopped = started = 0.0

    def still_running(self, *_: object) -> None:
        """Keep the CPU time so far. The wait for the stop ends right after the last call."""
        self.stopped = time.process_time()

    def read_back(self, verb: Verb, sources: Collection[str], *, wrote: bool) -> None:
        """Keep the CPU time at which the new groups may start."""
        self.started = time.process_time()


def stopped_group(partitions: int) -> InMemoryCluster:
    """Return a cluster on which the group ``old`` has this many committed offsets, and no member."""
    made = InMemoryCluster()
    made.create_topic("__consumer_offsets", 50)
    for number in range(0, partitions, _A_TOPIC):
        topic, size = f"bench-{number:06d}", min(_A_TOPIC, partitions - number)
        made.create_topic(topic, size)
        for partition in range(size):
            made.produce(topic, partition, 1)
            made.commit("old", TopicPartition(topic, partition), 1)
    return made


def cut_over(partitions: int) -> tuple[float, float]:
    """Return the seconds of CPU time from the stop until the new groups may start, and of the whole cut-over."""
    made, moments = stopped_group(partitions), Moments()
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "split.toml"
        spec.write_text(_SPEC)
        file = split_toml.load_any(spec)
        if not isinstance(file, split_toml.SplitFile):
            raise SystemExit("the spec has no target")
        file = replace(file, options=replace(file.options, settle=0.0, guard=0.0))
        wanted = MigrateRequest(file=file, run=RunDir.beside(spec))
        began = time.process_time()
        result = migrate(Clients(made, made), wanted, SystemClock(), moments)
        ended = time.process_time()
    if result is None or not result.execution.is_whole:
        raise SystemExit("not all offsets were handed over")
    return moments.started - moments.stopped, ended - began


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description="Measure the CPU time of a cut-over on the cluster in memory.")
    parser.add_argument("--sizes", type=int, nargs="+", default=(10_000, 50_000))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    gc.set_threshold(1_000_000, 20, 100)  # as the command line does
    print(f"{'partitions':>10}{'stop to start':>15}{'whole':>9}   seconds of CPU time, medians of {options.runs} runs")
    for size in options.sizes:
        runs = [cut_over(size) for _ in range(options.runs)]
        between, whole = (statistics.median(each) for each in zip(*runs, strict=True))
        print(f"{size:10,}{between:15.3f}{whole:9.3f}")


if __name__ == "__main__":
    main()
