"""`Holds` sends the heartbeats of all groups that a client holds."""

from __future__ import annotations

import threading

import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.hold import Holds
from tests.support.broker_world import until


class Held:
    """A held group, with what it is told."""

    session_timeout = 0.05

    def __init__(self, group: str) -> None:
        self.group = group
        self.noted: list[object] = []

    def note(self, answer: object) -> None:
        self.noted.append(answer)


@pytest.fixture
def holds() -> Holds:
    config = ClientConfig(bootstrap_servers="127.0.0.1:1")
    return Holds(config, KafkaConnection(config))


def senders() -> int:
    return sum(thread.name == "heartbeats" for thread in threading.enumerate())


def test_one_thread_sends_the_heartbeats_of_all_groups(holds, monkeypatch):
    """Groups that are held one after the other do not get a further thread each, and no thread stays at the end."""
    beats: list[set[str]] = []
    monkeypatch.setattr(holds, "beat", lambda held: beats.append({each.group for each in held}))
    before = senders()
    for number in range(5):
        one = Held(f"g{number}")
        holds.add(one)
        assert senders() == before + 1
        holds.remove(one)
    both = [Held("a"), Held("b")]
    for each in both:
        holds.add(each)
    until(lambda: {"a", "b"} in beats)
    assert senders() == before + 1
    for each in both:
        holds.remove(each)
    until(lambda: senders() == before)


def test_each_group_is_told_that_no_heartbeat_was_sent(holds, monkeypatch):
    """If heartbeats can't be sent, each group is told so, and later heartbeats are sent."""
    failures = [KeyError("bug")]

    def beat(held):
        if failures:
            raise failures.pop()
        for each in held:
            each.note(None)

    monkeypatch.setattr(holds, "beat", beat)
    held = Held("a")
    holds.add(held)
    until(lambda: None in held.noted)
    holds.remove(held)
    assert isinstance(held.noted[0], ClusterUnavailable)
