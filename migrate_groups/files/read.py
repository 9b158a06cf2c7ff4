"""Read a whole file or look what is at a path, or say in one line why not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from migrate_groups.errors import InvalidInput


def read_bytes(path: Path) -> bytes:
    """Return what is in a file. Raises `InvalidInput` where it isn't there or can't be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InvalidInput(f"there is no file {path}") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in its name
        raise InvalidInput(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from error


def status(path: Path, *, follow: bool = True) -> os.stat_result | None:
    """Return what is at a path, None where nothing is; ``follow``: of what a link points to, not of the link.

    Raises `InvalidInput` where nobody can tell: a name that is too long, a folder that may not be searched.
    """
    try:
        return path.stat(follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} can't be used: {getattr(error, 'strerror', None) or error}") from error


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder's, or a link's to one. Raises as `status`."""
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def is_file(path: Path) -> bool:
    """Return whether a path is a file's, or a link's to one. Raises as `status`."""
    found = status(path)
    return found is not None and stat.S_ISREG(found.st_mode)
