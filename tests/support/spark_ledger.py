"""A query of Spark Structured Streaming that writes the value of each record to a ledger, as a process.

Arguments: a JSON object with ``jars``, ``bootstrap_servers``, ``topic``, ``starting_offsets``, ``checkpoint``,
``ledger`` and ``halt``. If the file ``halt`` exists, a batch that was written to the ledger does not end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from migrate_groups.sandbox.fetch import Fetch
from migrate_groups.sandbox.jars import user_cache
from migrate_groups.sandbox.java import Java

VERSION = "4.2.0"
"""Of Spark's Kafka source: the last one that is published. It runs in PySpark 4.3.0."""
_MODULES = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", VERSION),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


def spark_kafka_jars(java: Java, mirror: str | None) -> list[str]:
    """Return the jars of Spark's Kafka source; download them first if they are missing."""

    def retrieve(ivy, into):
        for organisation, name, version in _MODULES:
            ivy.retrieve(organisation, name, version, into)
        return {f"{name}-{version}" for _, name, version in _MODULES}

    folder = user_cache() / "spark" / f"kafka-source-{VERSION}"
    return [str(jar) for jar in Fetch(java=java, mirror=mirror).jars(folder, "Spark's Kafka source", retrieve)]


def _write(batch: DataFrame, ledger: Path, halt: Path) -> None:
    values = [row.value for row in batch.selectExpr("string(value)").collect()]
    with ledger.open("a") as file:
        file.write("".join(f"{value}\n" for value in values))
    if values and halt.exists():
        threading.Event().wait()


def main() -> None:
    """Run the query until SIGTERM, which stops it after the batch that runs, or until it fails."""
    given = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(given["jars"]))
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", 1).getOrCreate()
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", given["bootstrap_servers"])
        .option("subscribe", given["topic"])
        .option("startingOffsets", given["starting_offsets"])
    )
    query = (
        source.load()
        .writeStream.option("checkpointLocation", given["checkpoint"])
        .foreachBatch(lambda batch, _: _write(batch, Path(given["ledger"]), Path(given["halt"])))
        .start()
    )
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    while query.isActive and not stop.wait(0.2):
        pass
    if query.isActive:
        query.processAllAvailable()
        query.stop()
    elif query.exception():
        sys.stderr.write(str(query.exception()))
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
