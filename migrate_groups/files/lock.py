"""Lock a receipt, or a folder with copied logs, so that only one process at a time writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from migrate_groups.errors import InvalidInput, Refused
from migrate_groups.files.read import is_folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file or a folder against other processes of this tool for the length of a ``with`` block.

    Raises `Refused` if another process holds the lock; `InvalidInput` if the lock can't be made.
    """
    # A file lock of the operating system, so that the lock ends with the process, also after a crash.
    place = path / ".lock" if is_folder(path) else path.with_name(f".{path.name}.lock")
    lock = FileLock(place, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise Refused(f"another run uses {path}: wait until it ends; nothing was written") from error
    except OSError as error:
        raise InvalidInput(f"{path} can't be locked: {error.strerror or error}") from error
    try:
        yield
    finally:
        if not path.exists():  # otherwise an empty lock file would be left beside a file that was never written
            with suppress(OSError):  # the folder has become read-only: the reason for the end of the block matters more
                place.unlink()
        lock.release()
