"""Find the Java that runs Kafka."""

# This module imports no third-party package, because the set-up scripts use it.

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.errors import MissingDependency

MINIMUM = 17
_HINT = f"install Java {MINIMUM} or later, for instance the package openjdk-17-jre-headless, or set JAVA_HOME"


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that is new enough for Kafka: version 17 or later.

    executable: the path of ``java``. build: the output of ``java -version``, which identifies the build.
    """

    executable: Path
    build: str


def find_java(environ: Mapping[str, str]) -> Java:
    """Return the Java in ``JAVA_HOME``, or the first Java on the ``PATH`` if ``JAVA_HOME`` is not set.

    environ: the environment variables. Raises `MissingDependency` if there is no Java, if it does not run, or if it is
    older than version 17.
    """
    home = environ.get("JAVA_HOME")
    found = shutil.which(Path(home) / "bin" / "java") if home else shutil.which("java", path=environ.get("PATH", ""))
    if found is None:
        raise MissingDependency(f"no java {f'in JAVA_HOME ({home})' if home else 'on the PATH'}: {_HINT}")
    # Run without other options, because an old JVM may not know them.
    try:
        said = subprocess.run([found, "-version"], env=environ, capture_output=True, text=True, check=False).stderr
    except OSError as error:
        raise MissingDependency(f"{found} does not run ({error.strerror}): {_HINT}") from error
    # Java 8 reports its version as 1.8. A line about JAVA_TOOL_OPTIONS may come first.
    version = re.search(r'^\S+ version "(?:1\.)?(\d+)', said, re.MULTILINE)
    if version is None:
        raise MissingDependency(f"{found} does not print its version: {_HINT}")
    if int(version[1]) < MINIMUM:
        raise MissingDependency(f"{found} is Java {version[1]}, which is too old: {_HINT}")
    return Java(executable=Path(found), build=said[version.start() :].strip())
