"""Fixtures of end-to-end tests on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker_world import broker_world
from tests.support.cli import Cli, CliHere


@pytest.fixture
def world(bootstrap_servers: str):
    """Kafka clients with which a test makes and inspects its own topics and groups on the shared broker."""
    with broker_world(bootstrap_servers) as others:
        yield others


@pytest.fixture
def cli(bootstrap_servers: str, tmp_path: Path) -> Cli:
    """A `Cli`, which runs the tool's commands in an empty folder, with the broker's address in the environment."""
    return Cli(tmp_path, bootstrap_servers)


@pytest.fixture
def here(bootstrap_servers: str, tmp_path: Path, spark) -> CliHere:
    """A `CliHere`, which runs the tool's commands in this process, in the same folder as ``cli``.

    Spark jobs use the Spark session of the test run. Pass absolute paths for their output, because Spark resolves
    relative paths against the folder in which it was started.
    """
    return CliHere(tmp_path, bootstrap_servers)
