"""The tests that depend on Kafka's version, run with each version of Kafka that the docs name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from migrate_groups.sandbox.versions import DEFAULT_VERSION, VERSIONS

TESTS = Path(__file__).parents[1]
FILES = ("contract", "broker/test_interoperation.py", "broker/test_living_group.py")
SECONDS = 900


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("version", [version for version in VERSIONS if version != DEFAULT_VERSION])
def test_other_versions_of_kafka(version, tmp_path):
    """The tests in ``FILES`` also pass on other versions of Kafka, except tests of features that a version lacks."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "tests")]
    command += ["--long", "--kafka", version, *(str(TESTS / file) for file in FILES)]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
