"""Try a kind of login on a broker with a listener for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import KafkaJars
from migrate_groups.sandbox.java import Java
from tests.support.broker_world import BrokerWorld, broker_world, wait_for_coordinators
from tests.support.cli import Cli
from tests.support.hand_over import HandOver

DATA = Path(__file__).parents[1] / "data"
LISTENER = "listener.name.sasl_plaintext"


class LoginCheck:
    """A broker whose SASL_PLAINTEXT listener has the kind of login under test, and a topic with ten records."""

    def __init__(self, world: BrokerWorld, folder: Path, address: str) -> None:
        self._world, self._folder, self._address = world, folder, address
        self._topic = world.create_topic()
        world.produce(self._topic, 0, 10)

    def cli(self, way: str, properties: str, environment: Mapping[str, str]) -> Cli:
        """Return a `Cli` with these client properties and environment, in a new folder named ``way``."""
        folder = self._folder / way
        folder.mkdir()
        (folder / "client.properties").write_text(f"security.protocol=SASL_PLAINTEXT\n{properties}\n")
        cli = Cli(folder, self._address).cold
        path = os.pathsep.join(filter(None, sys.path))
        cli.environment |= dict(environment) | {
            "MIGRATE_GROUPS_COMMAND_CONFIG": "client.properties",
            "PYTHONPATH": path,
        }
        return cli

    def hand_over(self, cli: Cli) -> HandOver:
        """Return a new source group, with a split spec for it in the folder of ``cli``."""
        return HandOver(cli, self._world, self._topic)


@contextmanager
def login_check(jars: KafkaJars, java: Java, settings: Mapping[str, str], folder: Path) -> Iterator[LoginCheck]:
    """Run a broker with these settings, and yield a `LoginCheck`. Commands run in subfolders of ``folder``."""
    listeners = {"SASL_PLAINTEXT": "SASL_PLAINTEXT"}
    with start_sandbox(jars, java=java, settings=settings, listeners=listeners) as sandbox:
        wait_for_coordinators(sandbox.bootstrap_servers)
        with broker_world(sandbox.bootstrap_servers) as world:
            yield LoginCheck(world, folder, sandbox.node.listeners["SASL_PLAINTEXT"])
