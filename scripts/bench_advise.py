"""Measure how long ``advise`` and ``list`` take with many groups, or how long the job of ``advise --log`` takes.

Usage: ``.venv/bin/python scripts/bench_advise.py`` (``scripts/test`` makes .venv). The script starts a Kafka with
``--groups`` classic groups, each with one member and with committed offsets for three topics. Then it runs ``list`` and
``advise`` in turns, each as a whole process. It prints median, minimum and maximum of both, and the ratio of the
medians.

``--log 5 6`` measures the Spark job instead, on a log of 5 and then of 6 million records, without the time to copy the
log. The log has 2,000 groups. Two applications share each group, with two members each, and one of them restarts. One
record in 200 is that of a generation, all others are commits.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_audit import record
from kafka import KafkaAdminClient
from kafka.errors import RetriableError
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import OffsetAndMetadata, TopicPartition
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from migrate_groups.spark.offsets_topic.advice_job import measure_costs, write_costs
from migrate_groups.spark.offsets_topic.offsets_log import CopiedFiles
from migrate_groups.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOPICS = 300
_FILE, _GROUPS, _LOG_PARTITIONS, _PARTS, _START = 250_000, 2_000, 50, 5, 1_763_610_000
_MILLISECONDS = 30 * 60_000


def main() -> None:
    """Measure what the command line asks for, and print the results."""
    parser = argparse.ArgumentParser(description="Measure a look at many groups against list.")
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--log", type=int, nargs="+", metavar="MILLIONS", help="measure the job on such a log")
    options = parser.parse_args()
    if options.log:
        _measure_job(options.log)
        return
    java = find_java(os.environ)
    jars = fetch_jars(java=java, cache=user_cache(), mirror=os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR"))
    with start_sandbox(jars, java=java, settings={"group.initial.rebalance.delay.ms": "0"}) as kafka:
        _make(kafka.bootstrap_servers, options.groups)
        seconds: dict[str, list[float]] = {"list": [], "advise": []}
        for _ in range(options.runs):
            for name, runs in seconds.items():
                runs.append(_run(name, kafka.bootstrap_servers, options.groups))
    for name, runs in seconds.items():
        print(f"{name:>7}: {statistics.median(runs):5.2f} s ({min(runs):.2f} to {max(runs):.2f})")
    print(f"  ratio: {statistics.median(seconds['advise']) / statistics.median(seconds['list']):5.2f}")


def _measure_job(sizes: list[int]) -> None:
    """Run the Spark job once on a log of each size, and print how long it takes. sizes: in millions of records."""
    with tempfile.TemporaryDirectory() as name, local_session() as spark:
        folder = Path(name)
        log = CopiedLog.load_with_starts(folder / "log", "bench", dict.fromkeys(range(_LOG_PARTITIONS), 0))
        for size in sizes:
            while (start := sum(log.ends.values())) < size * 1_000_000:
                end = (start + _FILE) // _LOG_PARTITIONS
                log = log.with_records(map(_row, range(start, start + _FILE)), dict.fromkeys(log.ends, end))
            ranges = [(number, 0, end, 0) for number, end in log.ends.items()]
            out = folder / f"out-{size}"
            out.mkdir()
            begun, worked = time.perf_counter(), _cpu_seconds(spark)
            files = CopiedFiles(str(log.folder), ranges, "bench")
            found = write_costs(measure_costs(spark, files, groups=None), out)
            seconds, worked = time.perf_counter() - begun, _cpu_seconds(spark) - worked
            if found.found != 2 * _GROUPS:
                sys.exit(f"the job found {found.found} applications, not {2 * _GROUPS}")
            print(
                f"{size} million records: {seconds:.1f} s, {worked:.1f} s of CPU; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


def _cpu_seconds(spark: SparkSession) -> float:
    """Return the CPU seconds of Spark's JVM so far. On a busy machine they say more than the wall-clock time."""
    process: Any = spark.sparkContext._gateway
    fields = Path(f"/proc/{process.proc.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _row(number: int) -> tuple[object, ...]:
    """Return record ``number`` of the log. Every 200th record of a group describes a generation; others are commits."""
    turn, group = number // _GROUPS, f"application-{number % _GROUPS:04}"
    place = (number % _LOG_PARTITIONS, number // _LOG_PARTITIONS)
    at = datetime.fromtimestamp(_START + number / 1000, UTC)
    if turn % 200:
        made: tuple[object, ...] = record(place, group, f"orders.region-{turn % _PARTS}", turn % 7, number, at=at)
        return made
    key = struct.pack(">hH", 2, len(group)) + group.encode()
    return *place, at, "record", key, _generation(turn)


def _generation(turn: int) -> bytes:
    """Return the value of a generation's record.

    The members of the application shop stay. Those of the application billing are new in each generation.
    """
    members = [
        _member(f"{name}-{n}", turn if name == "billing" else 0, n) for name in ("shop", "billing") for n in (0, 1)
    ]
    head = struct.pack(">h", 3) + _texts("consumer") + struct.pack(">i", turn) + _texts("range", "leader") + bytes(8)
    return head + struct.pack(">i", len(members)) + b"".join(members)


def _member(client: str, turn: int, number: int) -> bytes:
    topics = [f"orders.region-{each}" for each in ((0, 1, 2) if client.startswith("shop") else (3, 4))]
    parts = [each for each in range(7) if each % 2 == number]
    subscription = bytes(2) + struct.pack(">i", len(topics)) + _texts(*topics) + bytes(4)
    partitions = struct.pack(f">i{len(parts)}i", len(parts), *parts)
    assignment = (
        bytes(2) + struct.pack(">i", len(topics)) + b"".join(_texts(each) + partitions for each in topics) + bytes(4)
    )
    sized = b"".join(struct.pack(">i", len(each)) + each for each in (subscription, assignment))
    return _texts(f"{client}-{turn}") + b"\xff\xff" + _texts(client, "/10.0.0.1") + bytes(8) + sized


def _texts(*texts: str) -> bytes:
    return b"".join(struct.pack(">h", len(each)) + each.encode() for each in texts)


def _run(command: str, servers: str, groups: int) -> float:
    start = time.perf_counter()
    words = [sys.executable, "-m", "migrate_groups", command, "--bootstrap-server", servers]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    taken = time.perf_counter() - start
    if f"{groups:,} groups" not in done.stdout or done.stdout.count(" Stable ") != groups:
        sys.exit(f"{command} did not show every group as Stable:\n{done.stdout[-2000:]}")
    return taken


def _make(servers: str, groups: int) -> None:
    """Create the groups. Each has a member with a long session time-out, and committed offsets for three topics."""
    topics = [f"topic-{number:03}" for number in range(_TOPICS)]
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
        admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1} for topic in topics})
        admin.wait_for_topics(topics)
        # Coordinators don't answer for a while after the first request about a group.
        patience = Retrying(
            retry=retry_if_exception_type(RetriableError), stop=stop_after_delay(60), wait=wait_fixed(0.1)
        )
        for number in range(groups):
            own = [topics[(number * 3 + each) % _TOPICS] for each in range(3)]
            offsets = {TopicPartition(topic, part): OffsetAndMetadata(0, "", 0) for topic in own for part in (0, 1)}
            patience(admin.alter_group_offsets, f"group-{number:05}", offsets)

        async def join_all() -> None:
            for number in range(groups):
                await _join(admin, f"group-{number:05}", topics[number * 3 % _TOPICS])

        admin._manager.run(join_all)


async def _join(admin: KafkaAdminClient, group: str, topic: str) -> None:
    """Join an empty group as its only member. The member stays for half an hour, without polls or heartbeats."""
    node = await admin._find_coordinator_id(group)
    metadata = ConsumerProtocolSubscription(topics=[topic]).encode(version=0)
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    member = ""
    for _ in ("asks for an id", "joins"):
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=_MILLISECONDS,
            rebalance_timeout_ms=_MILLISECONDS,
            member_id=member,
            protocol_type="consumer",
            protocols=[protocol],
            min_version=4,
        )
        joined = await admin._manager.send(request, node_id=node)
        member = joined.member_id
    assigned = ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=[0, 1])
    assignment = ConsumerProtocolAssignment(assigned_partitions=[assigned]).encode(version=0)
    await admin._manager.send(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=assignment)],
        ),
        node_id=node,
    )


if __name__ == "__main__":
    main()
