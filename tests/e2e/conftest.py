"""Fixtures of end-to-end tests on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker_world import broker_world
from tests.support.cli import Cli, CliHere


@pytest.fixture
def world(bootstrap_servers: str):
    """The shared broker, with clients, topics and groups of this test."""
    with broker_world(bootstrap_servers) as others:
        yield others


@pytest.fixture
def cli(bootstrap_servers: str, tmp_path: Path) -> Cli:
    """The command line in an empty folder, with the broker's address in the environment."""
    return Cli(tmp_path, bootstrap_servers)


@pytest.fixture
def here(bootstrap_servers: str, tmp_path: Path, spark) -> CliHere:
    """The command line in this process, in the same folder as ``cli``. Its jobs use the shared Spark session.

    Pass absolute paths for the output of a job, because Spark stays in the folder in which Spark was started.
    """
    return CliHere(tmp_path, bootstrap_servers)
