"""Where the command line talks: stdout is data, stderr is talk; files and pipes; the clock."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType

if TYPE_CHECKING:
    from migrate_groups.offsets.snapshot import Snapshot

# Not a terminal: nothing is cut to eighty columns, so that a pull request or a log shows whole names.
_WIDE = 200


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """See `Clock.now`."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        time.sleep(max(0.0, seconds))


def talk(*lines: RenderableType) -> None:
    """Say something to the person, on stderr."""
    _print(Console(stderr=True, highlight=False, soft_wrap=False, width=_width(sys.stderr)), lines)


def show(*lines: RenderableType) -> None:
    """Print data, on stdout."""
    _print(Console(highlight=False, width=_width(sys.stdout)), lines)


def load_table(path: Path) -> Snapshot:
    """Return the snapshot in a file, or on stdin for ``-``."""
    from migrate_groups.files import tables

    return tables.load(path, stream=sys.stdin.buffer if str(path) == "-" else None)


def check_output(path: Path, *, force: bool) -> None:
    """Check before any work that the output can be written. Raises `InvalidInput` or `UsageError`."""
    if str(path) == "-":
        return
    from migrate_groups.files import tables
    from migrate_groups.files.safe_write import check_writable

    tables.check_extension(path)
    check_writable(path, replace=force)


def save_table(snapshot: Snapshot, path: Path, *, force: bool) -> None:
    """Write the snapshot to a file, or as CSV to stdout for ``-``."""
    from migrate_groups.files import tables

    if str(path) == "-":
        sys.stdout.buffer.write(tables.to_csv(snapshot))
        sys.stdout.buffer.flush()
    else:
        tables.save(snapshot, path, replace=force)


def _width(stream: object) -> int | None:
    return None if getattr(stream, "isatty", lambda: False)() else _WIDE


def _print(console: Console, lines: tuple[RenderableType, ...]) -> None:
    for line in lines:
        console.print(line)
