"""Read a whole file, or say in one line why not."""

from __future__ import annotations

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
