"""Wait while the processes of a sandbox run, and start those that have ended again when the user presses Enter."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NoReturn

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.sandbox.kept import Ended
from migrate_groups.sandbox.mirror_maker import MirrorMaker
from migrate_groups.sandbox.node import Node

_SECONDS = 0.5
_KILLED = {-signal.SIGKILL, 128 + signal.SIGTERM}  # Java handles SIGTERM, and ends with this exit code
Servers = Mapping[str, Node | MirrorMaker]


def addresses(servers: Servers) -> list[str]:
    """Return a line for each server: its name, the address of a broker, and the process id."""
    return [
        f"{name} is {f'{each.bootstrap_servers}, ' if isinstance(each, Node) else ''}process {each.kept.server_pid}"
        for name, each in servers.items()
    ]


def serve(servers: Servers, stdin: IO[str] | None, say: Callable[[str], None]) -> NoReturn:
    """Wait until a signal ends this process. When a server ends, say so; at Enter, start it again with its data.

    servers: by name. stdin: where Enter is read; None, or at its end: nothing is started again. Raises
    `ClusterUnavailable` once all brokers have ended and none can be started again, or if a start fails.
    """
    ended: list[str] = []
    while True:
        for name, server in servers.items():
            if name not in ended and isinstance(end := server.kept.hear(0), Ended):
                ended.append(name)
                reason = "" if end.exit_code in _KILLED else f" ({end})"
                say(f"{name} has ended{reason}" + (": press Enter here to start it again" if stdin else ""))
        if stdin is None and all(name in ended for name, each in servers.items() if isinstance(each, Node)):
            raise ClusterUnavailable("Kafka has ended: run the command again")
        match _pressed(stdin):
            case None:
                stdin = None
            case True:
                _start([servers[name] for name in ended])
                for name in ended:
                    say(f"{name} runs again, process {servers[name].kept.server_pid}")
                ended.clear()


def _start(servers: Sequence[Node | MirrorMaker]) -> None:
    for each in servers:
        each.start()
    for each in servers:  # after all starts, because one broker of several may not answer alone
        if isinstance(each, Node):
            each.await_answer()


def _pressed(stdin: IO[str] | None) -> bool | None:
    """Return whether a line arrives on stdin within half a second; None if stdin is at its end."""
    # A process in the background that reads from the terminal is stopped, so it does not read.
    background = stdin is not None and stdin.isatty() and os.tcgetpgrp(stdin.fileno()) != os.getpgrp()
    watched = [] if stdin is None or background else [stdin.fileno()]
    ready = select.select(watched, [], [], _SECONDS)[0]
    try:
        return None if stdin is None or (ready and not os.read(ready[0], 4096)) else bool(ready)
    except OSError:  # such as the stdin that nohup leaves, which can't be read
        return None
