"""The log straight from Kafka, as far as it goes without the connector: options, rows, and failures."""

from __future__ import annotations

import json
from datetime import UTC

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from migrate_groups.errors import ClusterUnavailable, Undetermined
from migrate_groups.spark.audit import NEW_VERDICTS
from migrate_groups.spark.audit_job import run_audit
from migrate_groups.spark.kafka_source import as_raw, kafka_failures, options
from migrate_groups.spark.offsets_log import RAW
from tests.spark.test_audit import NOON, key, value
from tests.support.frames import frame

TOPIC = "__consumer_offsets"
# As the connector's own documentation has it.
CONNECTOR = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)


def record(group: str, partition: int, offset: int, committed: int) -> tuple[object, ...]:
    return key(group, "t", partition), value(committed), TOPIC, partition, offset, NOON, 0


def test_its_records_prove_as_landed_ones_do_and_what_it_leaves_out_proves_nothing(spark: SparkSession) -> None:
    """They become rows of a landed log. A gap may be a transaction's mark or compacted; an empty answer is a gap."""
    handed_over = {"whole": [7, 8], "gap": [7], "empty": []}
    records = [
        record(group, at, offset, offset + 3) for at, group in enumerate(handed_over) for offset in handed_over[group]
    ]
    raw = as_raw(frame(spark, records, CONNECTOR))
    assert [(field.name, field.dataType) for field in raw.schema] == [(field.name, field.dataType) for field in RAW]
    row = raw.first()
    assert (row.log_partition, row.log_offset, row.log_time.astimezone(UTC), row.kind) == (0, 7, NOON, "record")

    given = [("old", group, "t", at, 10, None, 10, [10]) for at, group in enumerate(handed_over)]
    groups = [("old", 3, 5), *((group, at, 7) for at, group in enumerate(handed_over))]
    found = run_audit(spark, raw, given, groups, [(0, 7, 9, 0), (1, 7, 9, 0), (2, 7, 9, 0), (3, 5, 5, 0)])
    assert {each.group: each.new for each in found.summary} == {
        group: dict.fromkeys(NEW_VERDICTS, 0) | {verdict: 1}
        for group, verdict in {"whole": "starts-at-snapshot", "gap": "undetermined", "empty": "undetermined"}.items()
    }
    assert (found.old["stopped"], found.problems, found.undetermined) == (3, 0, 2)
    assert [(each.missing, each.whole) for each in found.evidence] == [(0, True), (1, False), (2, False), (0, True)]


def test_it_is_asked_for_what_was_read_before_and_committed_alone() -> None:
    """The partitions, their starts and ends; nothing that is given besides overrules how it reads."""
    given = {"bootstrap.servers": "h:1", "isolation.level": "read_uncommitted", "sasl.jaas.config": "…"}
    asked = options(TOPIC, {7: (3, 9), 2: (0, 0)}, given, 2.5)
    assert json.loads(asked.pop("assign")) == {TOPIC: [2, 7]}
    assert json.loads(asked.pop("startingOffsets")) == {TOPIC: {"2": 0, "7": 3}}
    assert json.loads(asked.pop("endingOffsets")) == {TOPIC: {"2": 0, "7": 9}}
    assert asked == {
        "failOnDataLoss": "true",
        "groupIdPrefix": "migrate-groups-audit",
        "kafkaConsumer.pollTimeoutMs": "2500",
        "kafka.bootstrap.servers": "h:1",
        "kafka.isolation.level": "read_committed",
        "kafka.fetch.max.wait.ms": "10",
        "kafka.sasl.jaas.config": "…",
    }


@pytest.mark.parametrize(
    ("said", "kind", "complaint"),
    [
        (
            "java.lang.IllegalStateException: Cannot fetch offset 5 (GroupId: g).\nSome data may have been lost",
            Undetermined,
            "offsets are gone",
        ),
        ("java.util.concurrent.TimeoutException: Cannot fetch record for offset 5 in 9 ms", Undetermined, "compacted"),
        (
            "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: g\n\tat a.b",
            ClusterUnavailable,
            "GroupAuthorizationException: Not authorized to access group: g$",
        ),
        (
            "org.apache.kafka.common.KafkaException: failed\nCaused by: no secret=hidden",
            ClusterUnavailable,
            r"\(KafkaException\): Java may not take",
        ),
    ],
)
def test_what_it_fails_with_is_one_line(said: str, kind: type[Exception], complaint: str) -> None:
    """Offsets that are gone are no proof; what Kafka answers is said; of anything else its kind alone, and no text."""
    with pytest.raises(kind, match=complaint) as raised, kafka_failures(TOPIC):
        raise PySparkException(said)
    assert "\n" not in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_other_failures_pass() -> None:
    """A bug stays one."""
    with pytest.raises(PySparkException, match="else"), kafka_failures(TOPIC):
        raise PySparkException("something else")
