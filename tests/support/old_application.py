"""A slow member of a source group, which knows up to which offsets it has processed records."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping

import confluent_kafka
import tenacity
from confluent_kafka import KafkaException

from migrate_groups.model.partitions import TopicPartition
from tests.support.three_brokers import ThreeBrokers

_SECONDS = 60.0
# The application is slow: its group is split for this reason, and records are left when it stops.
_SECONDS_A_RECORD = 0.2


class OldApplication:
    """A member of the source group. When it is told to stop, it commits all that it has processed, then leaves.

    It has processed the records below its ``positions``. It ignores records that it gets again after a rebalance.
    """

    def __init__(
        self,
        brokers: ThreeBrokers,
        group: str,
        topics: Collection[str],
        begun: Mapping[TopicPartition, int],
        *,
        protocol: str = "classic",
    ) -> None:
        self.positions = dict(begun)
        self._consumer = brokers.consumer(group, protocol=protocol, **{"auto.offset.reset": "earliest"})
        self._consumer.subscribe(list(topics))
        self._joined = False
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the application; return once it has committed and left. Raise RuntimeError if it could not."""
        self._stop.set()
        self._thread.join(_SECONDS)
        if self._failure or self._thread.is_alive():
            raise RuntimeError("the old application could not commit") from self._failure

    def joined(self) -> bool:
        """Return whether the application has an assignment."""
        return self._joined

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._process()
            tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(KafkaException),
                stop=tenacity.stop_after_delay(_SECONDS),
                wait=tenacity.wait_fixed(0.2),
                after=lambda _: self._process(),  # takes part in a rebalance meanwhile
                reraise=True,
            )(self._commit)
            self._consumer.close()
        except BaseException as failure:  # noqa: BLE001  raised again by `stop`
            self._failure = failure

    def _process(self) -> None:
        message = self._consumer.poll(0.05)
        if message is not None and message.error() is None:
            partition = TopicPartition(message.topic(), message.partition())
            self.positions[partition] = max(self.positions[partition], message.offset() + 1)
            time.sleep(_SECONDS_A_RECORD)
        self._joined = bool(self._consumer.assignment())

    def _commit(self) -> None:
        offsets = [confluent_kafka.TopicPartition(*each, offset) for each, offset in self.positions.items()]
        for answer in self._consumer.commit(offsets=offsets, asynchronous=False):
            if answer.error:
                raise KafkaException(answer.error)
