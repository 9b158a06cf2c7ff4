"""Read a whole file, or find out whether a path names a file or a folder. Errors say in one line why this failed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from migrate_groups.errors import InvalidInput


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file. Raises `InvalidInput` if it does not exist or can't be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InvalidInput(f"there is no file {path}") from error
    except (OSError, ValueError) as error:  # ValueError: the name contains a NUL
        raise InvalidInput(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from error


def status(path: Path, *, follow: bool = True) -> os.stat_result | None:
    """Return the `os.stat` result of a path, or None if nothing exists there.

    follow: return the status of the file that a symbolic link points to, and not of the link itself.

    Raises `InvalidInput` if the path can't be used: its name is too long, or this user may not search a folder of it.
    """
    try:
        return path.stat(follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} can't be used: {getattr(error, 'strerror', None) or error}") from error


def is_folder(path: Path) -> bool:
    """Return whether a path names a folder, or a link to a folder. Raises as `status`."""
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def is_file(path: Path) -> bool:
    """Return whether a path names a regular file, or a link to one. Raises as `status`."""
    found = status(path)
    return found is not None and stat.S_ISREG(found.st_mode)
