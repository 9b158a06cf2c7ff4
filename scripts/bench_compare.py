"""Measure ``compare`` on two clusters.

Usage: ``.venv/bin/python scripts/bench_compare.py`` (``scripts/test`` makes .venv). The script starts two Kafkas with a
topic of ``--partitions`` partitions on each. On the target cluster each partition begins with 50 records of its own,
followed by copies of the source's records. A group has committed an offset in each partition, after which ``--behind``
records follow. The script runs in turns:

- ``compare``: the command as a whole process, with its two child processes in which confluent-kafka runs
- ``read``: a consumer of confluent-kafka that reads all records of both topics, and does nothing with them

It prints median, minimum and maximum, the CPU time of all processes, the ratio, and the peak memory of the largest
process of ``compare`` (0 for ``read``, which is this process). Exit code 1: a translated offset is not exact.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import confluent_kafka
from _bench import OURS, Measured, in_turns, options_of, report, run
from _sandbox import sandbox

from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import broker_world, wait_for_coordinators

_BEFORE, _OTHERS = 100, 50
_TOPIC, _GROUP = "orders", "bench"
_VALUE = b"v" * 100


def main() -> None:
    """Measure, and print the result."""
    parser = options_of("Measure compare against a consumer that only reads the records.", runs=3)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--behind", type=int, default=600, help="records of a partition after the committed offset")
    options = parser.parse_args()
    records = _BEFORE + options.behind
    with sandbox() as source, sandbox() as target:
        both = source.bootstrap_servers, target.bootstrap_servers
        for servers, others in zip(both, (0, _OTHERS), strict=True):
            _make(servers, options.partitions, others, records)
        contenders = {
            "compare": partial(_compare, *both, options.partitions),
            "read": partial(_read, both, options.partitions, records),
        }
        found = in_turns(contenders, options.runs)
    case = f"{options.partitions:,} partitions, {options.behind:,} records behind each offset"
    report(options, {case: found}, [("compare", "read")])


def _make(servers: str, partitions: int, others: int, records: int) -> None:
    """Make the topic and the group.

    Each partition has ``others`` records of this cluster alone, then ``records`` that are on both clusters.
    """
    wait_for_coordinators(servers)
    with broker_world(servers) as world:
        world.create_topic(partitions, topic=_TOPIC, brokers=None, **{"retention.ms": "-1"})
        at = {TopicPartition(_TOPIC, partition): others + _BEFORE for partition in range(partitions)}
        world.commit_all(_GROUP, at)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "log_level": 0,
            "enable.idempotence": True,
            "linger.ms": 50,
            "queue.buffering.max.messages": 10**6,
        }
    )
    for number in range(-others, records):
        for partition in range(partitions):
            # Ten records have the same timestamp.
            timestamp = 1_700_000_000_000 + number // 10
            producer.produce(_TOPIC, b"%d" % number, _VALUE, partition=partition, timestamp=timestamp)
        producer.poll(0)
        if number % 100 == 0:
            producer.flush()
    if producer.flush(300):
        sys.exit("the records could not be produced")


def _compare(source: str, target: str, partitions: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "compared.json"
        servers = ("--bootstrap-server", source, "--to-bootstrap-server", target)
        measured = run([*OURS, "compare", _GROUP, "--format", "json", *servers], output)
        exact = sum(each["status"] == "exact" for each in json.loads(output.read_text())["partitions"])
    if exact != partitions:
        sys.exit(f"only {exact} of {partitions} translated offsets are exact")
    return measured


def _read(both: tuple[str, str], partitions: int, records: int) -> Measured:
    began, before = time.monotonic(), time.process_time()
    for servers in both:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "log_level": 0,
                "group.id": "read",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(_TOPIC, each, 0) for each in range(partitions)])
        left = partitions * records
        while left > 0:
            left -= len(consumer.consume(10_000, 1))
        consumer.close()
    return Measured(time.monotonic() - began, time.process_time() - before, 0)


if __name__ == "__main__":
    main()
