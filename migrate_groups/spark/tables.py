"""The column types of the tables that the Spark jobs read and write.

If a snapshot has the column `OLDEST_UNCONSUMED`, the tables partition_verdict and group_topic_summary also have the
columns `TIME_LAGS`.
"""

from __future__ import annotations

from pyspark.sql.types import DoubleType, StructField, StructType

from migrate_groups import schema
from migrate_groups.spark.offsets_topic.offsets_log import RAW
from migrate_groups.spark.reconciliation import reconcile
from migrate_groups.spark.reconciliation.mapping import MAPPING, TOPIC_MAPPING
from migrate_groups.spark.reconciliation.reconcile import PLANNED
from migrate_groups.spark.reconciliation.snapshots import OLDEST_UNCONSUMED, SNAPSHOT, field

__all__ = [
    "GROUP_TOPIC_SUMMARY",
    "LAG_TIMELINE",
    "MAPPING",
    "OLDEST_UNCONSUMED",
    "PARTITION_VERDICT",
    "PLANNED",
    "RAW",
    "SNAPSHOT",
    "TIME_LAGS",
    "TOPIC_MAPPING",
]

PARTITION_VERDICT = StructType([field(column) for column in schema.PARTITION_VERDICT])
"""The columns of the table partition_verdict (`reconcile.partition_verdict`)."""

GROUP_TOPIC_SUMMARY = StructType([field(column) for column in schema.GROUP_TOPIC_SUMMARY])
"""The columns of the table group_topic_summary (`reconcile.group_topic_summary`)."""

LAG_TIMELINE = StructType([field(column) for column in schema.LAG_TIMELINE])
"""The columns of the table lag_timeline (`timeline.lag_timeline`)."""

TIME_LAGS = StructType([StructField(name, DoubleType()) for name in reconcile.TIME_LAGS])
"""The columns of the time lag, in seconds."""
