"""Make a new folder for the results of a command."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from migrate_groups.errors import InvalidInput
from migrate_groups.text import some


@contextmanager
def new_folder(out: Path, said: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """Make a folder, and delete it again if the block raises an error before any result in it is complete.

    Yields a function that the block calls when a result is complete, with a name for it, such as ``tables``. If the
    block raises an error later, the folder stays, and ``said`` gets a line that names what is complete. Raises
    `InvalidInput` if the folder exists already or can't be made.
    """
    try:
        out.mkdir()
    except FileExistsError:
        raise InvalidInput(f"{out} exists already: pass another folder, or remove it") from None
    except OSError as error:
        raise InvalidInput(f"{out} can't be a new folder: {error.strerror or error}") from error
    complete: list[str] = []
    try:
        yield complete.append
    except BaseException:
        if complete:
            said(f"{some(complete)} written to {out}: they are complete, and stay")
        else:
            shutil.rmtree(out, ignore_errors=True)
        raise
