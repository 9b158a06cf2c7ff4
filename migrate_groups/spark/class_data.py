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
    """The path of the archive for one Java and one PySpark. The file may not exist yet.

    partial: the file to which the JVM of this process writes the archive; it is renamed once it is complete.
    """

    archive: Path
    partial: Path

    @property
    def options(self) -> str:
        """JVM options that use the archive, or that write it when the JVM exits; empty if writing failed before."""
        if not self.archive.exists():
            return f'"-XX:ArchiveClassesAtExit={self.partial}"'
        # Without this check a damaged archive can crash the JVM; with it, the JVM ignores the archive.
        check = "-XX:+UnlockDiagnosticVMOptions -XX:+VerifySharedSpaces"
        return f'"-XX:SharedArchiveFile={self.archive}" {check}' if self.archive.stat().st_size else ""

    def keep(self, jvm: subprocess.Popen[bytes]) -> None:
        """Keep the archive that the JVM writes at its exit: wait for it when this process exits (some 10 s, once).

        The JVM exits when its stdin is closed. Errors are ignored, because the archive only saves time.
        """
        if not self.archive.exists():
            atexit.register(self._keep, jvm)

    def give_up(self) -> None:
        """Put an empty file in the archive's place, which tells later starts that an attempt to make it has failed."""
        with suppress(OSError):
            self.archive.unlink(missing_ok=True)
            self.archive.touch()

    def _keep(self, jvm: subprocess.Popen[bytes]) -> None:
        if jvm.poll() is not None:  # it was ended early, so its archive may be incomplete
            return
        with suppress(OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
            if jvm.stdin:
                jvm.stdin.close()
            jvm.wait(_PATIENCE_S)
            if self.partial.exists():
                self.partial.rename(self.archive)
                # Killed processes leave theirs, and a process that still writes one has no use for it any more.
                for left in self.archive.parent.glob(f"{self.archive.stem}.partial-*"):
                    left.unlink(missing_ok=True)
            else:
                self.archive.touch()  # marks the failed attempt; an archive that another process has made stays


def class_data(folder: Path, *, java: Path, spark: Path) -> ClassData | None:
    """Return the archive in ``folder`` for this Java and these jars of PySpark; None if the folder can't be written.

    The file name is a hash of both paths and modification times. A JVM ignores an archive that does not fit it.
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
