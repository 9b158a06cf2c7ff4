"""Judge how `compare` translates offsets in simulated logs: ``.venv/bin/python scripts/check_translated_offsets.py``.

A mirror, honest or not, copies each log. The simulation (``tests/support/simulated_mirror.py``) knows from which source
record each copy was made. The script prints how many offsets have which status, for each kind of mirror and each
cleanup.policy. It exits with 1 if a group at one of these offsets would skip a record, or read more again than allowed.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # this checkout, and the simulations in its tests

from migrate_groups.migration.across import logs
from migrate_groups.mirrors.position import Status
from tests.support.simulated_mirror import DISHONEST, KINDS, simulated

_COLUMNS = (*(each.value for each in Status if each is not Status.TRUSTED), "wrong")


def main() -> int:
    """Return 0 if no exact offset is wrong, 1 otherwise."""
    parser = argparse.ArgumentParser(description="Judge how compare translates offsets in simulated logs.")
    parser.add_argument("--logs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    table: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for number in range(options.logs):
        rng = random.Random(options.seed * 1_000_000 + number)
        policy, mirror = KINDS[number % len(KINDS)]
        case = simulated(rng, policy, mirror)
        # Small windows, so that most logs are read in several rounds.
        logs.WINDOW, logs._GROWTH = rng.choice([(3, 2), (100, 16)])
        position = case.translated()
        row = table[mirror, policy, "compacted" if case.is_compacted else ""]
        row[position.status] += 1
        if wrong := case.wrong(position):
            row["wrong"] += 1
            print(f"log {number} of seed {options.seed}: {mirror}, {policy}: {wrong}")
    print(f"{'mirror':20} {'cleanup.policy':16} {'':9} " + " ".join(f"{each[:12]:>12}" for each in _COLUMNS))
    for key, row in sorted(table.items()):
        print(_line(*key, row))
    for title, is_dishonest in (("honest", False), ("dishonest", True)):
        rows = [row for (mirror, _, _), row in table.items() if (mirror in DISHONEST) is is_dishonest]
        print(_line(f"all {title}", "", "", sum(rows, Counter())))
    return int(any(row["wrong"] for row in table.values()))


def _line(mirror: str, policy: str, compacted: str, row: Counter[str]) -> str:
    return f"{mirror:20} {policy:16} {compacted:9} " + " ".join(f"{row[each]:>12,}" for each in _COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
