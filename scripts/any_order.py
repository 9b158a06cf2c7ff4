"""Run the commands that write in random order, while other clients act: ``.venv/bin/python scripts/any_order.py``.

A story is a random sequence of such commands, with events between and during them (``tests/support/any_order``). After
a story no record may be skipped or processed twice, except for listed reasons. Otherwise the story is a finding.

Hypothesis draws the stories in batches, each from a seed. They run on the cluster in memory, or with ``--broker`` on a
sandbox, where each story has its own groups and topics. ``--jobs`` processes run batches concurrently. The script
prints each kind of finding with a story that is reduced to its shortest form, and after how many stories it came first.
It exits with 1 after a finding. The test suite runs fewer stories.

``--state FILE`` saves the counts after each batch, so that the same command resumes an interrupted run.

``--revert N`` undoes the fix of a defect (``tests/support/any_order/reverts.py``), for 1,000 stories. This shows how
many stories the search needs to find that defect. Without the claims (5), 250 stories found a second hand-over after 21
stories, a way back of topics that were handed on after 8, and a deletion of the owner's offsets after 109.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import hypothesis
from _sandbox import sandbox

from tests.support.any_order.broker import Broker, broker
from tests.support.any_order.drawn import only_one, stories
from tests.support.any_order.reduced import reduced
from tests.support.any_order.reverts import FIXES, OF_ONE_RUN, reverted
from tests.support.any_order.runs import Setting, Step
from tests.support.any_order.story import Story
from tests.support.broker_world import wait_for_coordinators

_BATCH = 50
Drawn = tuple[Setting, list[Step]]
Finding = tuple[int, str]  # after how many stories it came first, and its shortest story


def main() -> int:
    """Return 0 if no story has a finding, 1 otherwise."""
    parser = argparse.ArgumentParser(description="Run commands that write, in random order, while other clients act.")
    parser.add_argument("--sequences", type=int, help="how many stories: 20,000, or 1,000 with --revert")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first batch")
    parser.add_argument("--state", type=Path, help="a file with the counts, from which the next run resumes")
    parser.add_argument("--jobs", type=int, default=1, help="the number of processes")
    parser.add_argument("--broker", action="store_true", help="run on a broker, not on the cluster in memory")
    parser.add_argument(
        "--revert", type=int, choices=FIXES, help="the fix to remove, to check that the run finds the bug"
    )
    options = parser.parse_args()
    sequences = options.sequences or (1_000 if options.revert else 20_000)
    counts: Counter[str] = Counter()
    found: dict[str, Finding] = {}
    if options.state and options.state.exists():
        kept = json.loads(options.state.read_text())
        counts, found = Counter(kept["counts"]), kept["found"]
    with _sandbox() if options.broker else nullcontext() as address, _Workers(options.jobs) as workers:
        play = partial(_batch, address=address, revert=options.revert)
        left = sequences - counts["sequences"]
        seeds = range(options.seed + counts["batches"], options.seed + counts["batches"] + -(-left // _BATCH))
        for batch, finds in workers.map(play, seeds):
            for kind, (after, story) in finds.items():
                first, shortest = found.get(kind, (counts["sequences"] + after, story))
                found[kind] = first, min(shortest, story, key=len)
            counts += batch
            if options.state:
                options.state.write_text(json.dumps({"counts": counts, "found": found}, indent=1) + "\n")
            _tell(counts)
    for kind, (first, story) in sorted(found.items()):
        print(f"\n{'=' * 80}\n{counts['finding: ' + kind]} times, first after {first}: {kind}\n\n{story}")
    return int(bool(found))


@contextmanager
def _sandbox() -> Iterator[str]:
    """Run a sandbox for the length of a ``with`` block, and yield the address of its broker."""
    with sandbox() as running:
        wait_for_coordinators(running.bootstrap_servers)
        yield running.bootstrap_servers


class _Workers(ProcessPoolExecutor):
    """Processes that run batches of stories. The end of the ``with`` block cancels batches that have not begun."""

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs, mp_context=get_context("spawn"))

    def __exit__(self, *error: object) -> None:
        self.shutdown(cancel_futures=True)


def _batch(seed: int, *, address: str | None, revert: int | None) -> tuple[Counter[str], dict[str, Finding]]:
    """Run a batch of stories. Return the counts to print, and each kind of finding with its shortest story.

    address: the broker to run on; None: the cluster in memory. revert: the number of the fix to undo; None: no fix is
    undone.
    """
    counts: Counter[str] = Counter(batches=1)
    found: dict[str, Finding] = {}
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))  # noqa: S108  fsync takes no time there

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=_BATCH,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(stories())
    def play(drawn: Drawn) -> None:
        setting, steps = drawn
        if revert in OF_ONE_RUN:
            setting, steps = only_one(setting, steps)
        _play(setting, steps, folder, on, counts, found)

    try:
        with (
            broker(address) if address else nullcontext() as on,
            reverted(revert) if revert else nullcontext(),
        ):
            play()
    finally:
        shutil.rmtree(folder)
    return counts, found


def _play(
    setting: Setting,
    steps: list[Step],
    folder: Path,
    on: Broker | None,
    counts: Counter[str],
    found: dict[str, Finding],
) -> None:
    begun = time.process_time()
    story, kind = _told(setting, steps, folder, on)
    counts["sequences"] += 1
    counts["milliseconds"] += round(1000 * (time.process_time() - begun))
    counts["of at least 8 steps"] += len(steps) >= 8
    counts["with two writes or refusals"] += sum(ended.counts for ended in story.ended) > 1
    counts["with a start in two runs"] += len(story.started) > 1
    counts["left open at the end"] += bool(story.open) and not kind
    counts.update(f"{ended.name}: exit {ended.code}" for ended in story.ended)
    if kind:
        counts[f"finding: {kind}"] += 1
        if kind not in found:
            steps = reduced(steps, lambda shorter: _told(setting, shorter, folder, on)[1] == kind)
            story, _ = _told(setting, steps, folder, on)
            found[kind] = counts["sequences"], f"{steps}\n\n{story}"


def _told(setting: Setting, steps: list[Step], folder: Path, on: Broker | None) -> tuple[Story, str]:
    """Play a story, and return it with the kind of its first problem, which is empty if there is none."""
    place = Path(tempfile.mkdtemp(dir=folder))
    with on.world() if on else nullcontext() as world:
        story = Story(setting, place, world)
        problems = story.play(steps)
    shutil.rmtree(place)
    return story, problems[0].split(":")[0] if problems else ""


def _tell(counts: Counter[str]) -> None:
    findings = sum(count for what, count in counts.items() if what.startswith("finding: "))
    verbs = ", ".join(f"{what} {count}" for what, count in sorted(counts.items()) if ": exit " in what)
    print(
        f"{counts['sequences']} sequences ({counts['of at least 8 steps']} of at least 8 steps, "
        f"{counts['with two writes or refusals']} with two writes or refusals, "
        f"{counts['with a start in two runs']} with a start in two runs, "
        f"{counts['left open at the end']} left open), "
        f"{findings} findings, {counts['milliseconds'] / counts['sequences']:.0f} ms each; {verbs}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
