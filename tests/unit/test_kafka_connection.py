"""Requests while brokers restart: which errors are retried, and which error is raised at the time-out."""

from __future__ import annotations

import threading
import time

import kafka.errors as kafka_errors
import pytest

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka import connection as connection_module
from migrate_groups.kafka import group_requests
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.connection import KafkaConnection
from migrate_groups.kafka.private import Client
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.model.answers import Answer
from migrate_groups.model.partitions import CommittedOffset, TopicPartition


class Scripted(KafkaConnection):
    """A connection that sends nothing: each attempt gets the next result of a script, and the last result repeats."""

    def __init__(self, *script: object, timeout: float) -> None:
        super().__init__(ClientConfig(bootstrap_servers="localhost:9092", timeout=timeout))
        self.script = list(script)

    def _attempt(self, request, deadline):
        end = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(end, BaseException):
            raise end
        return end


async def request(_: Client) -> str:
    raise AssertionError("the script alone answers")


@pytest.mark.parametrize(
    "error",
    [
        kafka_errors.UnknownBrokerIdError(2),
        kafka_errors.NotCoordinatorError("moved"),
        kafka_errors.KafkaConnectionError("reset"),
        ConnectionResetError("reset"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_request_is_retried_while_brokers_restart(error):
    """If the broker is unknown, unreachable or no longer the coordinator, the request is retried."""
    assert Scripted(error, error, "answer", timeout=20).run(request, doing="asking") == "answer"


def test_an_authorization_error_is_not_retried():
    """If a broker answers with an authorization error, the request is not retried; the error names the permission."""
    connection = Scripted(kafka_errors.GroupAuthorizationFailedError("g"), "answer", timeout=20)
    with pytest.raises(ClusterUnavailable, match="lacks Describe on Group 'g'"):
        connection.run(request, doing="asking", needs="Describe on Group 'g'")


def test_the_error_at_the_time_out_has_the_reason_of_the_last_attempt():
    """If all attempts fail until the time-out, the error shows the reason of the last attempt."""
    connection = Scripted(kafka_errors.NotLeaderForPartitionError("t-0"), timeout=0.3)
    with pytest.raises(ClusterUnavailable, match=r"answered NOT_LEADER_FOR_PARTITION \(t-0\) while asking"):
        connection.run(request, doing="asking")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (kafka_errors.InvalidGroupIdError(), "a broker answered INVALID_GROUP_ID while asking: check the brokers"),
        (
            kafka_errors.KafkaTimeoutError("no answer"),
            r"the cluster did not answer while asking \(.*no answer\): check",
        ),
        (
            kafka_errors.RequestTimedOutError("Request timed out after 100 ms"),
            r"the cluster did not answer while asking \(.*Request timed out after 100 ms\): check",
        ),
        (kafka_errors.RequestTimedOutError("t-0"), r"a broker answered REQUEST_TIMED_OUT \(t-0\) while asking: check"),
    ],
    ids=["answer", "no answer", "no answer to one of several requests", "not replicated"],
)
def test_an_answer_of_a_broker_is_no_silence(error, message):
    """If a broker answers with an error, the message shows the error's name in Kafka.

    Only if no broker answers, the message says "did not answer".
    """
    with pytest.raises(ClusterUnavailable, match=f"^{message}"):
        Scripted(error, timeout=0.1).run(request, doing="asking")


class Opened:
    """A client that sends nothing."""

    is_closed = False

    def run(self, request, deadline: float, seconds: float):
        assert deadline > time.monotonic()
        try:
            request(self).send(None)
        except StopIteration as end:
            return end.value

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def opened(monkeypatch) -> list[Opened]:
    """The clients that are opened, in order."""
    clients: list[Opened] = []

    def open_client(*_: object) -> Opened:
        clients.append(Opened())
        return clients[-1]

    monkeypatch.setattr(connection_module, "open_client", open_client)
    return clients


PLACE, OFFSET = TopicPartition("t", 0), CommittedOffset(offset=1)


def test_a_write_is_sent_again_if_another_thread_has_closed_the_client(monkeypatch, opened):
    """A write is repeated with the client that another thread has opened since, which stays open."""
    writer = KafkaPythonWriter(ClientConfig(bootstrap_servers="localhost:9092", timeout=20))
    attempts = []

    def commit_offsets(offsets, _):
        async def ask(client, groups, into):
            attempts.append(client)
            if len(attempts) == 1:
                writer._connection.close()
                in_other_thread(lambda: writer._connection.run_once(nothing))
                raise kafka_errors.KafkaConnectionError("closed")
            into.found.update({group: dict.fromkeys(offsets[group], kafka_errors.NoError) for group in groups})

        return ask

    monkeypatch.setattr(group_requests, "commit_offsets", commit_offsets)
    answers = writer.alter_offsets({"g": {PLACE: OFFSET}})
    assert answers["g"][PLACE].answer is Answer.WRITTEN
    assert attempts == opened
    assert [each.is_closed for each in opened] == [True, False]


def test_the_wait_for_a_turn_does_not_count(opened):
    """A request that has waited for its turn longer than the time-out is sent all the same."""
    connection = KafkaConnection(ClientConfig(bootstrap_servers="localhost:9092", timeout=0.1))
    for _ in range(32):
        connection._turns.acquire()
    timer = threading.Timer(0.2, connection._turns.release)
    timer.start()
    connection.run_once(nothing)
    timer.join()
    assert [each.is_closed for each in opened] == [False]


async def nothing(_: object) -> None:
    """Send nothing."""


def in_other_thread(call) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_an_interrupt_while_kafka_pythons_thread_starts_is_an_interrupt(monkeypatch):
    """Ctrl-C while kafka-python's thread starts raises KeyboardInterrupt, and not the error of the failed clean-up."""

    def interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Client(bootstrap_servers=["localhost:9092"], request_timeout_ms=1000)
