"""Measure a fleet: groups with real members that stop at random times, each handed over beside the others.

Usage: ``.venv/bin/python scripts/bench_fleet.py`` (``scripts/test`` makes .venv). A sandbox runs the brokers. Each
group has one consumer on a topic of 20 partitions, a third of them KIP-848, in processes of 50 consumers. While
``migrate`` runs, each consumer commits and closes at a random time within ``--span`` seconds. The script prints

- how long all plans took
- from a consumer's close to the START of its new group: median, 95th percentile and most
- the CPU time and the memory of ``migrate``
- how many new groups do not have exactly the offsets at which the old ones stopped; if there are any, it exits with 1

With ``--stopped``, the groups have no members: it measures the dry run, and how long it takes to describe all groups
and read their offsets. On a machine with two cores, the brokers and the members need most of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, cast

from _bench import ENVIRONMENT, OURS
from _sandbox import sandbox
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from migrate_groups.api.clients import open_reader
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.migration.reading.requests import describe_groups, read_all_committed

TOPICS, PARTITIONS, RECORDS, PER_PROCESS = 25, 20, 20, 50
SPEC = 'groups = ["g*"]\nrename = ["*=new.*"]\n'


def member_process(servers: str, seed: int, span: float, groups: Sequence[str]) -> None:
    """Consume as all of these groups; after a line on stdin, stop each at a random time. Print what is done."""
    chance, going = random.Random(seed), threading.Event()
    consumers: dict[str, Consumer] = {}
    for number, group in enumerate(groups):
        settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0}
        consumer = Consumer(settings | ({"group.protocol": "consumer"} if number % 3 == 0 else {}))
        consumer.subscribe([f"t{int(group[1:]) % TOPICS}"])
        consumers[group] = consumer

    def wait_for_a_line() -> None:
        sys.stdin.readline()
        going.set()

    threading.Thread(target=wait_for_a_line, daemon=True).start()
    left = dict.fromkeys(groups, PARTITIONS * RECORDS)
    is_ready, stop_at = False, dict[str, float]()
    while consumers:
        for group, consumer in consumers.items():
            left[group] -= sum(not message.error() for message in consumer.consume(100, 0.0))
        if not is_ready and not any(left.values()):
            is_ready = True
            for consumer in consumers.values():
                consumer.commit(offsets=consumer.position(consumer.assignment()), asynchronous=False)
            print("ready", flush=True)
        if going.is_set():
            stop_at = stop_at or {group: time.time() + span * chance.random() for group in groups}
            for group in [group for group in consumers if time.time() >= stop_at[group]]:
                consumers.pop(group).close()
                print(group, time.time(), flush=True)
        time.sleep(0.05)


def make_topics(servers: str, brokers: int) -> None:
    """Make the topics, and produce the records."""
    topics = [NewTopic(f"t{number}", PARTITIONS, min(3, brokers)) for number in range(TOPICS)]
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics(topics).values():
        made.result()
    producer = Producer({"bootstrap.servers": servers})
    for topic in topics:
        for number in range(PARTITIONS * RECORDS):
            producer.produce(topic.topic, b"r", partition=number % PARTITIONS)
        producer.flush()


@contextmanager
def members(servers: str, groups: Sequence[str], span: float) -> Iterator[list[subprocess.Popen[str]]]:
    """Run the consumers of these groups, and wait until each has read all records."""
    started = [
        subprocess.Popen(
            [
                sys.executable,
                __file__,
                "--member",
                servers,
                str(first),
                str(span),
                *groups[first : first + PER_PROCESS],
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in range(0, len(groups), PER_PROCESS)
    ]
    try:
        for each in started:
            if cast("IO[str]", each.stdout).readline() != "ready\n":
                raise SystemExit("a process with consumers has failed")
        yield started
    finally:
        for each in started:
            each.kill()
            each.wait()


def offsets(servers: str, group: str) -> list[tuple[int, int]]:
    """Return the committed offset of each partition of a group."""
    topic = f"t{int(group.removeprefix('new.')[1:]) % TOPICS}"
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    found = consumer.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], 30)
    consumer.close()
    return [(each.partition, each.offset) for each in found]


def hand_over(servers: str, groups: Sequence[str], span: float, folder: Path) -> int:
    """Measure one fleet with members, and return how many of its groups are at a wrong offset."""
    stopped: dict[str, float] = {}

    def note(lines: Iterator[str]) -> None:
        for line in lines:
            group, at = line.split()
            stopped[group] = float(at)

    with members(servers, groups, span) as running:
        command = [*OURS, "migrate", "fleet.toml", "--yes", "--bootstrap-server", servers, "--events", "events.jsonl"]
        began = time.monotonic()
        with (folder / "out.txt").open("w") as out, (folder / "err.txt").open("w") as err:
            process = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=out, stderr=err)
        ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while "waiting up to" not in (folder / "err.txt").read_text() and not os.waitid(os.P_PID, process.pid, ended):
            time.sleep(0.1)
        print(f"all plans: {time.monotonic() - began:.1f} s")
        readers = [threading.Thread(target=note, args=[each.stdout]) for each in running]
        for each, reader in zip(running, readers, strict=True):
            begin = cast("IO[str]", each.stdin)
            begin.write("go\n")
            begin.flush()
            reader.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for reader in readers:
            reader.join()
    if process.returncode:
        raise SystemExit((folder / "err.txt").read_text()[-2000:])
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    start = {each["source_groups"][0]: each["at"] for each in events if each["event"] == "START"}
    waits = sorted(datetime.fromisoformat(at).timestamp() - stopped[group] for group, at in start.items())
    at_95 = waits[max(0, int(len(waits) * 0.95) - 1)]
    print(f"stop to START: median {statistics.median(waits):.1f} s, 95 % {at_95:.1f} s, most {waits[-1]:.1f} s")
    cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    print(f"CPU {cpu:.0f} s, memory {memory:.0f} MB, load {os.getloadavg()[0]:.1f}")
    return sum(offsets(servers, f"new.{group}") != offsets(servers, group) for group in groups)


def dry_run(servers: str, groups: Sequence[str], folder: Path) -> None:
    """Measure the dry run of a fleet of stopped groups."""
    for group in groups:
        topic = f"t{int(group[1:]) % TOPICS}"
        consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
        consumer.commit(offsets=[TopicPartition(topic, each, 5) for each in range(PARTITIONS)], asynchronous=False)
        consumer.close()
    began = time.monotonic()
    command = [*OURS, "migrate", "fleet.toml", "--dry-run", "--plan-out", "plans", "--bootstrap-server", servers]
    process = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    seconds = time.monotonic() - began
    print(f"dry run of {len(groups):,} groups: {seconds:.1f} s, CPU {cpu:.0f} s, memory {memory:.0f} MB")
    with open_reader(ClientConfig(bootstrap_servers=servers, timeout=60)) as reader:
        describe_groups(reader, groups)  # finds the coordinators, and connects to them
        began = time.monotonic()
        described = describe_groups(reader, groups)
        read = read_all_committed(reader, groups)
        seconds = time.monotonic() - began
    offsets_read = sum(map(len, read.values()))
    print(f"one description of {len(described):,} groups, and {offsets_read:,} offsets: {seconds:.1f} s")


def main() -> None:
    """Measure, and exit with 1 if a group is at a wrong offset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--span", type=float, default=120.0, help="seconds within which the consumers stop")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--stopped", action="store_true", help="measure only the dry run, of groups without members")
    given = parser.parse_args()
    groups = [f"g{number:04}" for number in range(given.groups)]
    with sandbox(brokers=given.brokers) as running, tempfile.TemporaryDirectory() as folder:
        servers = running.bootstrap_servers
        make_topics(servers, given.brokers)
        (Path(folder) / "fleet.toml").write_text(SPEC, encoding="utf-8")
        if given.stopped:
            dry_run(servers, groups, Path(folder))
            return
        wrong = hand_over(servers, groups, given.span, Path(folder))
        print(f"groups at a wrong offset: {wrong} of {len(groups):,}")
        sys.exit(int(bool(wrong)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--member"]:
        member_process(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5:])
    else:
        main()
