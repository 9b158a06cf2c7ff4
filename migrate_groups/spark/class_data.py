"""A class-data archive (JEP 350) of Spark's classes, which about halves the time that a small job takes."""

from __future__ import annotations

import atexit
import hashlib
import subprocess
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PATIENCE_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassData:
    """The paths of a class-data archive for one version of Java and one of PySpark. The files need not exist yet.

    archive: the complete archive. partial: the file to which the JVM of this process writes the archive. It is renamed
    to ``archive`` when it is complete.
    """

    archive: Path
    partial: Path

    @property
    def options(self) -> str:
        """The JVM options to load classes from the class-data archive or, if there is none, to write it at the exit.

        Empty if an earlier process failed to write the archive.
        """
        if not self.archive.exists():
            return f'"-XX:ArchiveClassesAtExit={self.partial}"'
        # Without this check a damaged archive can crash the JVM; with it, the JVM ignores the archive.
        check = "-XX:+UnlockDiagnosticVMOptions -XX:+VerifySharedSpaces"
        return f'"-XX:SharedArchiveFile={self.archive}" {check}' if self.archive.stat().st_size else ""

    def keep(self, jvm: subprocess.Popen[bytes]) -> None:
        """If there is no class-data archive yet, make this process wait at its exit until its JVM has written it.

        The wait takes about 10 s, once. Errors are ignored, because the archive only makes Spark start sooner.
        """
        if not self.archive.exists():
            atexit.register(self._keep, jvm)

    def give_up(self) -> None:
        """Replace the JVM's class-data archive by an empty file, so that no later process uses or writes an archive."""
        with suppress(OSError):
            self.archive.unlink(missing_ok=True)
            self.archive.touch()

    def _keep(self, jvm: subprocess.Popen[bytes]) -> None:
        if jvm.poll() is not None:  # The JVM has ended early, so that its archive may be incomplete.
            return
        with suppress(OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
            if jvm.stdin:
                jvm.stdin.close()  # so that the JVM exits
            jvm.wait(_PATIENCE_S)
            if self.partial.exists():
                self.partial.rename(self.archive)
                # Other partial archives are of killed processes, or of processes that no longer need to write one.
                for left in self.archive.parent.glob(f"{self.archive.stem}.partial-*"):
                    left.unlink(missing_ok=True)
            else:
                self.archive.touch()  # An empty file marks the failed attempt. An archive of another process is kept.


def class_data(folder: Path, *, java: Path, spark: Path) -> ClassData | None:
    """Return the archive of Spark's classes for this Java and this PySpark; None if ``folder`` can't be made.

    The name of the archive is a hash of both paths and of their modification times. A JVM ignores an archive that does
    not fit it.
    """
    parts = [f"{path.resolve()} {path.stat().st_mtime_ns}" for path in (java, spark)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    archive = folder.absolute() / f"classes-{key}.jsa"
    # Not the process id, because processes of several containers may share the folder.
    return ClassData(archive=archive, partial=archive.with_suffix(f".partial-{uuid.uuid4()}"))
