"""Measure how long ``advise`` and ``list`` take with many groups.

Usage: ``.venv/bin/python scripts/bench_advise.py`` (``scripts/test`` makes .venv). The script starts a Kafka with
``--groups`` classic groups, each with one member and with committed offsets for three topics. Then it runs ``list`` and
``advise`` in turns, each as a whole process. It prints median, minimum and maximum of both, and the ratio of the
medians. ``bench_audit.py --only advise`` measures the Spark job of ``advise --log``.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

from _bench import OURS, Measured, in_turns, options_of, print_ratios, print_runs, run, save
from _sandbox import sandbox
from kafka import KafkaAdminClient
from kafka.errors import RetriableError
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import OffsetAndMetadata, TopicPartition
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

_TOPICS = 300
_MILLISECONDS = 30 * 60_000


def main() -> None:
    """Measure both commands, and print the results."""
    parser = options_of("Measure one reading of many groups by advise against list.", runs=5)
    parser.add_argument("--groups", type=int, default=2_000)
    options = parser.parse_args()
    with sandbox(settings={"group.initial.rebalance.delay.ms": "0"}) as running:
        _make(running.bootstrap_servers, options.groups)
        commands = {name: partial(_run, name, running.bootstrap_servers, options.groups) for name in ("list", "advise")}
        found = in_turns(commands, options.runs)
    print_runs(found)
    print_ratios(found, [("advise", "list")])
    save(options.json, {f"{options.groups} groups": found})


def _run(command: str, servers: str, groups: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out"
        measured = run([*OURS, command, "--bootstrap-server", servers], output)
        out = output.read_text()
    if f"{groups:,} groups" not in out or out.count(" Stable ") != groups:
        sys.exit(f"{command} did not show every group as Stable:\n{out[-2000:]}")
    return measured


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
