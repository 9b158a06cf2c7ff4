"""The log of the offsets topic straight from Kafka, through Spark's own connector, as rows of `offsets_log.RAW`.

The connector hands over records alone: neither the mark at a transaction's end nor what was aborted. So an offset of
which there is nothing may be one of those, or have been compacted away; nobody can tell, and the evidence is not whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.errors import ClusterUnavailable, MigrateGroupsError, Undetermined

GROUP_PREFIX = "migrate-groups-audit"
"""What the names of the groups begin with under which the connector reads. It never joins one, and commits nothing."""

# By itself the connector asks an admin client for the partitions, and leaves out internal topics (measured, 4.0.0).
_INTERNAL_TOPICS_TOO = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
# What the connector says where an offset is not there any more, or nothing at all is from one on.
_GONE = re.compile(r"Cannot fetch (?:offset|record)|data may have been lost|OffsetOutOfRangeException")
# Kafka's errors that a broker answers with: they quote no property.
_ANSWERED = re.compile(r"org\.apache\.kafka\.common\.errors\.(\w+Exception): ([^\n]+)")
_KAFKA = re.compile(r"org\.apache\.(?:kafka|spark\.sql\.kafka010)\.(?:\w+\.)*(\w+(?:Exception|Error))")

# What Spark itself may take to plan a first job, on a slow machine.
_SPARK_SECONDS = 15.0

Spans = Mapping[int, tuple[int, int]]
"""From which offset to which, of each partition."""


def options(topic: str, spans: Spans, properties: Mapping[str, str], timeout: float) -> dict[str, str]:
    """Return the options of the connector's batch reader.

    properties: of a Java client, secrets among them. timeout: seconds that one record may take to come.
    """
    starts, ends = ({str(number): span[side] for number, span in sorted(spans.items())} for side in (0, 1))
    return {f"kafka.{key}": value for key, value in properties.items()} | {
        "assign": json.dumps({topic: sorted(spans)}),
        "startingOffsets": json.dumps({topic: starts}),
        "endingOffsets": json.dumps({topic: ends}),
        "failOnDataLoss": "true",  # a start that is gone by now ends the job
        "groupIdPrefix": GROUP_PREFIX,
        "kafkaConsumer.pollTimeoutMs": str(int(timeout * 1000)),
        "kafka.isolation.level": "read_committed",
        "kafka.fetch.max.wait.ms": "10",  # each gap is looked at anew, with no record to wait for
    }


@contextmanager
def kafka_log(
    spark: SparkSession, topic: str, spans: Spans, properties: Mapping[str, str], timeout: float
) -> Iterator[DataFrame]:
    """Yield what these partitions of the topic hold, read once: what is counted and what is concluded from is the same.

    See `options`. Raises `Undetermined` where an offset can't be had any more, `ClusterUnavailable` if Kafka refuses.
    """
    spark.conf.set(_INTERNAL_TOPICS_TOO, "true")
    reader = spark.read.format("kafka").options(**options(topic, spans, properties, timeout))
    with kafka_failures(topic):
        raw = _within(timeout + _SPARK_SECONDS, topic, lambda: as_raw(reader.load()).persist())
    try:
        with kafka_failures(topic):
            raw.count()
        yield raw
    finally:
        raw.unpersist()


def as_raw(records: DataFrame) -> DataFrame:
    """The connector's records with the columns of `offsets_log.RAW`."""
    return records.select(
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
        F.col("timestamp").alias("log_time"),
        F.lit("record").alias("kind"),
        "key",
        "value",
    )


def _within(seconds: float, topic: str, plan: Callable[[], DataFrame]) -> DataFrame:
    """Return what was planned: by then the connector has asked for partitions, and it would wait forever (measured)."""
    done: Future[DataFrame] = Future()

    def run() -> None:
        try:
            done.set_result(plan())
        except BaseException as error:  # noqa: BLE001 (it is raised where it is waited for)
            done.set_exception(error)

    InheritableThread(target=run, daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        raise ClusterUnavailable(f"Spark's connector had no answer about {topic} within {seconds:g} s") from None


@contextmanager
def kafka_failures(topic: str) -> Iterator[None]:
    """Within it, what Kafka causes is raised as one of our errors; no property, which may be secret, is quoted."""
    try:
        yield
    except MigrateGroupsError:
        raise
    except Exception as error:
        said = str(error)
        if _GONE.search(said):
            raise Undetermined(
                f"Spark's connector can't read {topic} to its end: offsets are gone, or have been compacted away; "
                "without --source kafka audit says how many"
            ) from None
        if answered := _ANSWERED.search(said):
            raise ClusterUnavailable(f"Spark's connector can't read {topic}: {answered[1]}: {answered[2]}") from None
        if kafka := _KAFKA.search(said):
            raise ClusterUnavailable(
                f"Spark's connector can't read {topic} ({kafka[1]}): Java may not take these client's properties; "
                "without --source kafka audit needs no Java client"
            ) from None
        raise
