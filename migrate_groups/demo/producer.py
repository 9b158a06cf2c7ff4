"""A producer process of the demo, which sends numbered records to all topics, up to 400 a second.

``python -m migrate_groups.demo.producer BOOTSTRAP LEDGER TOPIC...`` runs until SIGTERM or the end of its parent
process. It appends the id of each acknowledged record, ``TOPIC#NUMBER``, to the file LEDGER.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from migrate_groups.demo.application import Stopped

_RECORDS_A_SECOND = 400


def main() -> None:
    """Produce records until the process must stop, then wait until the brokers have acknowledged them."""
    import confluent_kafka

    bootstrap, path, *topics = sys.argv[1:]
    stopped = Stopped()
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
    with Path(path).open("a", encoding="utf-8") as ledger:

        def acknowledged(error: Any, message: Any) -> None:
            if error is None:
                ledger.write(f"{message.value().decode()}\n")

        number = 0
        while not stopped.now:
            topic = topics[number % len(topics)]
            producer.produce(topic, key=str(number), value=f"{topic}#{number}", on_delivery=acknowledged)
            number += 1
            producer.poll(0)
            time.sleep(1 / _RECORDS_A_SECOND)
        producer.flush()


if __name__ == "__main__":
    main()
