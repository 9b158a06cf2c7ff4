"""Fixtures of end-to-end tests on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import CliHere


@pytest.fixture
def here(bootstrap_servers: str, tmp_path: Path, spark) -> CliHere:
    """A `CliHere`, which runs the tool's commands in this process, in the same folder as ``cli``.

    Spark jobs use the Spark session of the test run. Pass absolute paths for their output, because Spark resolves
    relative paths against the folder in which it was started.
    """
    return CliHere(tmp_path, bootstrap_servers)
