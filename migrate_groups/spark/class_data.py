"""Make Spark start faster with an archive of its Java classes (class-data sharing, JEP 350)."""

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
    """The paths of an archive of Spark's Java classes, which makes Spark start faster. The files need not exist yet.

    archive: the complete archive. partial: the unfinished archive, which this process's JVM writes at its exit.
    """

    archive: Path
    partial: Path

    @property
    def options(self) -> str:
        """The JVM options to load Spark's classes from the archive. If there is no archive: the options to write it.

        The text is empty if an earlier attempt to write or to load the archive failed.
        """
        if not self.archive.exists():
            return f'"-XX:ArchiveClassesAtExit={self.partial}"'
        # Without this check a damaged archive can crash the JVM; with it, the JVM ignores the archive.
        check = "-XX:+UnlockDiagnosticVMOptions -XX:+VerifySharedSpaces"
        return f'"-XX:SharedArchiveFile={self.archive}" {check}' if self.archive.stat().st_size else ""

    def keep(self, jvm: subprocess.Popen[bytes]) -> None:
        """Make this process wait at its exit until the JVM has written the archive of Spark's classes.

        The wait takes about 10 s. If the archive exists already, there is no wait. Errors are ignored.
        """
        if not self.archive.exists():
            atexit.register(self._keep, jvm)

    def give_up(self) -> None:
        """Replace the archive of Spark's classes by an empty file, so that later processes start without an archive."""
        with suppress(OSError):
            self.archive.unlink(missing_ok=True)
            self.archive.touch()

    def _keep(self, jvm: subprocess.Popen[bytes]) -> None:
        if jvm.poll() is not None:  # The JVM has ended early, so that its archive may be incomplete.
            return
        # Errors are ignored, because the archive only makes Spark start sooner.
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
    """Return the paths of an archive of Spark's Java classes in ``folder``; None if ``folder`` can't be created.

    java: the path of the Java program. spark: the folder of Spark's jars. If one of them changes, the paths change.
    """
    parts = [f"{path.resolve()} {path.stat().st_mtime_ns}" for path in (java, spark)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    # A JVM ignores an archive that does not fit it.
    archive = folder.absolute() / f"classes-{key}.jsa"
    # Not the process id, because processes of several containers may share the folder.
    return ClassData(archive=archive, partial=archive.with_suffix(f".partial-{uuid.uuid4()}"))
