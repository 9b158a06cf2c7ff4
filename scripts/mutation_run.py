"""Change the code of planning/ and migration/ in small ways, and list the changes that no fast test notices.

Usage: ``pip install -e '.[mutation]'``, then ``python scripts/mutation_run.py [PATTERN...]``. A pattern selects
functions, for instance ``'migrate_groups.planning.checks.*'``. Without a pattern all functions are changed, which takes
hours on two cores.

mutmut makes the changes in a copy of the code, ``mutants/``. For each change it runs the tests that reach the changed
function, out of tests/unit and the part of tests/contract that needs no broker. The next run resumes an interrupted
one; remove ``mutants/`` to start anew. mutmut's settings are in pyproject.toml under ``tool.mutmut``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

_ROOT = Path(__file__).parents[1]
# mutmut's exit codes for a change. Any other code means that a test has failed, that is, has noticed the change.
_SURVIVED, _NO_TESTS, _NOT_RUN = 0, 33, None


def main() -> int:
    """Run mutmut and print each surviving change as a diff; return 1 if there is one."""
    parser = argparse.ArgumentParser(description="Change the code, and list the changes that no fast test notices.")
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="names of functions (default: all)")
    parser.add_argument(
        "--processes", type=int, default=2, help="number of changes that are tested at once (default: 2)"
    )
    options = parser.parse_args()
    patterns = options.patterns or ["*"]
    mutmut = [sys.executable, "-m", "mutmut"]
    subprocess.run([*mutmut, "run", "--max-children", str(options.processes), *patterns], cwd=_ROOT, check=True)
    found = {name: code for name, code in _exit_codes().items() if any(fnmatch(name, each) for each in patterns)}
    survivors = sorted(name for name, code in found.items() if code == _SURVIVED)
    for name in survivors:
        subprocess.run([*mutmut, "show", name], cwd=_ROOT, check=True)
    counts = Counter(code if code in (_SURVIVED, _NO_TESTS, _NOT_RUN) else "noticed" for code in found.values())
    tested = counts["noticed"] + counts[_SURVIVED]
    sys.stdout.write(
        f"{counts['noticed']} of {tested} changes were noticed; {counts[_SURVIVED]} survived; "
        f"no test reaches {counts[_NO_TESTS]}; {counts[_NOT_RUN]} were not tested\n"
    )
    return int(bool(survivors))


def _exit_codes() -> dict[str, int | None]:
    codes: dict[str, int | None] = {}
    for path in (_ROOT / "mutants").rglob("*.py.meta"):
        codes |= json.loads(path.read_text())["exit_code_by_key"]
    return codes


if __name__ == "__main__":
    sys.exit(main())
