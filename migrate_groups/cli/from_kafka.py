"""audit --source kafka: the log of the offsets topic read by Spark's own connector, without a landed log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_groups.cli.audit import Group, fenced, handed_over, open_log
from migrate_groups.cli.connect import Connection
from migrate_groups.cli.progress import fetch_bar
from migrate_groups.cli.spark_here import spark_here
from migrate_groups.cluster.ports import OFFSETS_TOPIC
from migrate_groups.errors import ClusterUnavailable
from migrate_groups.offsets.times import parse_duration

if TYPE_CHECKING:
    from migrate_groups.plan.receipt import Deed
    from migrate_groups.spark.audit_job import Audit


def prove_from_kafka(
    connection: Connection, mirror: str | None, deed: Deed, partitions: int, groups: list[Group]
) -> Audit:
    """Conclude from what the log holds up to ends that our own consumer has read before. Raises as `audit`."""
    from migrate_groups.migration.landing import spans

    properties, jars = connection.for_java(), _connector(mirror)
    with open_log(connection, deed.cluster_id, partitions) as (reader, topic):
        found = spans(reader, topic, fenced(groups))
    settings = {"spark.jars": ",".join(jar.as_uri() for jar in jars)}
    with spark_here(sum(span.end - span.begin for span in found.values()), settings) as spark:
        from migrate_groups.spark.audit_job import run_audit
        from migrate_groups.spark.kafka_source import kafka_log

        asked = {number: (span.begin, span.end) for number, span in found.items()}
        ranges = [(number, span.fence, span.end, span.held_back) for number, span in found.items()]
        timeout = parse_duration(connection.timeout, "--timeout")
        with kafka_log(spark, OFFSETS_TOPIC, asked, properties, timeout) as raw:
            return run_audit(spark, raw, handed_over(deed), groups, ranges)


def _connector(mirror: str | None) -> tuple[Path, ...]:
    from migrate_groups.sandbox.connector import DOWNLOAD_MB, connector_version, fetch_connector
    from migrate_groups.sandbox.fetch import Fetch
    from migrate_groups.sandbox.jars import user_cache
    from migrate_groups.sandbox.java import find_java

    _, version = connector_version()
    with fetch_bar(f"Spark's Kafka connector {version}", DOWNLOAD_MB) as report:
        try:
            fetch = Fetch(java=find_java(os.environ), mirror=mirror, report=report)
            return fetch_connector(fetch, cache=user_cache())
        except ClusterUnavailable as error:
            raise ClusterUnavailable(f"{error}; or leave --source out, which needs none of it") from error
