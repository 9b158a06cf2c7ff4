"""Change the code of planning/ and migration/ in small ways, and list the changes that no fast test notices.

Usage: ``pip install -e '.[mutation]'``, then ``python scripts/mutation_run.py [--sample N | PATTERN...]``. A pattern
selects functions, for instance ``'migrate_groups.planning.checks.*'``. Without a pattern all functions are changed,
which takes a day on two cores. ``--sample`` draws N changes among all: the same ones for the same code and seed, and
the first of them are those of a smaller sample. They are tested in that order, 250 at a time.

mutmut makes the changes in a copy of the code, ``mutants/``. For each change it runs the tests that reach the changed
function, out of tests/unit and the part of tests/contract that needs no broker. The next run resumes an interrupted
one; remove ``mutants/`` to start anew. mutmut's settings are in pyproject.toml under ``tool.mutmut``.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_MUTMUT = [sys.executable, "-m", "mutmut"]
# mutmut tests the changes of one call in the order of their tests' duration. So a sample that is interrupted lacks the
# slow ones of the last batch alone. Each batch costs one run of its tests without a change.
_BATCH = 250
# mutmut's exit codes for a change. Any other code means that a test has failed, that is, has killed the change.
_RESULTS = {0: "survived", 5: "no tests", 33: "no tests", 2: "not run", None: "not run"} | dict.fromkeys(
    [24, -24, 36, 152, 255], "timed out"
)


def main() -> int:
    """Run mutmut and print each surviving change as a diff; return 1 if there is one."""
    parser = argparse.ArgumentParser(description="Change the code, and list the changes that no fast test notices.")
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="names of functions (default: all)")
    parser.add_argument("--sample", type=int, metavar="N", help="test N changes, drawn among those of all functions")
    parser.add_argument("--seed", type=int, default=1, help="draw another sample (default: 1)")
    parser.add_argument(
        "--processes", type=int, default=2, help="number of changes that are tested at once (default: 2)"
    )
    options = parser.parse_args()
    if options.sample and options.patterns:
        parser.error("--sample draws among all functions: leave out the patterns")
    run = [*_MUTMUT, "run", "--max-children", str(options.processes)]
    if options.sample:
        chosen = _sample(run, options.sample, options.seed)
        codes = _exit_codes()
        left = [name for name in chosen if _result(codes[name]) == "not run"]
        for start in range(0, len(left), _BATCH):
            subprocess.run([*run, *left[start : start + _BATCH]], cwd=_ROOT, check=True)
    else:
        patterns = options.patterns or ["*"]
        subprocess.run([*run, *patterns], cwd=_ROOT, check=True)
        chosen = sorted(name for name in _exit_codes() if any(fnmatch(name, each) for each in patterns))
    return _report(chosen)


def _sample(run: list[str], size: int, seed: int) -> list[str]:
    """Make the changes, if that is not done, and draw ``size`` of their names."""
    # A name that no change has: mutmut makes the changes, notes which tests reach which function, and fails.
    subprocess.run([*run, "none"], cwd=_ROOT, check=False, stderr=subprocess.DEVNULL)
    names = sorted(_exit_codes())
    random.Random(seed).shuffle(names)
    return names[:size]


def _report(chosen: list[str]) -> int:
    codes = _exit_codes()
    results = {name: _result(codes[name]) for name in chosen}
    survivors = [name for name, result in results.items() if result == "survived"]
    for name in survivors:
        subprocess.run([*_MUTMUT, "show", name], cwd=_ROOT, check=True)
    counts = Counter(results.values())
    judged = counts["killed"] + counts["survived"]
    figures = ", ".join(f"{counts[each]} {each}" for each in ("killed", "survived", "timed out", "no tests", "not run"))
    score = f"; score {counts['killed'] / judged:.1%} (killed of killed and survived)" if judged else ""
    sys.stdout.write(f"{len(chosen)} changes: {figures}{score}\n")
    return int(bool(survivors))


def _result(code: int | None) -> str:
    return _RESULTS.get(code, "killed")


def _exit_codes() -> dict[str, int | None]:
    codes: dict[str, int | None] = {}
    for path in (_ROOT / "mutants").rglob("*.py.meta"):
        codes |= json.loads(path.read_text())["exit_code_by_key"]
    return codes


if __name__ == "__main__":
    sys.exit(main())
