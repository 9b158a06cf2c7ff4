"""Fixtures of end-to-end tests on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker_world import broker_world
from tests.support.cli import Cli, CliHere


@pytest.fixture
def world(bootstrap_servers: str):
    """Other clients on the broker."""
    with broker_world(bootstrap_servers) as others:
        yield others


@pytest.fixture
def cli(bootstrap_servers: str, tmp_path: Path) -> Cli:
    """The command line in an empty folder, with the broker's address in the environment."""
    return Cli(tmp_path, bootstrap_servers)


@pytest.fixture
def here(bootstrap_servers: str, tmp_path: Path, spark) -> CliHere:
    """The command line in this process, in the same folder. Its jobs use the shared Spark session.

    A job writes only to absolute paths, because Spark stays in the folder in which it was started.
    """
    return CliHere(tmp_path, bootstrap_servers)
