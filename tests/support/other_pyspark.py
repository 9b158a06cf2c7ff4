"""Install a version of PySpark beside that of `.venv`, with what Spark Connect needs: ``other_pyspark.py VERSION``.

The script installs it once, in the user's cache, and prints its folder, for the PYTHONPATH.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from migrate_groups.sandbox.jars import user_cache


def installed(version: str) -> Path:
    """Return the folder with this version of PySpark; the first call for a version downloads some 500 MB."""
    folder = user_cache() / f"pyspark-{version}-python{sys.version_info.major}.{sys.version_info.minor}"
    complete = folder / "complete"
    if not complete.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(folder)]
        subprocess.run([*command, f"pyspark[connect]=={version}"], check=True, stdout=sys.stderr)
        complete.touch()
    return folder


if __name__ == "__main__":
    sys.stdout.write(f"{installed(sys.argv[1])}\n")
