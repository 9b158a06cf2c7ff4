"""How the tests' helper ``close_consumer`` closes a consumer."""

from __future__ import annotations

import threading

import pytest

from tests.support import closed_consumers


class _NeverClosed:
    def __init__(self) -> None:
        self.end = threading.Event()

    def close(self) -> None:
        self.end.wait()


def test_a_consumer_that_is_never_closed_is_a_warning(monkeypatch):
    """If closing a consumer does not end within the time limit, ``close_consumer`` warns and returns."""
    monkeypatch.setattr(closed_consumers, "_SECONDS", 0.01)
    consumer = _NeverClosed()
    with pytest.warns(UserWarning, match="was not closed"):
        closed_consumers.close_consumer(consumer)
    consumer.end.set()
