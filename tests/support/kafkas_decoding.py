"""Compare our decoding of the offsets topic with Kafka's own.

Several groups commit offsets, and more in transactions, some of which are aborted; then one group is deleted. Our Spark
code decodes every record, and Kafka's console consumer prints it with ``OffsetsMessageFormatter``.

Classic and KIP-848 members with unusual names join groups, too. Our Spark code decodes the records of these members,
and Kafka's ``DumpLogSegments`` prints them.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.offsets_topic import KafkaOffsetsTopic
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.reading.copy_log import copy_log
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.sandbox.broker import Sandbox
from migrate_groups.spark.offsets_topic.commits_over_time import clients
from migrate_groups.spark.offsets_topic.group_records import group_records
from migrate_groups.spark.offsets_topic.offsets_log import RAW, decode
from migrate_groups.spark.offsets_topic.overload import consumers, generations

_PARTITIONS = 500
_COORDINATOR_SECONDS = 60
_GROUPS = 7
VISIBLE = {"read_committed": ["record"], "read_uncommitted": ["record", "aborted"]}
_METADATA = ("", "m", "grüße 😀", '{"quoted": "yes, and\\n"}', "x" * 130)
_LONG = "y" * 4000
# The protocol, the client id, other settings and the topics of each member that joins a group.
_JOINED = "members-"  # the names of the groups of `join` begin with this
_MEMBERS: tuple[tuple[str, str, dict[str, str], list[str]], ...] = (
    ("classic", "größe 😀", {}, ["orders"]),
    ("classic", "c" * 130, {"client.rack": "r" * 130}, ["orders", "many"]),
    ("classic", "d" * 20_000, {"group.instance.id": "static-1"}, ["many"]),
    ("consumer", "größe 😀", {}, ["^ord.*"]),
    ("consumer", "c" * 130, {"client.rack": "r" * 130}, ["orders", "many"]),
    ("consumer", "ü" * 10_000, {"group.instance.id": "static-2"}, ["many"]),
    ("consumer", "e" * 126, {"client.rack": "r" * 16_383}, ["^(orders|many)" + "x?" * 100]),
)


def compare(
    sandbox: Sandbox, spark: SparkSession, folder: Path, *levels: str, quiet: int = 15
) -> dict[str, tuple[int, int, int]]:
    """Return, by isolation level, three numbers of commits: decoded by our code, decoded by Kafka, and different.

    levels: the isolation levels. quiet: the seconds without a record after which Kafka's tool ends.
    """
    _copy(sandbox.bootstrap_servers, folder)
    raw = spark.read.schema(RAW).parquet(str(folder))
    found = {}
    for level in levels:
        visible = raw.where(F.col("kind").isin(VISIBLE[level]))
        with ThreadPoolExecutor() as beside:
            printed = beside.submit(_printed, sandbox, level, quiet)
            ours, by_kafka = _decoded(visible), printed.result()
        different = sum(one != other for one, other in itertools.zip_longest(ours, by_kafka))
        found[level] = len(ours), len(by_kafka), different
    return found


def _await_coordinator(consumer: Consumer) -> None:
    """Wait until the consumer's group has a coordinator, because a new cluster first makes its offsets topic."""
    deadline = time.monotonic() + _COORDINATOR_SECONDS
    while True:
        try:
            consumer.committed([TopicPartition("orders", 0)], 10)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def commit(servers: str, commits: int) -> None:
    """Commit ``commits`` offsets, some with unusual metadata, and more in transactions; then delete one group."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic("orders", _PARTITIONS, 1), NewTopic("many", 9, 1)]
    for created in admin.create_topics(topics).values():
        created.result(60)
    numbers = itertools.count()
    groups = ["in-transactions", *(f"größe-{number}" for number in range(1, _GROUPS))]
    consumers = [
        Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}) for group in groups
    ]
    for consumer in consumers:
        _await_coordinator(consumer)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "check"})
    producer.init_transactions(60)
    for batch in range(commits // _PARTITIONS):
        consumer = consumers[batch % _GROUPS]
        long = batch % 60 == 59
        size, metadata = (100, _LONG) if long else (_PARTITIONS, _METADATA[batch % 5])  # to limit a request's size
        for start in range(0, _PARTITIONS, size):
            offsets = [
                TopicPartition("orders", number, next(numbers), metadata) for number in range(start, start + size)
            ]
            consumer.commit(offsets=offsets, asynchronous=False)
        if batch % 10 == 9:
            producer.begin_transaction()
            some = [TopicPartition("orders", number, next(numbers)) for number in range(20)]
            producer.send_offsets_to_transaction(some, consumers[0].consumer_group_metadata(), 60)
            (producer.commit_transaction if batch % 20 == 9 else producer.abort_transaction)(60)
    for consumer in consumers:
        consumer.close()
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as deleting:
        deleting.delete_groups(groups[1:2])


def join(servers: str) -> None:
    """Let members with unusual names join two groups, one classic and one of the protocol KIP-848, and leave again."""
    joined = []
    for protocol, client, others, topics in _MEMBERS:
        settings = {"bootstrap.servers": servers, "group.id": f"{_JOINED}{protocol}", "group.protocol": protocol}
        joined.append(Consumer({**settings, "client.id": client, **others}))
        joined[-1].subscribe(topics)
    waiting, deadline = list(joined), time.monotonic() + _COORDINATOR_SECONDS
    while waiting:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(waiting)} members have no partition after {_COORDINATOR_SECONDS} s")
        for consumer in joined:
            consumer.poll(0.05)
        waiting = [consumer for consumer in waiting if not consumer.assignment()]
    for consumer in joined:
        consumer.close()


def compare_members(
    sandbox: Sandbox, spark: SparkSession, folder: Path
) -> tuple[int, Mapping[tuple[int, int], object]]:
    """Return how many records about members our code decodes, and those that Kafka decodes differently.

    The latter are by partition and offset, each as our code and as Kafka decodes it. folder: the copy of the log that
    `compare` made. Raises `RuntimeError` if Kafka's tool fails.
    """
    records = group_records(decode(spark.read.schema(RAW).parquet(str(folder))))
    # Kafka's tools have joined groups of their own since.
    records = records.where(F.col("group").startswith(_JOINED))
    ours: dict[tuple[int, int], list[object]] = {}
    for row in clients(records).where(F.size("clients") > 0).collect():
        ours[row.log_partition, row.log_offset] = [sorted(row.clients)]
    for row in generations(records).where(F.size("members") > 0).collect():
        each = [
            (each.client_id, each.topics, sorted((of.topic, of.partition) for of in each.partitions))
            for each in row.members
        ]
        ours[row.log_partition, row.log_offset].append(sorted(each))
    for row in consumers(records).collect():
        ours[row.log_partition, row.log_offset].append((row.client_id, row.topics, row.regex or ""))
    by_kafka = dict(_members_by_kafka(sandbox, {partition for partition, _ in ours}))
    both = {place: (ours.get(place), by_kafka.get(place)) for place in {*ours, *by_kafka}}
    return len(ours), {place: pair for place, pair in both.items() if pair[0] != pair[1]}


def _members_by_kafka(sandbox: Sandbox, partitions: set[int]) -> Iterator[tuple[tuple[int, int], list[object]]]:
    """Yield the partition and offset of each record that lists members, and the members as Kafka's tool prints them."""
    for partition in sorted(partitions):
        files = sorted((sandbox.node.folder / "data" / f"{OFFSETS_TOPIC}-{partition}").glob("*.log"))
        command = [*sandbox.tool_command, "org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder"]
        done = subprocess.run(
            [*command, "--files", ",".join(map(str, files))], capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode:
            raise RuntimeError(f"DumpLogSegments failed: {done.stderr.strip()}")
        for line in done.stdout.splitlines():
            if found := re.match(r'\| offset: (\d+) .* key: \{"type":"([25])",(.*)\} payload: (\{.*)', line):
                offset, kind, key, payload = found.groups()
                if f'":"{_JOINED}' not in key:
                    continue
                value = json.loads(payload)["data"]
                if kind == "5":
                    names = value["clientId"], sorted(value["subscribedTopicNames"]), value["subscribedTopicRegex"]
                    yield (partition, int(offset)), [[value["clientId"] + value["clientHost"]], names]
                elif listed := value["members"]:
                    clients = sorted(each["clientId"] + each["clientHost"] for each in listed)
                    yield (partition, int(offset)), [clients, sorted(map(_member_of_kafka, listed))]


def _member_of_kafka(member: dict[str, Any]) -> tuple[object, ...]:
    assigned = [
        (of["topic"], number) for of in member["assignment"]["assignedPartitions"] for number in of["partitions"]
    ]
    return member["clientId"], sorted(member["subscription"]["topics"]), sorted(assigned)


def _copy(servers: str, folder: Path) -> None:
    config = ClientConfig(bootstrap_servers=servers)
    with closing(KafkaPythonReader(config)) as reader, closing(KafkaOffsetsTopic(config)) as topic:
        partitions = reader.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions
        log = CopiedLog.load_with_starts(folder, reader.cluster_id(), dict.fromkeys(partitions, 0))
        copy_log(reader, topic, log, partitions, lambda done, total: None)


def _printed(sandbox: Sandbox, level: str, quiet: int) -> list[tuple[object, ...]]:
    # The tool ends when no record has come for this time. The number of records is not known, because the tool's own
    # group adds some.
    arguments = [
        "--topic",
        OFFSETS_TOPIC,
        "--from-beginning",
        "--isolation-level",
        level,
        "--timeout-ms",
        str(1000 * quiet),
    ]
    arguments += ["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"]
    done = sandbox.run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *arguments, timeout=600)
    return sorted(map(_of_kafka, _documents(done.stdout)), key=str)


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON documents, which the formatter writes without a separator."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        document, at = decoder.raw_decode(text, at)
        yield document


def _of_kafka(record: dict[str, Any]) -> tuple[object, ...]:
    key, value = record["key"]["data"], record["value"] or {"version": None, "data": {}}
    data = value["data"]
    return (
        *(key["group"], key["topic"], key["partition"], value["version"]),
        *(data.get("offset"), data.get("leaderEpoch"), data.get("metadata"), data.get("commitTimestamp")),
        base64.urlsafe_b64decode(f"{data['topicId']}==").hex().upper() if "topicId" in data else None,
    )


def _decoded(visible: DataFrame) -> list[tuple[object, ...]]:
    rows = decode(visible.withColumn("kind", F.lit("record")))
    commits = rows.where((F.col("kind") == "offset-commit") | F.col("problem").isNotNull())
    return sorted(_ours(commits.withColumn("at", F.unix_millis("commit_time")).toLocalIterator()), key=str)


def _ours(rows: Iterator[Row]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        epoch = -1 if row.leader_epoch is None and not row.tombstone else row.leader_epoch
        yield row.group, row.topic, row.partition, row.version, row.offset, epoch, row.metadata, row.at, row.topic_id
