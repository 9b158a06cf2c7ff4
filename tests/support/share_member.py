"""A member of a share group (KIP-932) on a real broker, which counts the records that it gets."""

from __future__ import annotations

from collections import Counter

import confluent_kafka


class ShareMember:
    """A share consumer of one topic. It acknowledges the records of a call of `read` at the next call.

    ledger: how often it got the record at each partition and offset.
    """

    def __init__(self, bootstrap_servers: str, group: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap_servers, "group.id": group, "log_level": 0}
        self._consumer = confluent_kafka.ShareConsumer(settings)
        self._consumer.subscribe([topic])
        self.ledger: Counter[tuple[int, int]] = Counter()

    def read(self) -> None:
        """Get some records, if there are any."""
        for message in self._consumer.poll(0.2) or ():
            assert not message.error(), message.error()
            self.ledger[message.partition(), message.offset()] += 1

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
