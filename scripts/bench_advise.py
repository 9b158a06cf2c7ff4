"""Measure a look at many groups against ``list``: scripts/bench_advise.py.

``scripts/test`` makes .venv; then ``.venv/bin/python scripts/bench_advise.py``. It starts a Kafka, makes ``--groups``
classic groups with a member and committed offsets for three topics each, and runs ``list`` and ``advise`` as whole
processes in turns. It prints the medians, the least and the most, and their ratio.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from contextlib import closing

from kafka import KafkaAdminClient
from kafka.errors import RetriableError
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import OffsetAndMetadata, TopicPartition
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java

_TOPICS = 300
_MILLISECONDS = 30 * 60_000


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description="Measure a look at many groups against list.")
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
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


def _run(command: str, servers: str, groups: int) -> float:
    start = time.perf_counter()
    words = [sys.executable, "-m", "migrate_groups", command, "--bootstrap-server", servers]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    taken = time.perf_counter() - start
    if f"{groups:,} groups" not in done.stdout or done.stdout.count(" Stable ") != groups:
        sys.exit(f"{command} did not show every group as Stable:\n{done.stdout[-2000:]}")
    return taken


def _make(servers: str, groups: int) -> None:
    """Make the groups. Each has a member with a long session, and committed offsets for three topics."""
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
    """Make a member of an empty group that is not asked to poll for half an hour."""
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
