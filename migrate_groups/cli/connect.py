"""Open the clients that a command needs, and close them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from migrate_groups.offsets.times import parse_duration

if TYPE_CHECKING:
    from migrate_groups.cluster.client_config import ClientConfig
    from migrate_groups.cluster.kafka_python import KafkaPythonReader, KafkaPythonWriter
    from migrate_groups.cluster.witness import Witness


@contextmanager
def open_reader(bootstrap_server: str, timeout: str) -> Iterator[KafkaPythonReader]:
    """Yield a reader, which has no method that writes."""
    from migrate_groups.cluster.kafka_python import KafkaPythonReader

    with (
        _clients(bootstrap_server, timeout) as (config, witness),
        closing(KafkaPythonReader(config, describe_members=witness.describe_group)) as reader,
    ):
        yield reader


@contextmanager
def open_writer(bootstrap_server: str, timeout: str) -> Iterator[tuple[KafkaPythonWriter, Witness]]:
    """Yield a writer and the witness that reads back after it."""
    from migrate_groups.cluster.kafka_python import KafkaPythonWriter

    with (
        _clients(bootstrap_server, timeout) as (config, witness),
        closing(KafkaPythonWriter(config, describe_members=witness.describe_group)) as writer,
    ):
        witness.start()
        yield writer, witness


@contextmanager
def _clients(bootstrap_server: str, timeout: str) -> Iterator[tuple[ClientConfig, Witness]]:
    from migrate_groups.cluster.client_config import ClientConfig
    from migrate_groups.cluster.witness import Witness

    # kafka-python tells every retry to the root logger; what matters of it is in the error that ends the command.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    config = ClientConfig(bootstrap_servers=bootstrap_server, timeout=parse_duration(timeout, "--timeout"))
    with closing(Witness(config)) as witness:
        yield config, witness
