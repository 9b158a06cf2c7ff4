"""One run at a time: a lock beside a receipt, held from before it is read until the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from migrate_groups.errors import InvalidInput, Refused


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep every other run away from a file meanwhile.

    The lock is an empty hidden file beside it, which stays as long as the file; the lock itself ends with the process,
    however it ends. Raises `Refused` where another run has it, `InvalidInput` where the lock can't be made.
    """
    place = path.with_name(f".{path.name}.lock")
    lock = FileLock(place, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise Refused(f"another run is at work with {path}: wait for its end; nothing was written") from error
    except OSError as error:
        raise InvalidInput(f"{path} can't be locked: {error.strerror or error}") from error
    try:
        yield
    finally:
        if not path.exists():  # nothing was kept, so that nothing need be found again
            place.unlink(missing_ok=True)
        lock.release()
