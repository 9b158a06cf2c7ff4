"""Every verb that writes, in any order, while others act: ``.venv/bin/python scripts/any_order.py --sequences 20000``.

Draws sequences of steps (``tests/support/any_order``) in batches, each of which is a seed of hypothesis, and plays them
on the cluster in memory. Prints each kind of finding with its shortest story; the short form in the suite shrinks.
``--state FILE`` keeps the counts after each batch: the same command again goes on from there. Exit 1 with a finding.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).parents[1]))  # the stories are those of the test suite

from tests.support.any_order.drawn import stories
from tests.support.any_order.story import Story

_BATCH = 250


def main() -> int:
    """Return 0 where every story holds."""
    parser = argparse.ArgumentParser(description="Every verb that writes, in any order, while others act.")
    parser.add_argument("--sequences", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1, help="the first batch's")
    parser.add_argument("--state", type=Path, help="where counts are kept, to go on from")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    found: dict[str, str] = {}
    if options.state and options.state.exists():
        kept = json.loads(options.state.read_text())
        counts, found = Counter(kept["counts"]), kept["found"]
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))  # noqa: S108  no fsync there
    try:
        while counts["sequences"] < options.sequences:
            _batch(options.seed + counts["batches"], folder, counts, found)
            counts["batches"] += 1
            if options.state:
                options.state.write_text(json.dumps({"counts": counts, "found": found}, indent=1) + "\n")
            _tell(counts)
    finally:
        shutil.rmtree(folder)
    for kind, story in sorted(found.items()):
        print(f"\n{'=' * 80}\n{counts['finding: ' + kind]} times: {kind}\n\n{story}")
    return int(bool(found))


def _batch(seed: int, folder: Path, counts: Counter[str], found: dict[str, str]) -> None:
    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=_BATCH,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(stories())
    def play(drawn) -> None:
        place = Path(tempfile.mkdtemp(dir=folder))
        begun = time.process_time()
        story = Story(drawn[0], place)
        problems = story.play(drawn[1])
        shutil.rmtree(place)
        counts["sequences"] += 1
        counts["milliseconds"] += round(1000 * (time.process_time() - begun))
        counts["of at least 8 steps"] += len(drawn[1]) >= 8
        counts["with two verbs or more"] += len(story.ended) > 1
        counts["left open at the end"] += story.open is not None and not problems
        counts.update(f"{ended.step.verb}: exit {ended.code}" for ended in story.ended)
        if problems:
            kind = re.sub(r"\d+(\.\d+)?", "N", problems[0])
            counts[f"finding: {kind}"] += 1
            found[kind] = min(found.get(kind, str(story)), str(story), key=len)

    play()


def _tell(counts: Counter[str]) -> None:
    findings = sum(count for what, count in counts.items() if what.startswith("finding: "))
    verbs = ", ".join(f"{what} {count}" for what, count in sorted(counts.items()) if ": exit " in what)
    print(
        f"{counts['sequences']} sequences ({counts['of at least 8 steps']} of at least 8 steps, "
        f"{counts['with two verbs or more']} with two verbs or more, {counts['left open at the end']} left open), "
        f"{findings} findings, {counts['milliseconds'] / counts['sequences']:.0f} ms each; {verbs}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
