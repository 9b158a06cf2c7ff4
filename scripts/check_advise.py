#!/usr/bin/env python3
"""Compare the predictions of ``advise`` with real splits of an eager, a cooperative and a KIP-848 group.

The rebalance callbacks of the clients show the true seconds. This is not part of the test suite, because the seconds
depend on how busy the machine is. It takes about five minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from tests.support.cli import CliHere
from tests.support.split_sharing import holds, near, split

RESTARTS, DELAY = 5, 3000


def main() -> int:
    """Print the true and the predicted seconds in which an application's partitions had no owner.

    Return 1 if a prediction fails.
    """
    argparse.ArgumentParser(description=__doc__).parse_args()
    java = find_java(os.environ)
    jars = fetch_jars(java=java, cache=user_cache())
    off = 0
    for protocol in ("eager", "cooperative", "consumer"):
        with tempfile.TemporaryDirectory() as folder:
            done = split(CliHere(Path(folder), ""), java, jars, protocol, RESTARTS, DELAY)
        for name, found in done.found.items():
            good = holds(found, done.after[name]) and near(found["measured"], done.after[name])
            off += not good
            predicted = found["predicted"]
            sys.stdout.write(
                f"{protocol:12} {name:8} before {done.before[name]:5.1f} s, after {done.after[name]:5.1f} s, measured "
                f"{found['measured']:5.1f} s, predicted {predicted['seconds']:5.1f} s, at most "
                f"{predicted['at_most']:5.1f} s{'' if good else '  OFF'}\n"
            )
            sys.stdout.flush()
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
