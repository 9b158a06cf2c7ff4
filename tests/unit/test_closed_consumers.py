"""How the tests' helper ``close_consumer`` closes a consumer."""

from __future__ import annotations

import threading

import pytest

from tests.support import closed_consumers


class _NeverClosed:
    def __init__(self) -> None:
        self.end = threading.Event()

    def poll(self, timeout: float) -> None:
        self.polled = timeout

    def close(self) -> None:
        self.end.wait()


def test_consumers_that_are_never_closed_are_a_warning(monkeypatch):
    """If closing consumers does not end within the time limit, ``close_consumer`` warns once, and returns.

    It polls each consumer before, so that none is closed with an assignment that it has not taken.
    """
    monkeypatch.setattr(closed_consumers, "_SECONDS", 0.01)
    consumers = [_NeverClosed(), _NeverClosed()]
    with pytest.warns(UserWarning, match="not closed within a minute: 2") as warned:
        closed_consumers.close_consumer(*consumers)
    assert len(warned) == 1
    assert [each.polled for each in consumers] == [0, 0]
    for each in consumers:
        each.end.set()
