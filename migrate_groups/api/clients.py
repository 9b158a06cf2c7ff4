"""Open and close the Kafka clients that the API and the command line use."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager

from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.kafka.second_client import SecondClient
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.ports import Clients, GroupReader, OffsetsTopicReader


@contextmanager
def open_reader(config: ClientConfig) -> Iterator[GroupReader]:
    """Yield a client that reads from the cluster. It has no method that writes."""
    with (
        _second_client(config) as second,
        closing(KafkaPythonReader(config, describe_members=second.describe_group)) as reader,
    ):
        yield reader


@contextmanager
def open_writer(config: ClientConfig) -> Iterator[Clients]:
    """Yield a client that reads and writes, kafka-python, and one that reads back what it wrote, confluent-kafka."""
    with (
        _second_client(config) as second,
        closing(KafkaPythonWriter(config, describe_members=second.describe_group)) as writer,
    ):
        second.start()
        yield Clients(writer, second)


@contextmanager
def open_offsets_topic(config: ClientConfig) -> Iterator[tuple[GroupReader, OffsetsTopicReader]]:
    """Yield a client that reads groups, topics and offsets, and one that reads the log of ``__consumer_offsets``."""
    _quiet_clients()
    with closing(KafkaPythonReader(config)) as reader, closing(KafkaOffsetsTopic(config)) as topic:
        yield reader, topic


@contextmanager
def _second_client(config: ClientConfig) -> Iterator[SecondClient]:
    _quiet_clients()
    with closing(SecondClient(config)) as second:
        yield second


def _quiet_clients() -> None:
    """Keep kafka-python from logging every retry, because the error that is raised at the end says what matters."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
