"""A consumer process that writes the value of each record to a ledger, and commits after some 1,000 records.

Arguments: bootstrap servers, group, topic, ledger. SIGTERM makes it commit all that it has processed, and leave.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import confluent_kafka


def main() -> None:
    """Process records until SIGTERM. Ends with a traceback if a partition has no committed offset."""
    servers, group, topic, ledger = sys.argv[1:]
    settings = {
        "bootstrap.servers": servers,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "session.timeout.ms": 6000,
    }
    consumer = confluent_kafka.Consumer(settings)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    consumer.subscribe([topic])
    uncommitted = 0
    with Path(ledger).open("a") as file:
        while not stop.is_set():
            for message in consumer.consume(100, 0.2):
                if message.error():
                    raise confluent_kafka.KafkaException(message.error())
                file.write(f"{message.value().decode()}\n")
                uncommitted += 1
            file.flush()
            if uncommitted >= 1000:
                consumer.commit(asynchronous=False)
                uncommitted = 0
    if uncommitted:
        consumer.commit(asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    main()
