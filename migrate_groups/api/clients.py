"""Open and close the Kafka clients that the API and the command line use."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from migrate_groups.migration.ports import Clients, GroupReader, LogClients, Side
from migrate_groups.migration.reading.hints import similar_groups_named

if TYPE_CHECKING:
    from migrate_groups.kafka.client_config import ClientConfig


# Each function imports the clients that it opens, because kafka-python takes a tenth of a second to import.


@contextmanager
def open_reader(config: ClientConfig) -> Iterator[GroupReader]:
    """Yield a client that only reads from the cluster, and close it after the block.

    A `GroupNotFound` in the block gets the names of similar groups added to its message.
    """
    from migrate_groups.kafka.reader import KafkaPythonReader

    _quiet_clients()
    with closing(KafkaPythonReader(config)) as reader, similar_groups_named(reader):
        yield reader


@contextmanager
def open_writer(config: ClientConfig) -> Iterator[Clients]:
    """Yield a kafka-python client that reads and writes, and a confluent-kafka client that reads back what was written.

    Both clients are closed after the block. A `GroupNotFound` in the block gets the names of similar groups added to
    its message.
    """
    from migrate_groups.kafka.second_client import SecondClient

    _quiet_clients()
    with closing(SecondClient(config)) as second:
        second.start()  # before the import below, so that its process starts at the same time
        from migrate_groups.kafka.writer import KafkaPythonWriter

        with closing(KafkaPythonWriter(config)) as writer, similar_groups_named(writer):
            yield Clients(writer, second)


@contextmanager
def open_side(config: ClientConfig, *, writes: bool = False) -> Iterator[Side]:
    """Yield a client that reads groups, topics and offsets, and a client that reads records.

    Both clients are closed after the block. writes: the first client can also write.
    """
    from migrate_groups.kafka.records import KafkaRecords

    _quiet_clients()
    with closing(KafkaRecords(config)) as records:
        if writes:
            from migrate_groups.kafka.writer import KafkaPythonWriter

            with closing(KafkaPythonWriter(config)) as writer:
                records.start()
                yield Side(writer, records, writer)
        else:
            from migrate_groups.kafka.reader import KafkaPythonReader

            with closing(KafkaPythonReader(config)) as reader:
                records.start()
                yield Side(reader, records)


@contextmanager
def open_offsets_topic(config: ClientConfig) -> Iterator[LogClients]:
    """Yield a client that reads groups, topics and offsets, and a client that reads the log of ``__consumer_offsets``.

    Both clients are closed after the block.
    """
    from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
    from migrate_groups.kafka.reader import KafkaPythonReader

    _quiet_clients()
    with closing(KafkaPythonReader(config)) as reader, closing(KafkaOffsetsTopic(config)) as topic:
        yield LogClients(reader, topic)


def _quiet_clients() -> None:
    """Set the log level of kafka-python to CRITICAL, unless the caller has set a level."""
    # Otherwise kafka-python would log every retry. A request that still fails after its retries raises an error.
    logger = logging.getLogger("kafka")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
