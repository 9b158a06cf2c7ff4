"""`Together` makes the calls of several threads as one."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka.together import Together
from tests.support.broker_world import until


class Calls:
    """A function whose first call waits until `go_on`, so that further calls wait for their turn."""

    def __init__(self) -> None:
        self.made: list[dict[str, int]] = []
        self.error: BaseException | None = None
        self._go_on = threading.Event()
        self.together = Together(self._call)

    def _call(self, wanted):
        self.made.append(dict(wanted))
        if len(self.made) == 1:
            assert self._go_on.wait(30)
        elif self.error is not None:
            error, self.error = self.error, None
            raise error
        return {group: (value, len(self.made)) for group, value in wanted.items()}

    def go_on(self) -> None:
        self._go_on.set()

    def two_wait(self, pool: ThreadPoolExecutor) -> tuple[Future[Any], list[Future[Any]]]:
        """Begin a call about ``a``, and while it runs one about ``b`` and one about ``c``, which wait together."""
        first = pool.submit(self.together, {"a": 1})
        until(lambda: self.made)
        more = [pool.submit(self.together, {group: 2}) for group in ("b", "c")]
        until(lambda: self.joined() == ["b", "c"])
        return first, more

    def joined(self) -> list[str]:
        """Return the groups of the next call."""
        with self.together._lock:
            return sorted(self.together._next.wanted) if self.together._next else []


@pytest.fixture
def calls(monkeypatch) -> Calls:
    monkeypatch.setattr("migrate_groups.kafka.together._PATIENCE_SECONDS", 30)
    return Calls()


def test_waiting_calls_are_made_as_one(calls):
    """Calls that come while another one runs are made as one after it, so each is read after it was asked for."""
    with ThreadPoolExecutor(4) as pool:
        first, more = calls.two_wait(pool)
        calls.go_on()
        assert first.result() == {"a": (1, 1)}
        assert [each.result() for each in more] == [{"b": (2, 2)}, {"c": (2, 2)}]
    assert calls.made[0] == {"a": 1}
    assert calls.made[1] == {"b": 2, "c": 2}


def test_two_calls_about_one_group_are_not_joined(calls):
    """Two calls that want different things of one group each get what they want."""
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(calls.together, {"a": 1})
        until(lambda: calls.made)
        second = pool.submit(calls.together, {"b": 2})
        until(lambda: calls.joined() == ["b"])
        third = pool.submit(calls.together, {"b": 3, "c": 3})
        until(lambda: calls.joined() == ["b", "c"])
        calls.go_on()
        assert first.result()["a"][0] == 1
        assert second.result().keys() == {"b"}
        assert second.result()["b"][0] == 2
        assert {group: value for group, (value, _) in third.result().items()} == {"b": 3, "c": 3}
    assert len(calls.made) == 3


def test_each_of_the_joined_calls_gets_the_error(calls):
    """If the joined call fails, each caller gets its error."""
    with ThreadPoolExecutor(4) as pool:
        first, more = calls.two_wait(pool)
        calls.error = ClusterUnavailable("no answer")
        calls.go_on()
        first.result()
        for each in more:
            with pytest.raises(ClusterUnavailable, match="no answer"):
                each.result()
    assert len(calls.made) == 2


def test_an_interrupt_is_only_for_the_thread_that_made_the_call(calls):
    """If the thread that makes the joined call is interrupted, the others make their own calls."""
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(calls.together, {"a": 1})
        until(lambda: calls.made)
        leader = pool.submit(calls.together, {"b": 2})
        until(lambda: calls.joined() == ["b"])
        follower = pool.submit(calls.together, {"c": 2})
        until(lambda: calls.joined() == ["b", "c"])
        calls.error = KeyboardInterrupt()
        calls.go_on()
        first.result()
        with pytest.raises(KeyboardInterrupt):
            leader.result()
        assert follower.result() == {"c": (2, 3)}


def test_an_interrupt_before_the_call_does_not_keep_later_calls_waiting(calls, monkeypatch):
    """If a thread is interrupted while it waits for its turn, the calls that joined it are made."""
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(calls.together, {"a": 1})
        until(lambda: calls.made)
        turn, entered, interrupt = calls.together._turn, threading.Event(), threading.Event()

        class Turn:
            def acquire(self, timeout):
                entered.set()
                assert interrupt.wait(30)
                calls.together._turn = turn
                raise KeyboardInterrupt

        calls.together._turn = Turn()
        leader = pool.submit(calls.together, {"b": 2})
        assert entered.wait(30)
        follower = pool.submit(calls.together, {"c": 2})
        until(lambda: calls.joined() == ["b", "c"])
        interrupt.set()
        with pytest.raises(KeyboardInterrupt):
            leader.result()
        assert follower.result(30).keys() == {"c"}
        calls.go_on()
        first.result()
        assert calls.together({"d": 4}).keys() == {"d"}
