"""Count the records of the offsets topic's log in a range of offsets, and say why they leave doubts about a group.

The evidence in a partition of the log is whole under three conditions. Every offset from the fence to the end is there,
as a record or as a control record (transaction marker). Every record can be decoded. No open transaction holds offsets
back. The records of missing offsets were compacted away or have expired; they may have been commits.
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
"""The range of offsets that was copied of each partition of the offsets topic; end_offset is exclusive. held_back: the
number of offsets after the range that could not be read, because a transaction is open."""

REASONS = StructType([StructField("group", StringType(), nullable=False), StructField("reason", StringType())])
"""The reason why the evidence about a group is not whole. A group without a row has whole evidence."""


class Evidence(NamedTuple):
    """The range of offsets that was read of a partition of ``__consumer_offsets``, and counts of these offsets.

    records: offsets of records, except aborted ones. control: offsets of transaction markers. aborted: offsets of
    records of aborted transactions. missing: offsets whose records were compacted away or have expired. malformed: the
    number of records that can't be decoded. held_back: the number of offsets after the range that an open transaction
    holds back. whole: whether nothing is missing, malformed or held back.
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
    """Return the evidence in each partition of the log, sorted by partition. Runs one Spark job.

    raw: the log (columns of `offsets_log.RAW`). log: the same records, decoded. ranges: rows of `RANGES`.
    """
    malformed = log.where(F.col("problem").isNotNull()).select("log_partition", F.lit("malformed").alias("kind"))
    # The ranges are added to the rows that are counted, because a join would need more exchanges.
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
    """Yield the rows of `REASONS` for groups about which the evidence is not whole.

    groups: rows of `audit.GROUPS`. found: the evidence in the partitions of the log. deleted: the names of deleted
    groups. The evidence about a deleted group is not whole, because its commits are compacted away and only the
    deletion is certain to remain.
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
