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
from migrate_groups.migration.reading.similar import similar_groups_named


@contextmanager
def open_reader(config: ClientConfig) -> Iterator[GroupReader]:
    """Yield a client that reads from the cluster. It has no method that writes."""
    _quiet_clients()
    with closing(KafkaPythonReader(config)) as reader, similar_groups_named(reader):
        yield reader


@contextmanager
def open_writer(config: ClientConfig) -> Iterator[Clients]:
    """Yield both clients: kafka-python reads and writes; confluent-kafka reads back what kafka-python wrote."""
    _quiet_clients()
    with (
        closing(SecondClient(config)) as second,
        closing(KafkaPythonWriter(config)) as writer,
        similar_groups_named(writer),
    ):
        second.start()
        yield Clients(writer, second)


@contextmanager
def open_offsets_topic(config: ClientConfig) -> Iterator[tuple[GroupReader, OffsetsTopicReader]]:
    """Yield a client that reads groups, topics and offsets, and one that reads the log of ``__consumer_offsets``."""
    _quiet_clients()
    with closing(KafkaPythonReader(config)) as reader, closing(KafkaOffsetsTopic(config)) as topic:
        yield reader, topic


def _quiet_clients() -> None:
    """Keep kafka-python from logging every retry, because a request that fails for good raises an error that says why.

    A level that the caller has set stays.
    """
    logger = logging.getLogger("kafka")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
