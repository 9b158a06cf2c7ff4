"""An application that commits its offsets and its output in transactions, as exactly-once processing does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing

import confluent_kafka
import tenacity
from confluent_kafka import KafkaException

from migrate_groups.model.partitions import TopicPartition
from tests.support.three_brokers import ThreeBrokers, persistently

_SECONDS = 60.0


class TransactionalApplication:
    """Writes the values that it has processed to the topic ``output``, and commits its offsets in the same transaction.

    is_open: whether a transaction is open.
    """

    def __init__(self, brokers: ThreeBrokers, group: str) -> None:
        self.output = brokers.create_topic("output", 1)
        self.is_open = False
        with closing(brokers.consumer(group)) as consumer:
            self._group = consumer.consumer_group_metadata()
        # The coordinator aborts a transaction after the time-out. Here one is open while all brokers restart.
        patient = {"transactional.id": brokers.name("application"), "transaction.timeout.ms": 300_000}
        self._producer = brokers.new_producer(**patient)
        persistently(lambda: self._producer.init_transactions(_SECONDS))

    def process(self, values: Collection[str], offsets: Mapping[TopicPartition, int]) -> None:
        """Begin a transaction with this output and these offsets, and leave it open."""
        self._producer.begin_transaction()
        self.is_open = True
        for value in values:
            self._producer.produce(self.output, value=value, partition=0)
        assert self._producer.flush(_SECONDS) == 0
        positions = [confluent_kafka.TopicPartition(*each, offset) for each, offset in offsets.items()]
        persistently(lambda: self._producer.send_offsets_to_transaction(positions, self._group, _SECONDS))

    def end(self, *, commit: bool) -> None:
        """Commit or abort the transaction. If the brokers refuse the commit, abort it, as applications do."""
        try:
            if commit:
                self._patiently(self._producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            commit = False
        if not commit:
            self._patiently(self._producer.abort_transaction)
        self.is_open = False

    @staticmethod
    def _patiently(function) -> None:
        tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, KafkaException) and error.args[0].retriable()
            ),
            stop=tenacity.stop_after_delay(_SECONDS),
            wait=tenacity.wait_fixed(0.2),
            reraise=True,
        )(function, 10.0)
