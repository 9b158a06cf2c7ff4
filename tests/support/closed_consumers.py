"""Close the consumers of a test, and wait at most a minute for each."""

from __future__ import annotations

import threading
import warnings

from confluent_kafka import Consumer

_SECONDS = 60.0


def close_consumer(consumer: Consumer) -> None:
    """Close a consumer. If that takes over a minute, warn and return, because it may never end.

    After a broker has failed, librdkafka sometimes waits for ever for a thread of its own (librdkafka issue 4674). No
    time limit of a test can end this, because it happens in C.
    """
    closing = threading.Thread(target=consumer.close, daemon=True)
    closing.start()
    closing.join(_SECONDS)
    if closing.is_alive():
        warnings.warn("a consumer of the test was not closed within a minute", stacklevel=2)
