"""Close the consumers of a test, and wait at most a minute for all of them."""

from __future__ import annotations

import threading
import time
import warnings
from contextlib import suppress

from confluent_kafka import Consumer

_SECONDS = 60.0


def close_consumer(*consumers: Consumer) -> None:
    """Close consumers at the same time. If that takes over a minute, warn and return, because it may never end.

    After a broker has failed, librdkafka sometimes waits for ever for a thread of its own (librdkafka issue 4674). No
    time limit of a test can end this, because it happens in C.

    Each consumer is polled first. A KIP-848 consumer that is closed before it has taken its assignment may wait for
    ever, and then no other thread runs either, because it holds the GIL (librdkafka issue 4884).
    """
    closing = [threading.Thread(target=_close, args=[each], daemon=True) for each in consumers]
    for each in closing:
        each.start()
    end = time.monotonic() + _SECONDS
    for each in closing:
        each.join(max(0.0, end - time.monotonic()))
    if left := sum(map(threading.Thread.is_alive, closing)):
        warnings.warn(f"consumers of the test that were not closed within a minute: {left}", stacklevel=2)


def _close(consumer: Consumer) -> None:
    with suppress(RuntimeError):  # the test has closed it already
        consumer.poll(0)
        consumer.close()
