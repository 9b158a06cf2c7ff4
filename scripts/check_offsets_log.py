"""Compare our decoding of the offsets topic with Kafka's own: ``scripts/check_offsets_log.py [COMMITS]``.

On a sandbox of its own, that many offsets (200,000 unless said) are committed by several groups, in transactions as
well, some of which are aborted, and some offsets are deleted. Then every record is decoded by us, in Spark, and printed
by Kafka's ``OffsetsMessageFormatter`` through its console consumer, once as read_committed and once as read_uncommitted.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from migrate_groups.cluster.client_config import ClientConfig
from migrate_groups.cluster.kafka_python import KafkaPythonReader
from migrate_groups.cluster.offsets_topic import OffsetsTopicReader
from migrate_groups.cluster.ports import OFFSETS_TOPIC
from migrate_groups.files.landed_log import LandedLog
from migrate_groups.migration.landing import land
from migrate_groups.sandbox.broker import Sandbox, start_sandbox
from migrate_groups.sandbox.jars import fetch_jars, user_cache
from migrate_groups.sandbox.java import find_java
from migrate_groups.spark.offsets_log import RAW, decode
from migrate_groups.spark.session import local_session

_PARTITIONS = 500
_GROUPS = 7
_METADATA = ("", "m", "grüße 😀", '{"quoted": "yes, and\\n"}', "x" * 130, "y" * 4000)


def main(commits: int) -> int:
    """Return 0 where both say the same of every record."""
    java = find_java(os.environ)
    jars = fetch_jars(java=java, cache=user_cache(), mirror=os.environ.get("MIGRATE_GROUPS_MAVEN_MIRROR"))
    with tempfile.TemporaryDirectory() as name, start_sandbox(jars, java=java) as sandbox:
        _commit(sandbox.bootstrap_servers, commits)
        folder = Path(name)
        records = _land(sandbox.bootstrap_servers, folder)
        by_kafka = {level: _printed(sandbox, level, records) for level in ("read_committed", "read_uncommitted")}
        with local_session() as spark:
            ours = {
                "read_committed": _decoded(spark, folder, ["record"]),
                "read_uncommitted": _decoded(spark, folder, ["record", "aborted"]),
            }
    equal = True
    for level, decoded in ours.items():
        different = sum(one != other for one, other in itertools.zip_longest(decoded, by_kafka[level]))
        equal = equal and not different
        print(
            f"{level}: {len(decoded):,} offset commits decoded, {len(by_kafka[level]):,} by Kafka, {different:,} differ"
        )
    return 0 if equal else 1


def _commit(servers: str, commits: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("orders", _PARTITIONS, 1)])["orders"].result(60)
    numbers = itertools.count()
    groups = [f"gruppe-ä-{number}" for number in range(_GROUPS)]
    consumers = [
        Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}) for group in groups
    ]
    for consumer in consumers:
        consumer.committed([TopicPartition("orders", 0)], 60)  # until Kafka has made its offsets topic
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "check"})
    producer.init_transactions(60)
    for batch in range(commits // _PARTITIONS):
        consumer = consumers[batch % _GROUPS]
        size = 100 if batch % 6 == 5 else _PARTITIONS  # a request of long metadata must fit
        metadata = _METADATA[batch % 6]
        for start in range(0, _PARTITIONS, size):
            offsets = [
                TopicPartition("orders", number, next(numbers), metadata) for number in range(start, start + size)
            ]
            consumer.commit(offsets=offsets, asynchronous=False)
        if batch % 10 == 9:
            producer.begin_transaction()
            some = [TopicPartition("orders", number, next(numbers)) for number in range(20)]
            producer.send_offsets_to_transaction(some, consumer.consumer_group_metadata(), 60)
            (producer.commit_transaction if batch % 20 == 9 else producer.abort_transaction)(60)
    for consumer in consumers:
        consumer.close()
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as deleting:
        deleting.delete_groups(groups[:1])


def _land(servers: str, folder: Path) -> int:
    """Land the whole topic; return how many records Kafka's consumer will find without those that were aborted."""
    config = ClientConfig(bootstrap_servers=servers)
    with closing(KafkaPythonReader(config)) as reader, closing(OffsetsTopicReader(config)) as topic:
        partitions = reader.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions
        log = LandedLog.opened(folder, reader.cluster_id(), dict.fromkeys(partitions, 0))
        landed = land(reader, topic, log, partitions, lambda done, total: None)
    return sum(landed.log.ends.values())


def _printed(sandbox: Sandbox, level: str, records: int) -> list[tuple[object, ...]]:
    arguments = ["--topic", OFFSETS_TOPIC, "--from-beginning", "--timeout-ms", "15000", "--isolation-level", level]
    arguments += ["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"]
    done = sandbox.run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *arguments, timeout=600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) <= records, "Kafka's tool found records that were not landed"
    return sorted(map(_of_kafka, lines), key=str)


def _of_kafka(line: str) -> tuple[object, ...]:
    record = json.loads(line)
    key, value = record["key"]["data"], record["value"] or {"version": None, "data": {}}
    data = value["data"]
    return (
        *(key["group"], key["topic"], key["partition"], value["version"]),
        *(data.get("offset"), data.get("leaderEpoch"), data.get("metadata"), data.get("commitTimestamp")),
    )


def _decoded(spark: SparkSession, folder: Path, kinds: list[str]) -> list[tuple[object, ...]]:
    raw = spark.read.schema(RAW).parquet(str(folder)).where(F.col("kind").isin(kinds))
    rows = decode(raw.withColumn("kind", F.lit("record")))
    assert rows.where(F.col("problem").isNotNull()).count() == 0
    commits = rows.where(F.col("kind") == "offset-commit").withColumn("at", F.unix_millis("commit_time"))
    return sorted(_ours(commits.toLocalIterator()), key=str)


def _ours(rows: Iterator[Row]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        epoch = -1 if row.leader_epoch is None and not row.tombstone else row.leader_epoch
        yield row.group, row.topic, row.partition, row.version, row.offset, epoch, row.metadata, row.at


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000))
