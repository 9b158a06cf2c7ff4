#!/usr/bin/env python3
"""Compare the predictions of ``advise`` with real splits of an eager, a cooperative and a KIP-848 group.

Usage: ``.venv/bin/python scripts/check_advise.py`` (``scripts/test`` makes .venv). Three applications of two members
share a group. ``billing`` restarts five times, before and after the split; ``web`` polls slowly.

The script is not part of the test suite, because the seconds depend on how busy the machine is. It takes about ten
minutes. Each line has the seconds for which an application's partitions had no owner, in the shared group and after the
split. They are measured by the clients' callbacks and from the log. For the split, the line also has the prediction.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from _sandbox import kafka

from tests.support.cli import CliHere
from tests.support.split_sharing import holds, near, split

PROTOCOLS, RESTARTS = ("eager", "cooperative", "consumer"), 5


def main() -> int:
    """Print the seconds of each application. Return 1 if a prediction, or the log after the split, is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("protocols", nargs="*", default=PROTOCOLS, help=f"default: {' '.join(PROTOCOLS)}")
    parser.add_argument("--delay", type=int, default=3000, help="the broker's group.initial.rebalance.delay.ms")
    asked = parser.parse_args()
    java, jars = kafka()
    off = 0
    for protocol in asked.protocols:
        with tempfile.TemporaryDirectory() as folder:
            done = split(CliHere(Path(folder), ""), java, jars, protocol, RESTARTS, asked.delay)
        for name, found in done.found.items():
            predicted, after = found["predicted"], done.after[name]
            good = holds(found, after) and near(found["measured"], after)
            off += not good
            logged = (found["waited_before"] or 0) + (found["outage_before"] or 0)
            sys.stdout.write(
                f"{protocol:12} {name:8} shared {done.before[name]:5.1f} s, log {logged:5.1f} s; split {after:5.1f} s, "
                f"log {found['measured']:5.1f} s, predicted {predicted['low']:5.1f} to "
                f"{predicted['high']:5.1f} s{'' if good else '  OFF'}\n"
            )
            sys.stdout.flush()
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
