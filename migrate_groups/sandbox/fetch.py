"""Download jars into a folder, once. The folder appears only when the download is complete."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from zipfile import is_zipfile

from filelock import FileLock

from migrate_groups.errors import ClusterUnavailable, UsageError
from migrate_groups.sandbox.ivy import FetchProgress, Ivy
from migrate_groups.sandbox.java import Java

_COMPLETE = "complete.json"

Retrieve = Callable[[Ivy, Path], Collection[str]]
"""A function that downloads jars with an `Ivy` into a folder. It returns the names, without ``.jar``, of jars that the
folder must then contain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Downloads jars from a Maven repository into a folder, if they are not there yet.

    java: runs the downloader, Apache Ivy. mirror: the URL of a Maven repository; None: Maven Central. report: called
    with the progress of a download.
    """

    java: Java
    mirror: str | None = None
    report: Callable[[FetchProgress], None] = lambda progress: None

    def jars(self, folder: Path, what: str, retrieve: Retrieve) -> tuple[Path, ...]:
        """Return the paths of the jars in ``folder``; download them first if they are not all there.

        what: the name of the jars in error messages. retrieve: downloads jars into a folder, and returns the names,
        without ``.jar``, of jars that the folder must then contain.

        Raises `ClusterUnavailable` if a download fails; `UsageError` if the folder can't be written;
        `MissingDependency` if PySpark is not installed.
        """
        try:
            if not _complete(folder):
                folder.parent.mkdir(parents=True, exist_ok=True)
                with FileLock(folder.with_name(f"{folder.name}.lock")):
                    if not _complete(folder):
                        self._fetch(folder, what, retrieve)
        except OSError as error:
            raise UsageError(f"the jars of {what} can't be kept in {folder}: {error.strerror or error}") from error
        return tuple(sorted(folder.glob("*.jar")))

    def _fetch(self, folder: Path, what: str, retrieve: Retrieve) -> None:
        """Download jars with ``retrieve`` into a new folder, and rename it to ``folder`` when it is complete.

        An existing ``folder`` is replaced. what: the name of the jars in error messages.
        """
        work = folder.with_name(f"{folder.name}.partial")
        work.mkdir(exist_ok=True)
        self.report(FetchProgress())
        new = Path(tempfile.mkdtemp(prefix="jars-", dir=work))
        _check(new, what, retrieve(Ivy(java=self.java, folder=work, mirror=self.mirror, report=self.report), new))
        sizes = {jar.name: jar.stat().st_size for jar in new.glob("*.jar")}
        (new / _COMPLETE).write_text(json.dumps(sizes, indent=1, sort_keys=True), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
        shutil.rmtree(work, ignore_errors=True)


def _check(folder: Path, what: str, wanted: Collection[str]) -> None:
    """Raise `ClusterUnavailable` if a jar in ``folder`` is damaged, or if a jar of ``wanted`` is missing.

    what: the name of the jars in the error message. wanted: names of jars, without ``.jar``.
    """
    # A mirror may have returned a web page in place of a jar.
    damaged = [jar.name for jar in sorted(folder.glob("*.jar")) if not is_zipfile(jar)]
    missing = sorted(set(wanted) - {jar.stem for jar in folder.glob("*.jar")})
    if damaged or missing:
        raise ClusterUnavailable(
            f"{what} was not fetched completely (damaged or missing: {', '.join(damaged + missing)}): "
            f"check the mirror, delete {folder.parent}, and try again"
        )


def _complete(folder: Path) -> bool:
    """Return whether a download into ``folder`` was completed, and every jar still has its original size."""
    try:
        sizes = json.loads((folder / _COMPLETE).read_text(encoding="utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False
