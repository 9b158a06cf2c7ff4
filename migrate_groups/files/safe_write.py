"""Write files whole or not at all, and make folders for the results of commands.

A file is first written to a temporary file beside the target, which is fsynced and renamed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from migrate_groups.errors import InvalidInput
from migrate_groups.files.read import is_folder, status
from migrate_groups.text import some

# Errors of a file system without hard links (FAT, some FUSE and network file systems), and of one that can't sync a
# folder.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NO_FSYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def check_writable(target: Path, *, replace: bool) -> None:
    """Raise `InvalidInput` if `write_whole` could not write the file ``target``. Writes nothing.

    replace: whether the target may exist. A symbolic link is always refused.
    """
    if is_folder(target):
        raise InvalidInput(f"{target} is a folder; name a file")
    there = status(target, follow=False)
    # A symbolic link is refused, because the rename would replace the link and not the file that it points to.
    if there and not stat.S_ISREG(there.st_mode):
        raise InvalidInput(f"{target} is a link, a device or a pipe, not a file; choose another name")
    if there and not replace:
        raise _exists(target)
    if not is_folder(target.parent):
        raise InvalidInput(f"{target} can't be written: folder {target.parent} does not exist; make it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InvalidInput(
            f"{target} can't be written: no permission to write in {target.parent}; choose another folder"
        )


def write_whole(target: Path, write: Callable[[BinaryIO], object], *, replace: bool = False) -> None:
    """Write a file whole or not at all.

    write: writes the content to the open file that it gets. Raises `InvalidInput` if the file can't be written, or if
    it exists and ``replace`` is false; also if it is written, but not synced to the disk, which the message says.
    """
    check_writable(target, replace=replace)
    there = status(target)
    try:
        _sweep(target.parent)
        with _temporary(target.parent) as (temporary, file):
            if there:
                os.fchmod(file.fileno(), stat.S_IMODE(there.st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if replace:
                temporary.replace(target)
            else:
                _give_new_name(temporary, target)
    except FileExistsError as error:
        raise _exists(target) from error
    except OSError as error:
        raise InvalidInput(f"{target} can't be written: {error.strerror or error}") from error
    try:
        _fsync_folder(target.parent)
    except OSError as error:
        raise InvalidInput(
            f"{target} is written, but a crash of this machine may lose it, because folder {target.parent} can't be "
            f"synced to the disk: {error.strerror or error}"
        ) from error


def remove(target: Path) -> None:
    """Remove a file if it exists. Raises `InvalidInput` if it can't be removed."""
    try:
        target.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"{target} can't be removed: {error.strerror or error}") from error


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


@contextmanager
def _temporary(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Yield the path of a new temporary file and the open file. Remove the file at the end if it was not renamed."""
    while True:
        # In the folder of the target, because a rename works only within one file system.
        path = folder / f".migrate-groups-{secrets.token_hex(8)}.tmp"
        with path.open("xb") as file:
            try:
                # Locked, because `_sweep` removes temporary files that are not locked.
                with suppress(OSError):  # a file system without locks: there `_sweep` removes nothing
                    fcntl.flock(file, fcntl.LOCK_EX)
                if path.exists():  # if not, `_sweep` in another process removed the file before it was locked
                    yield path, file
                    return
            finally:
                path.unlink(missing_ok=True)


def _exists(target: Path) -> InvalidInput:
    return InvalidInput(f"{target} exists already; choose another name, or pass --force to replace it")


def _give_new_name(temporary: Path, target: Path) -> None:
    """Give a temporary file its name. Raises `FileExistsError` if another file has the name."""
    try:
        os.link(temporary, target)  # because a rename would replace a file that another process has just made
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A kill between these two lines leaves an empty file, and not one of another process.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        temporary.replace(target)


def _sweep(folder: Path) -> None:
    """Remove from a folder the temporary files that killed processes left in it."""
    for path in folder.glob(".migrate-groups-*.tmp"):
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while another process writes it
            path.unlink()


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FSYNC:
            raise
    finally:
        os.close(descriptor)
