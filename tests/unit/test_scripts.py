"""The scripts that measure and compare say what they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.parametrize("name", ["bench_audit", "check_offsets_log"])
def test_help(name):
    """``--help`` is no number of records."""
    command = [sys.executable, SCRIPTS / f"{name}.py", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {name}.py")
