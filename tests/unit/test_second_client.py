"""The second Kafka client runs in a child process, which is replaced once and whose late answers are never used."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka import second_client, second_client_process
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.migration.reading.requests import read_committed
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.processes import children_of, gone


class Child:
    """A stand-in for the child process: all instances take their answers from one list. None stands for no answer."""

    script: list[object]
    asked: list[str]
    ended: list[Child]

    def __init__(self, program):
        pass

    def answer(self, question, timeout):
        self.asked.append(msgspec.json.decode(question)["verb"])
        return self.script.pop(0)

    def end(self):
        self.ended.append(self)


@pytest.fixture
def children(monkeypatch):
    """Replace the real child process by `Child`, with an empty list of answers."""
    Child.script, Child.asked, Child.ended = [], [], []
    monkeypatch.setattr(second_client, "Child", Child)
    return Child


ASKED = [TopicPartition("t", 0)]
CONFIG = ClientConfig(bootstrap_servers="localhost:9092")


def test_a_child_without_an_answer_is_replaced_once(children):
    """A child process that does not answer is ended. A new child is asked to call `committed_alone` instead.

    This function reads without librdkafka's admin client, which may crash.
    """
    children.script[:] = [None, {"answer": {"g": [["t", 0, 7, 0]]}}]
    found = read_committed(second_client.SecondClient(CONFIG), {"g": ASKED})["g"][ASKED[0]]
    assert found is not None
    assert found.offset == 7
    assert len(children.ended) == 1
    assert children.asked == ["committed", "committed_alone"]


def test_a_second_child_without_an_answer_is_ended(children):
    """If the second child process does not answer either, the request fails and this child is ended, too.

    The next request gets its own answer, not the late answer of the ended child.
    """
    children.script[:] = [None, None, {"answer": {"b": [["t", 0, 9, 0]]}}]
    asked = second_client.SecondClient(CONFIG)
    with pytest.raises(ClusterUnavailable, match="died or hung twice"):
        read_committed(asked, {"a": ASKED})
    assert len(children.ended) == 2
    found = read_committed(asked, {"b": ASKED})["b"][ASKED[0]]
    assert found is not None
    assert found.offset == 9


def test_an_error_of_the_child_is_raised_with_its_text(children):
    """If librdkafka reports an error in the child process, the error is raised with librdkafka's text."""
    children.script[:] = [{"error": "no such luck"}]
    with pytest.raises(ClusterUnavailable, match="no such luck"):
        read_committed(second_client.SecondClient(CONFIG), {"g": ASKED})


def test_an_error_of_one_group_does_not_affect_the_others(children):
    """If the offsets of one group can't be read, its value is the error. The other groups still get their offsets."""
    children.script[:] = [{"answer": {"a": "GroupCoordinator: broken pipe", "b": [["t", 0, 9, 0]]}}]
    found = second_client.SecondClient(CONFIG).committed({"a": ASKED, "b": ASKED})
    assert "broken pipe" in str(found["a"])
    assert isinstance(found["b"], Mapping)
    of_b = found["b"][ASKED[0]]
    assert of_b is not None
    assert of_b.offset == 9


def test_a_closed_client_starts_no_child_again(children, monkeypatch):
    """If one thread closes the second client while another waits for an answer, the waiting thread gets an error.

    The closed client starts no further child process.
    """
    asked = second_client.SecondClient(CONFIG)
    monkeypatch.setattr(children, "answer", lambda *_: asked.close())
    started: list[Child] = []
    monkeypatch.setattr(children, "__init__", lambda child, _: started.append(child))
    with pytest.raises(ClusterUnavailable):
        read_committed(asked, {"g": ASKED})
    asked.start()
    assert started == children.ended
    assert len(started) == 1


ASKING = """
import sys
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.model.partitions import TopicPartition
second_client = SecondClient(ClientConfig(bootstrap_servers=sys.argv[1], timeout=600))
second_client.committed({"g": [TopicPartition("t", 0)]})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the children of a process")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_ends_with_its_parent(end):
    """If the parent process is killed or terminated, a child that waits for a silent broker ends, too.

    The child is alone in its process group, so Ctrl-C at a terminal reaches only the parent.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        command = [sys.executable, "-c", ASKING, f"127.0.0.1:{server.getsockname()[1]}"]
        with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as parent:
            connection, _ = server.accept()
            with connection:
                (child,) = children_of(parent.pid)
                groups = {os.getpgid(each) for each in (child, parent.pid, os.getpid())}
                parent.send_signal(end)
                parent.wait(60)
                until(lambda: gone(child))
    assert groups == {child, os.getpgid(0)}


@pytest.mark.parametrize("groups", [1, 2])
def test_an_expired_token_is_said_at_once(groups):
    """If the OAuth token has expired, the second client returns an error at once.

    confluent-kafka would wait 10 s for another token, and hide the reason.
    """
    wanted: dict[str, list[list[object]]] = {str(each): [["t", 0]] for each in range(groups)}
    config = {"oauth_cb": ["a.b.c", time.time() - 1, "me", {}]}
    said = "the token expired before it was used: run the command again"
    assert second_client_process.committed_alone(config, wanted, 60.0) == dict.fromkeys(wanted, said)
