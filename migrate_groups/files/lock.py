"""Lock a receipt, so that only one run at a time reads and writes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from migrate_groups.errors import InvalidInput, Refused


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file against other runs while the block runs.

    The lock is a file lock of the operating system on an empty file ``.<name>.lock`` in the same folder. It ends with
    the process at the latest, also after a crash. The empty file is removed only if the locked file does not exist
    after the block.

    Raises `Refused` if another run holds the lock; `InvalidInput` if the lock can't be made.
    """
    place = path.with_name(f".{path.name}.lock")
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
