"""Count what the log of the offsets topic has of a range of offsets, and say why it leaves doubts about a group.

The evidence of a partition of the log is whole if every offset from the fence to the end is there, as a record or as a
control record (transaction marker), if every record can be decoded, and if no open transaction holds offsets back.
Missing offsets were compacted away or have expired, so they may have held commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from migrate_groups.spark.local_table import local_table
from migrate_groups.spark.reconciliation.snapshots import with_rows

RANGES = StructType(
    [
        StructField("log_partition", IntegerType(), nullable=False),
        StructField("start_offset", LongType(), nullable=False),
        StructField("end_offset", LongType(), nullable=False),
        StructField("held_back", LongType(), nullable=False),
    ]
)
"""The range of offsets (end exclusive) that was copied to files of each partition of the offsets topic. held_back: how
many offsets after the range could not be read, because a transaction is open."""

REASONS = StructType([StructField("group", StringType(), nullable=False), StructField("reason", StringType())])
"""Why the evidence about a group is not whole. A group without a row has whole evidence."""


class Evidence(NamedTuple):
    """The number of offsets of each kind in the range that was read of a partition of ``__consumer_offsets``.

    control: of transaction markers. aborted: of records of aborted transactions. missing: of records that are
    compacted away or expired. malformed: of records that can't be decoded. held_back: offsets after the range, which an
    open transaction holds back. whole: whether nothing is missing, malformed or held back.
    """

    log_partition: int
    start_offset: int
    end_offset: int
    records: int
    control: int
    aborted: int
    missing: int
    malformed: int
    held_back: int
    whole: bool


def evidence(raw: DataFrame, log: DataFrame, ranges: Iterable[tuple[int, int, int, int]]) -> tuple[Evidence, ...]:
    """Return the evidence of each partition of the log, in order. Runs one job.

    raw: the log (columns of `offsets_log.RAW`); log: the same, decoded; ranges: rows of `RANGES`.
    """
    malformed = log.where(F.col("problem").isNotNull()).select("log_partition", F.lit("malformed").alias("kind"))
    # The ranges are rows among those that are counted, because a join would need more exchanges.
    rows = with_rows(
        local_table(raw.sparkSession, ranges, RANGES), raw.select("log_partition", "kind").union(malformed)
    )
    counted = rows.groupBy("log_partition").agg(
        *(F.max(name).alias(name) for name in RANGES.names[1:]),
        *(F.count_if(F.col("kind") == kind).alias(name) for kind, name in _KINDS.items()),
    )
    there = F.col("records") + F.col("control") + F.col("aborted")
    missing = F.col("end_offset") - F.col("start_offset") - there
    whole = (missing == 0) & (F.col("malformed") == 0) & (F.col("held_back") == 0)
    found = counted.where(F.col("end_offset").isNotNull()).withColumns({"missing": missing, "whole": whole})
    return tuple(sorted(map(Evidence._make, found.select(*Evidence._fields).collect())))


_KINDS = {"record": "records", "control": "control", "aborted": "aborted", "malformed": "malformed"}


def reasons(
    groups: Iterable[tuple[str, int, int]], found: Iterable[Evidence], deleted: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the rows of `REASONS`: why the evidence about each of ``groups`` (rows of `audit.GROUPS`) is not whole.

    The evidence about a deleted group is not whole, because its commits are compacted away, and only the deletion is
    sure to stay.
    """
    of_partitions = {each.log_partition: [*_reasons(each)] for each in found}
    for group, log_partition, _ in groups:
        of_group = [f"group {group} was deleted"] if group in deleted else []
        if told := [*of_partitions[log_partition], *of_group]:
            yield group, "; ".join(told)


def _reasons(found: Evidence) -> Iterator[str]:
    number = found.log_partition
    if found.missing > 0:
        yield f"partition {number} of the log lacks {found.missing} of its offsets"
    if found.missing < 0:
        yield f"partition {number} of the log has records twice: run the audit with a new --log"
    if found.malformed:
        yield f"{found.malformed} of the records of partition {number} of the log can't be decoded"
    if found.held_back:
        yield f"open transactions hold back {found.held_back} of the offsets of partition {number} of the log"
