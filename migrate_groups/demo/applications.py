"""The topics, applications and consumer groups of the demo, and the processes that run its applications."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

OLD_GROUP = "big-group"
PARTITIONS = 3
_STOP_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application of the demo: one consumer of some topics.

    name: also the name of its consumer group after the migration. client: ``kafka-python`` or ``confluent-kafka``.
    pattern: globs of its topics, as TOML: each in quotes, separated by commas.
    """

    name: str
    client: str
    topics: tuple[str, ...]
    pattern: str


APPLICATIONS = (
    Application(
        name="billing",
        client="kafka-python",
        topics=("invoices", "payments.bank", "payments.card"),
        pattern='"invoices", "payments.*"',
    ),
    Application(
        name="catalog", client="confluent-kafka", topics=("catalog.items", "catalog.prices"), pattern='"catalog.*"'
    ),
    Application(name="search", client="confluent-kafka", topics=("search.clicks",), pattern='"search.*"'),
)
TOPICS = tuple(topic for application in APPLICATIONS for topic in application.topics)


def split_toml(prefix: str = "") -> str:
    """Return the text of a split spec: TOML that says which topics go to which consumer group.

    Each application of the demo gets one group, whose name is ``prefix`` plus the name of the application.
    """
    targets = "".join(
        f'\n[[target]]\ngroup = "{prefix}{application.name}"\ntopics = [{application.pattern}]\n'
        for application in APPLICATIONS
    )
    return f'source = "{OLD_GROUP}"\n{targets}'


class Stage:
    """A context manager that starts and stops the demo's processes: the producer and the applications.

    At the end of the ``with`` block, processes that still run are killed. The name of a process is ``producer`` or
    ``GROUP.APPLICATION``, such as ``big-group.billing``.
    """

    def __init__(self, bootstrap_servers: str, ledgers: Path) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._ledgers = ledgers
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def start_producer(self, topics: Sequence[str] = TOPICS) -> Path:
        """Start a producer of these topics. Return the path of the file to which it appends the ids of its records."""
        ledger = self._ledgers / "producer.txt"
        arguments = (self._bootstrap_servers, str(ledger), *topics)
        return self._spawn("producer", ledger, "migrate_groups.demo.producer", *arguments)

    def start_application(self, application: Application, group: str, *, client_id: str | None = None) -> Path:
        """Start an application in a group. Return the path of the file that gets the ids of processed records.

        client_id: if None, it is ``GROUP-confluent`` or ``GROUP-kafka-python``.
        """
        arguments = (
            application.client,
            self._bootstrap_servers,
            group,
            client_id or f"{group}-{application.client.removesuffix('-kafka')}",
        )
        name = f"{group}.{application.name}"
        ledger = self._ledgers / f"{name}.txt"
        return self._spawn(
            name, ledger, "migrate_groups.demo.application", *arguments, str(ledger), *application.topics
        )

    def stop(self, *prefixes: str) -> None:
        """Stop all processes whose names (``producer``, ``GROUP.APPLICATION``) begin with one of these prefixes.

        The processes get SIGTERM. Raises `subprocess.TimeoutExpired` if a process has not ended after 30 s.
        """
        leaving = {name: process for name, process in self._running.items() if name.startswith(prefixes)}
        for process in leaving.values():
            process.send_signal(signal.SIGTERM)
        for name, process in leaving.items():
            process.wait(_STOP_SECONDS)
            del self._running[name]

    def _spawn(self, name: str, ledger: Path, module: str, *arguments: str) -> Path:
        with (self._ledgers / f"{name}.log").open("wb") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", module, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return ledger
