"""Patch the command line for a story (a random sequence of commands): connections, clock, files, threads, output.

The other modules in this folder only call the command line, except `reverts`, which undoes fixes, and `broker`, which
uses the real clients.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from unittest import mock

from migrate_groups.api.system_clock import SystemClock
from migrate_groups.cli import console
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.signals import Stops
from migrate_groups.migration.ports import Clients

_REPLACED = ("replace", "rename")  # the functions of `os` with which a run's files are put in place


@contextmanager
def opened_up(world, *, tables: bool = False) -> Iterator[None]:
    """Connect every command in this process to ``world``, for the length of a ``with`` block.

    world: a `World`. tables: whether tables are printed, which takes most of a command's time.
    """
    with ExitStack() as patched:

        def put(place: object, name: str, value: object) -> None:
            patched.enter_context(mock.patch.object(place, name, value))

        put(Connection, "open_reader", lambda _: nullcontext(world.request))
        put(Connection, "open_writer", lambda _: nullcontext(Clients(world.request, world.second)))
        for name in ("now", "monotonic", "sleep"):
            method = getattr(world, name)
            put(SystemClock, name, lambda _, *arguments, method=method: method(*arguments))
        for name in _REPLACED:
            put(os, name, _watched(world, getattr(os, name)))
        # The thread that asks the second client runs at once to its end, so that a story is the same each time.
        put(threading.Thread, "start", start_at_once)
        # Only the main thread can handle signals, and of two commands at once none runs there.
        put(Stops, "heed", lambda _: None)
        put(Stops, "none_lost", lambda _: nullcontext())
        if not tables:
            put(console, "_print", _print_lines)
        yield


_start_beside = threading.Thread.start


def start_at_once(thread: threading.Thread) -> None:
    """Start a thread. The one that asks the second client runs to its end, before this function returns."""
    asks = getattr(thread._target, "__name__", "") == "_ask"  # type: ignore[attr-defined]  # CPython's own
    (thread.run if asks else lambda: _start_beside(thread))()


def _watched(world, function):
    def watched(source, target, **named):
        with world.file(os.path.basename(target)):  # noqa: PTH119  os.replace gets a string
            return function(source, target, **named)

    return watched


def _print_lines(stream, lines) -> None:
    stream.write("".join(f"{line}\n" for line in lines if isinstance(line, str)))
