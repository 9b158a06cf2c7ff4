"""Find out whether commits of a group may be missing from a copy of the log of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from migrate_groups.spark.local_rows import local_table

Range = tuple[int, int, int, int]
"""The range of offsets that was copied to files from a partition of the offsets topic: the partition's number, the
first offset, the end (exclusive), and the number of later offsets, which an open transaction hides."""

REASONS = StructType([StructField("group", StringType(), nullable=False), StructField("reason", StringType())])
"""The columns of a table of the groups whose commits may be missing from the copied log. reason: why."""


class Evidence(NamedTuple):
    """How complete the copy of a partition of ``__consumer_offsets`` is, from start_offset to end_offset (exclusive).

    records, control, aborted: the number of records, of transaction markers, and of records of aborted transactions.
    missing: the number of offsets whose records were compacted away or have expired; negative: records were copied
    twice. malformed: the number of records that can't be decoded. held_back: the number of offsets after the
    copied ones, which an open transaction hides. whole: whether missing, malformed and held_back are 0.
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


def evidence(raw: DataFrame, malformed: Mapping[int, int], ranges: Iterable[Range]) -> tuple[Evidence, ...]:
    """Return how complete the copy of each partition of ``__consumer_offsets`` is, sorted by partition.

    raw: the copied records (columns: `offsets_log.RAW`). malformed: partition -> the number of its records that can't
    be decoded. ranges: the offsets that were copied from each partition.
    """
    kinds = (F.count_if(F.col("kind") == kind).alias(name) for kind, name in _KINDS.items())
    counted = {row.log_partition: row for row in raw.groupBy("log_partition").agg(*kinds).collect()}
    return tuple(_of_range(each, counted.get(each[0]), malformed.get(each[0], 0)) for each in sorted(ranges))


def missing_offsets(spark: SparkSession, found: Iterable[Evidence]) -> DataFrame:
    """Return how many offsets of each partition of ``__consumer_offsets`` have no record.

    Columns: log_partition, missing (negative: records were copied twice). found: how complete each partition's copy is.
    """
    return local_table(spark, ((each.log_partition, each.missing) for each in found), _MISSING)


_MISSING = StructType([StructField("log_partition", IntegerType()), StructField("missing", LongType())])
_KINDS = {"record": "records", "control": "control", "aborted": "aborted"}


def _of_range(copied: Range, counted: Row | None, malformed: int) -> Evidence:
    log_partition, start, end, held_back = copied
    records, control, aborted = (counted[name] if counted else 0 for name in _KINDS.values())
    missing = end - start - records - control - aborted
    return Evidence(
        log_partition=log_partition,
        start_offset=start,
        end_offset=end,
        records=records,
        control=control,
        aborted=aborted,
        missing=missing,
        malformed=malformed,
        held_back=held_back,
        whole=not (missing or malformed or held_back),
    )


def reasons(
    groups: Iterable[tuple[str, int, int]], found: Iterable[Evidence], of_groups: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yield (group, reason) for each group whose verdicts are in doubt: the log may lack commits, or have them twice.

    groups: the name of each group, its partition of the log, and an offset that is not used here. found: how complete
    the copied partitions are. of_groups: more reasons for single groups.
    """
    of_partitions = {each.log_partition: [*_reasons(each)] for each in found}
    for group, log_partition, _ in groups:
        if told := [*of_partitions[log_partition], *of_groups.get(group, ())]:
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
