"""Faults of the command: its process, its second client, its disk and its clock."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.campaign.fault import Run, before_or_during
from tests.support.processes import crash_children

_DAY = 86_400
_DISK_BYTES = 4 << 20


def tool_killed(run: Run) -> None:
    with run.halted() as halted:
        before_or_during(run, halted)
        halted.process.kill()


def tool_killed_at_a_hung_coordinator(run: Run) -> None:
    """Kill the command while its last request waits in the broker's socket. The broker may still execute it."""
    with run.halted() as halted:
        victim = run.brokers.coordinator(run.chance.choice(run.scenario.written))
        run.brokers.hang(victim)
        halted.release()
        run.pause(1)
        halted.process.kill()
        run.brokers.go_on(victim)


def two_signals(run: Run) -> None:
    """Interrupt or end the command, and do so once more within a second."""
    with run.halted() as halted:
        before_or_during(run, halted)
        for _ in range(2):
            halted.process.send_signal(run.chance.choice((signal.SIGINT, signal.SIGTERM)))
            halted.release()
            run.pause(1)


def second_client_crashes(run: Run) -> None:
    """Crash the process of the second client (librdkafka) once or twice, with SIGSEGV or SIGABRT."""
    _signal_second_client(run, run.chance.choice((signal.SIGSEGV, signal.SIGABRT)))


def second_client_hangs(run: Run) -> None:
    _signal_second_client(run, signal.SIGSTOP)


def _signal_second_client(run: Run, number: int) -> None:
    with run.halted() as halted:
        crash_children(halted.process.pid, number)
        halted.release()
        if run.chance.random() < 0.5:
            run.pause(1)
            crash_children(halted.process.pid, number)


def disk_full(run: Run) -> None:
    """Fill the disk that contains the command's files: a file system of 4 MB in memory."""
    filler = run.folder / "filler"
    run.repair(lambda: filler.unlink(missing_ok=True))
    with run.halted() as halted:
        before_or_during(run, halted)
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            for size in (4096, 1):
                with suppress(OSError):
                    while True:
                        file.write(bytes(size))
        halted.release()
        if run.chance.random() < 0.3:
            run.pause(1)
            filler.unlink()


def run_directory_read_only(run: Run) -> None:
    def allow(mode: int) -> None:
        for folder in (run.folder, run.scenario.receipt.parent):
            if folder.exists():
                folder.chmod(mode)

    run.repair(lambda: allow(0o755))
    with run.halted() as halted:
        before_or_during(run, halted)
        allow(0o555)
        halted.release()
        if run.chance.random() < 0.3:
            run.pause(1)
            allow(0o755)


def clock_jumps(run: Run) -> None:
    """Set the clock of the command's process forward or back, by up to ten days."""
    with run.halted() as halted:
        size = run.chance.choice((5, 60, 3600, _DAY, 10 * _DAY))
        halted.release(clock=run.chance.choice((-1, 1)) * size)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a small file system in memory at a folder, for the length of a ``with`` block (Linux, as root)."""
    options = ["-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "campaign"]
    subprocess.run(["mount", *options, str(folder)], check=True, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def can_mount(folder: Path) -> bool:
    """Return whether this process may mount a small disk at a folder."""
    try:
        with small_disk(folder):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
