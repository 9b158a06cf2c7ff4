"""``--verbose`` logs one line for each request to the cluster. Without this option no log text is composed."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import typer.main
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest

from migrate_groups.api import clients
from migrate_groups.cli.registry import command_line
from migrate_groups.cli.verbose import shown_logs
from migrate_groups.errors import ClusterUnavailable
from migrate_groups.kafka import private, request_log, second_client
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.list_offsets import list_offsets
from migrate_groups.migration.reading.requests import read_committed
from migrate_groups.model.partitions import TopicPartition

CONFIG = ClientConfig(bootstrap_servers="localhost:9092")
GROUP = OffsetFetchRequest.OffsetFetchRequestGroup
TOPIC = OffsetFetchRequest.OffsetFetchRequestTopic
THREE = {TopicPartition("t", number): 0 for number in range(3)}


def fetched(group, partitions):
    return GROUP(group_id=group, topics=[GROUP.OffsetFetchRequestTopics(name="t", partition_indexes=partitions)])


@pytest.mark.parametrize(
    ("request_", "node", "said"),
    [
        (OffsetFetchRequest(groups=[fetched("a", [0, 1])]), 1, "OffsetFetch a: 2 partitions from broker 1"),
        (OffsetFetchRequest(groups=[GROUP(group_id="a", topics=None)]), 1, "OffsetFetch a from broker 1"),
        (OffsetFetchRequest(groups=[fetched(f"g{each}", [0]) for each in range(9)]), 1,
         "OffsetFetch g0, g1, g2 and 6 more: 9 partitions from broker 1"),
        (OffsetFetchRequest(group_id="a", topics=[TOPIC(name="t", partition_indexes=[0])]), "coordinator-2",
         "OffsetFetch a: 1 partition from broker 2"),
        (DescribeGroupsRequest(groups=["b", "a"]), "1-4", "DescribeGroups a, b from broker 1"),
        (DeleteGroupsRequest(groups_names=["a"]), 1, "DeleteGroups a to broker 1"),
        (MetadataRequest(topics=None), "bootstrap-0", "Metadata from a bootstrap server"),
        (MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), None,
         "Metadata: 1 topic from no broker"),
        (list_offsets(THREE, dict.fromkeys(THREE, (1, 0))), 1, "ListOffsets: 3 partitions from broker 1"),
    ],
)  # fmt: skip
def test_a_request_is_described(request_, node, said):
    """The log line of a request names the request, its groups, the number of partitions or topics, and the broker."""
    assert request_log.described(request_, node) == said


@pytest.fixture
def manager(monkeypatch):
    """Return a connection manager, and the future with which a test answers the manager's requests."""
    sent = Future()
    monkeypatch.setattr(KafkaConnectionManager, "send", lambda *_: sent)
    monkeypatch.setattr(private, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(request_log, "time", SimpleNamespace(monotonic=lambda: 100.25))
    return object.__new__(private._LoggingManager), sent


def test_a_request_is_logged_when_it_is_answered(manager, capsys):
    """With ``-v`` a request is logged on stderr when its answer comes. A newline in a group's name is escaped."""
    asking, sent = manager
    with shown_logs(1):
        asking.send(DescribeGroupsRequest(groups=["two\nlines"]), 1)
        assert capsys.readouterr().err == ""
        sent.success(None)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "  0.250 s  DescribeGroups two\\nlines from broker 1\n"


def test_a_request_that_fails_is_logged_with_its_error(manager, capsys):
    """With ``-v`` a request that fails is logged, too, with its error."""
    asking, sent = manager
    with shown_logs(1):
        asking.send(DescribeGroupsRequest(groups=["a"]), 1)
        sent.failure(OSError("connection reset"))
    assert capsys.readouterr().err == "  0.250 s  DescribeGroups a from broker 1: failed: connection reset\n"


@pytest.mark.parametrize("kafka_level", [logging.DEBUG, logging.CRITICAL])
def test_without_verbose_no_request_is_described(manager, monkeypatch, capsys, kafka_level):
    """Without ``--verbose`` no log text is composed for a request, whatever the level of kafka-python's logger."""
    asking, sent = manager
    monkeypatch.setattr(logging.getLogger("kafka"), "level", kafka_level)
    monkeypatch.setattr(request_log, "described", None)
    with shown_logs(0):
        assert asking.send(DescribeGroupsRequest(groups=["a"]), 1) is sent
        with request_log.logged(lambda: pytest.fail("worked out for nobody")):
            sent.success(None)
    assert capsys.readouterr() == ("", "")


def test_handlers_and_levels_are_those_of_before():
    """After a command with ``-vv``, the loggers have the same levels and handlers as before the command."""
    loggers = [logging.getLogger(name) for name in ("migrate_groups", "kafka")]
    before = [(logger.level, [*logger.handlers]) for logger in loggers]
    with shown_logs(2):
        assert [logger.level for logger in loggers] == [logging.DEBUG, logging.INFO]
    assert [(logger.level, [*logger.handlers]) for logger in loggers] == before


def test_a_level_that_the_caller_has_set_stays(monkeypatch):
    """If a program has set a level for kafka-python's logger, the level is kept.

    Otherwise this logger logs only critical messages.
    """
    logger = logging.getLogger("kafka")
    for level, kept in ((logging.INFO, logging.INFO), (logging.NOTSET, logging.CRITICAL)):
        monkeypatch.setattr(logger, "level", level)
        clients._quiet_clients()
        assert logger.level == kept


class Child:
    """A child process that answers no request."""

    def __init__(self, program):
        pass

    def answer(self, question, timeout):
        return None

    def end(self):
        """Do nothing."""


def test_a_question_to_the_second_client_is_logged(monkeypatch, capsys):
    """With ``-v`` a request to the second client is logged, even if the second client's process has died."""
    monkeypatch.setattr(second_client, "Child", Child)
    with shown_logs(1), pytest.raises(ClusterUnavailable):
        read_committed(second_client.SecondClient(CONFIG), {"g": THREE})
    assert "s  OffsetFetch g: 3 partitions from the second client: failed: the second client" in capsys.readouterr().err


@pytest.mark.parametrize(("verbose", "debug"), [(0, False), (1, False), (2, True)])
def test_librdkafka_logs_only_if_asked(monkeypatch, verbose, debug):
    """librdkafka, in the second client, logs only with ``-vv``, and never its configuration, which contains secrets."""
    asked = []
    monkeypatch.setattr(second_client, "Child", Child)
    monkeypatch.setattr(Child, "answer", lambda _, question, timeout: asked.append(question.decode()))
    with shown_logs(verbose), pytest.raises(ClusterUnavailable):
        read_committed(second_client.SecondClient(CONFIG), {"g": THREE})
    assert ['"debug":"broker,protocol,security"' in each for each in asked] == [debug, debug]


def test_every_command_that_connects_has_the_option():
    """Each command with the option ``--bootstrap-server`` also has ``-v``, which may be repeated."""
    for command in typer.main.get_group(command_line()).commands.values():
        options = {option: each for each in command.params for option in each.opts}
        if "--bootstrap-server" in options:
            assert options["-v"] is options["--verbose"]
            assert options["-v"].count  # type: ignore[attr-defined]  # an option has it
