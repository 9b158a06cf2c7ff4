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

from _bench import OURS, Measured, in_turns, options_of, report, run
from _sandbox import sandbox
from kafka import KafkaAdminClient
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.support.broker_world import wait_for_coordinators
from tests.support.raw_member import join, subscription

_TOPICS = 300
_SECONDS = 30 * 60


def main() -> None:
    """Measure both commands, and print the results."""
    parser = options_of("Measure one reading of many groups by advise against list.", runs=5)
    parser.add_argument("--groups", type=int, default=2_000)
    options = parser.parse_args()
    with sandbox(settings={"group.initial.rebalance.delay.ms": "0"}) as running:
        wait_for_coordinators(running.bootstrap_servers)
        _make(running.bootstrap_servers, options.groups)
        commands = {name: partial(_run, name, running.bootstrap_servers, options.groups) for name in ("list", "advise")}
        found = in_turns(commands, options.runs)
    report(options, {f"{options.groups:,} groups": found}, [("advise", "list")])


def _run(command: str, servers: str, groups: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out"
        measured = run([*OURS, command, "--bootstrap-server", servers], output)
        out = output.read_text()
    if f"{groups:,} groups" not in out or out.count(" Stable ") != groups:
        sys.exit(f"{command} did not show every group as Stable:\n{out[-2000:]}")
    return measured


def _make(servers: str, groups: int) -> None:
    """Create the groups. Each has a member with a long session timeout, and committed offsets for three topics."""
    topics = [f"topic-{number:03}" for number in range(_TOPICS)]
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
        admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1} for topic in topics})
        admin.wait_for_topics(topics)
        for number in range(groups):
            group, own = f"group-{number:05}", [topics[(number * 3 + each) % _TOPICS] for each in range(3)]
            offsets = {TopicPartition(topic, part): OffsetAndMetadata(0, "", 0) for topic in own for part in (0, 1)}
            admin.alter_group_offsets(group, offsets)
            of_member = ConsumerProtocolAssignment.TopicPartition(topic=own[0], partitions=[0, 1])
            assigned = ConsumerProtocolAssignment(assigned_partitions=[of_member]).encode(version=0)
            join(admin, group, metadata=subscription(own[0]), assignment=assigned, seconds=_SECONDS)


if __name__ == "__main__":
    main()
