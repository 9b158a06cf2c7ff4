"""Measure ``compare`` on two clusters.

Usage: ``.venv/bin/python scripts/bench_compare.py`` (``scripts/test`` makes .venv). The script starts two Kafkas with a
topic of ``--partitions`` partitions on each. On the target cluster each partition begins with 50 records of its own,
followed by copies of the source's records. A group has committed an offset in each partition, after which ``--behind``
records follow. The script runs in turns:

- ``compare``: the command as a whole process, with its two child processes in which confluent-kafka runs
- ``read``: a consumer of confluent-kafka that reads all records of both topics, and does nothing with them

It prints median, minimum and maximum, the CPU time of all processes, the ratio, and the peak memory of the largest
process of ``compare``. Exit code 1: a translated offset is not exact.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java

_BEFORE, _OTHERS = 100, 50
_TOPIC, _GROUP = "orders", "bench"
_VALUE = b"v" * 100


class Measured(NamedTuple):
    """Seconds of wall-clock time and of CPU time."""

    seconds: float
    cpu: float


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description="Measure compare against a consumer that only reads the records.")
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--behind", type=int, default=600, help="records of a partition after the committed offset")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    java = find_java(os.environ)
    jars = fetch_jars(java=java, cache=user_cache(), mirror=os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR"))
    found: dict[str, list[Measured]] = {"compare": [], "read": []}
    with start_sandbox(jars, java=java) as source, start_sandbox(jars, java=java) as target:
        both = source.bootstrap_servers, target.bootstrap_servers
        for servers, others in zip(both, (0, _OTHERS), strict=True):
            _make(servers, options.partitions, others, _BEFORE + options.behind)
        _commit(both[0], options.partitions, 0)
        _commit(both[1], options.partitions, _OTHERS)
        for _ in range(options.runs):
            found["compare"].append(_compare(*both, options.partitions))
            found["read"].append(_read(both, options.partitions, _BEFORE + options.behind))
        # The Kafkas do not count, because they have not ended.
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    print(f"{options.partitions:,} partitions, {options.behind:,} records behind each offset, {os.cpu_count()} cores")
    print(f"{'':8}{'median s':>10}{'least':>8}{'most':>8}{'CPU s':>8}")
    for name, runs in found.items():
        seconds = [each.seconds for each in runs]
        figures = statistics.median(seconds), min(seconds), max(seconds), statistics.median(each.cpu for each in runs)
        print(f"{name:8}{figures[0]:10.2f}" + "".join(f"{each:8.2f}" for each in figures[1:]))
    medians = [statistics.median(each.seconds for each in runs) for runs in found.values()]
    print(f"compare / read {medians[0] / medians[1]:.2f}; {peak:.0f} MB")


def _make(servers: str, partitions: int, others: int, records: int) -> None:
    """Make the topic: in each partition ``others`` records of this cluster alone, then ``records`` of both clusters."""
    topic = NewTopic(_TOPIC, partitions, config={"retention.ms": "-1"})
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([topic])[_TOPIC].result()
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


def _commit(servers: str, partitions: int, others: int) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "log_level": 0, "group.id": _GROUP, "enable.auto.commit": False}
    )
    at = [confluent_kafka.TopicPartition(_TOPIC, each, others + _BEFORE) for each in range(partitions)]
    for attempt in Retrying(
        retry=retry_if_exception_type(confluent_kafka.KafkaException), stop=stop_after_delay(60), wait=wait_fixed(0.2)
    ):
        with attempt:  # a new cluster's coordinators load first
            consumer.commit(offsets=at, asynchronous=False)
    consumer.close()


def _compare(source: str, target: str, partitions: int) -> Measured:
    command = [sys.executable, "-m", "migrate_groups", "compare", _GROUP, "--format", "json"]
    command += ["--bootstrap-server", source, "--to-bootstrap-server", target]
    began, before = time.monotonic(), os.times()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    seconds, after = time.monotonic() - began, os.times()
    exact = sum(each["status"] == "exact" for each in json.loads(done.stdout)["partitions"])
    if done.returncode or exact != partitions:
        sys.exit(f"only {exact} of {partitions} translated offsets are exact")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Measured(seconds, cpu)


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
    return Measured(time.monotonic() - began, time.process_time() - before)


if __name__ == "__main__":
    main()
