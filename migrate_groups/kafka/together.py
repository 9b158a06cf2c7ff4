"""Join the requests of several threads into one, because brokers answer about many groups as fast as about one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from migrate_groups.errors import MigrateGroupsError

V = TypeVar("V")
T = TypeVar("T")

_PATIENCE_SECONDS = 0.25


class Together(Generic[V, T]):
    """Calls a function that reads something of several groups, once for the calls of several threads.

    While the function runs, further calls wait for at most 0.25 s, and are then made as one. So each result was read
    after its call began. call: gets values by group, and returns results by group.
    """

    def __init__(self, call: Callable[[Mapping[str, V]], Mapping[str, T]]) -> None:
        self._call = call
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._next: _Joined[V, T] | None = None

    def __call__(self, wanted: Mapping[str, V]) -> Mapping[str, T]:
        """Return the results by group, in the order of ``wanted``. Raises the errors of the function."""
        with self._lock:
            joined = self._next
            # Two calls may want different things of one group.
            is_first = joined is None or not joined.wanted.keys().isdisjoint(wanted)
            if joined is None or is_first:
                joined = self._next = _Joined()
            joined.wanted |= wanted
        if is_first:
            self._make(joined)
        else:
            joined.done.wait()
        if isinstance(joined.error, MigrateGroupsError):
            raise joined.error
        # Another error, such as an interrupt, is only for the thread that made the call.
        found = joined.found if joined.found is not None else self._call(wanted)
        return {group: found[group] for group in wanted}

    def _make(self, joined: _Joined[V, T]) -> None:
        has_turn = False
        try:  # an interrupt may come at any time, and must not keep the joined calls waiting
            has_turn = self._turn.acquire(timeout=_PATIENCE_SECONDS)
            self._close(joined)
            joined.found = self._call(joined.wanted)
        except BaseException as error:
            joined.error = error
            self._close(joined)
            raise
        finally:
            joined.done.set()
            if has_turn:
                self._turn.release()

    def _close(self, joined: _Joined[V, T]) -> None:
        """Let no further call join these."""
        with self._lock:
            if self._next is joined:
                self._next = None


class _Joined(Generic[V, T]):
    """The calls that are made as one, and what came of them."""

    def __init__(self) -> None:
        self.wanted: dict[str, V] = {}
        self.found: Mapping[str, T] | None = None
        self.error: BaseException | None = None
        self.done = threading.Event()
