"""What end-to-end tests on a real broker share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker_world import broker_world
from tests.support.cli import Cli, CliHere


@pytest.fixture
def world(bootstrap_servers: str):
    """Others' deeds on the broker."""
    with broker_world(bootstrap_servers) as deeds:
        yield deeds


@pytest.fixture
def cli(bootstrap_servers: str, tmp_path: Path) -> Cli:
    """The command line, in an empty folder, with the broker's address in the environment."""
    return Cli(tmp_path, bootstrap_servers)


@pytest.fixture
def here(bootstrap_servers: str, tmp_path: Path, spark) -> CliHere:
    """The command line in this process, in the same folder: its jobs borrow the shared Spark session.

    A job writes to absolute paths only, since Spark stays in the folder that it was started in.
    """
    return CliHere(tmp_path, bootstrap_servers)
