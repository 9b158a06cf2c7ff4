"""Read a whole file, or find out whether a path names a file or a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from migrate_groups.errors import InvalidInput
from migrate_groups.text import did_you_mean


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file. Raises `InvalidInput` if it does not exist or can't be read."""
    found = status(path)
    if found is not None and (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        raise InvalidInput(f"{path} is a device, which may have no end: name a file, or - for stdin")
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InvalidInput(f"{path} does not exist: {if_missing(path) or 'check the path'}") from error
    except IsADirectoryError as error:
        takers = "pass it to status, rollback, hand-back, delete-offsets, reconcile or audit, or "
        kind, advice = ("run directory", takers) if status(path / "receipt.json") else ("folder", "")
        raise InvalidInput(f"{path} is a {kind}: {advice}name a file in it") from error
    except (OSError, ValueError) as error:  # ValueError: the name contains a NUL
        raise InvalidInput(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from error


def if_missing(path: Path) -> str:
    """Return advice about a path that does not exist, such as ``did you mean a.csv?``; empty if there is none."""
    try:
        if path.suffix == ".run" and path.with_suffix("").is_file():
            return f"migrate {path.with_suffix('')} makes it"
        return did_you_mean([path.name], [each.name for each in path.parent.iterdir()], 0.8)
    except (OSError, ValueError):
        return ""


def status(path: Path, *, follow: bool = True) -> os.stat_result | None:
    """Return the `os.stat` result of a path, or None if nothing exists there.

    follow: follow symbolic links. Raises `InvalidInput` if the path can't be used, for instance for lack of permission.
    """
    try:
        return path.stat(follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} can't be used: {getattr(error, 'strerror', None) or error}") from error


def is_folder(path: Path) -> bool:
    """Return whether a path names a folder, or a link to a folder. Raises `InvalidInput` if the path can't be used."""
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def is_file(path: Path) -> bool:
    """Return whether a path names a regular file, or a link to one. Raises `InvalidInput` if the path can't be used."""
    found = status(path)
    return found is not None and stat.S_ISREG(found.st_mode)
