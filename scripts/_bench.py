"""What the benchmarks share: measured processes that take turns, and the lines of the results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # because some benchmarks use modules of the tests

OURS = (sys.executable, "-m", "migrate_groups")
# Compiled Python files are kept, as for users, even if this process has PYTHONDONTWRITEBYTECODE.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
_DIFFERENCES = 6  # the exit code of `reconcile` and `audit` if they found something


class Measured(NamedTuple):
    """Seconds of wall-clock time, seconds of CPU time, and the peak resident memory of a process in MB."""

    seconds: float
    cpu: float
    megabytes: float

    @staticmethod
    def of_all(steps: Sequence[Measured]) -> Measured:
        """Return the sum of the times of several processes that ran one after the other, and their peak memory."""
        seconds, cpu = sum(each.seconds for each in steps), sum(each.cpu for each in steps)
        return Measured(seconds, cpu, max(each.megabytes for each in steps))


Runs = dict[str, list[Measured]]
"""By the name of what was measured: its runs."""


def options_of(says: str, runs: int) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark: ``--runs``, with this default, and ``--json``."""
    parser = argparse.ArgumentParser(description=says, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run to this file")
    return parser


def run(command: Sequence[str], output: Path | None = None) -> Measured:
    """Run a process to its end, with stdout to the file ``output``. Exit with its stderr if it fails."""
    with output.open("wb") if output else tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            err.seek(0)
            raise SystemExit(f"{' '.join(command)[:300]}\n{err.read().decode(errors='replace')[-2000:]}")
    return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def run_with_children(command: Sequence[str]) -> tuple[Measured, str]:
    """Run a process whose children count, too, such as Spark's JVM. Return what was measured, and its stdout.

    The children are read every 50 ms, because nobody waits for a JVM that Python has started. The memory is that of the
    largest process.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err)
        cpu: dict[int, float] = {}
        memory: dict[int, int] = {}
        while process.poll() is None:
            for pid in _family(process.pid):
                with suppress(OSError, ValueError, IndexError):
                    cpu[pid] = cpu_so_far(pid)
                    memory[pid] = int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) // 1024
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        out.seek(0), err.seek(0)
        if process.returncode not in (0, _DIFFERENCES):
            sys.exit(f"{' '.join(command)} exited with {process.returncode}: {err.read()}")
        return Measured(round(seconds, 2), round(sum(cpu.values()), 2), max(memory.values())), out.read()


def cpu_so_far(process: int) -> float:
    """Return the seconds of CPU time that a process has used, without its children. The clock ticks every 10 ms."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def in_turns(contenders: Mapping[str, Callable[[], Measured]], runs: int, *, warm_up: bool = False) -> Runs:
    """Measure each contender ``runs`` times, and return its runs by its name. Each run is a line on stderr.

    warm_up: whether there is a first turn that does not count.
    """
    found: Runs = {name: [] for name in contenders}
    for turn in range(0 if warm_up else 1, runs + 1):
        for name, contender in contenders.items():
            each = contender()
            print(
                f"turn {turn}  {name:10} {each.seconds:7.3f} s  CPU {each.cpu:6.3f} s {each.megabytes:6.0f} MB  "
                f"load {os.getloadavg()[0]:.1f}",
                file=sys.stderr,
                flush=True,
            )
            if turn:
                found[name].append(each)
    return found


def medians(found: Runs, what: str = "seconds") -> dict[str, float]:
    """Return the median of a figure of `Measured`, by name."""
    return {name: statistics.median(getattr(each, what) for each in runs) for name, runs in found.items() if runs}


def report(
    options: argparse.Namespace, found: Mapping[str, Runs], pairs: Collection[tuple[str, str]], **facts: object
) -> None:
    """Print medians and ratios of each case, and with ``--json`` save every run.

    found: the runs, by what was varied, such as a size. pairs: the names whose medians are compared. facts: what the
    file has beside the runs.
    """
    ratios = {}
    for case, runs in found.items():
        print(f"\n{case}; {options.runs} runs each, {os.cpu_count()} cores")
        _print_runs(runs)
        ratios[case] = _print_ratios(runs, pairs)
    if options.json:
        all_runs = {
            case: {name: [each._asdict() for each in of] for name, of in by.items()} for case, by in found.items()
        }
        facts |= {"cores": os.cpu_count(), "python": platform.python_version(), "ratios": ratios, "runs": all_runs}
        options.json.write_text(json.dumps(facts, indent=1) + "\n")


def _print_runs(found: Runs) -> None:
    """Print a line for each name: median, least and most seconds, the median of CPU seconds, and the most MB."""
    middle, cpu = medians(found), medians(found, "cpu")
    print(f"{'':15}{'median s':>10}{'least':>9}{'most':>9}{'CPU s':>9}{'MB':>7}")
    for name, runs in found.items():
        seconds = [each.seconds for each in runs]
        most = max(each.megabytes for each in runs)
        print(f"{name:15}{middle[name]:10.3f}{min(seconds):9.3f}{max(seconds):9.3f}{cpu[name]:9.3f}{most:7.0f}")


def _print_ratios(found: Runs, pairs: Collection[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Print, for each pair that was measured, the ratio of the medians of seconds and of CPU seconds, and return them.

    If other work runs too, the ratios of CPU time tell more than those of seconds.
    """
    middle, cpu = medians(found), medians(found, "cpu")
    both = [(one, other) for one, other in pairs if {one, other} <= middle.keys()]
    ratios = {f"{one} / {other}": (middle[one] / middle[other], cpu[one] / cpu[other]) for one, other in both}
    print(f"{'':25}{'seconds':>8}{'CPU':>8}")
    for name, (of_seconds, of_cpu) in ratios.items():
        print(f"{name:25}{of_seconds:8.3f}{of_cpu:8.3f}")
    return ratios
