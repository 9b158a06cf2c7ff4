"""Check, with one Spark job, whether the snapshots from before and after a migration can be compared."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.errors import InvalidInput
from migrate_groups.text import counted

_SIDES = ("before", "after")
_FOLLOW = "after a split, pass the spec with --spec, or the output of the command split as BEFORE"


class Alignment(NamedTuple):
    """Facts about the snapshots from before and after a migration, which their comparison needs.

    - cluster_id: the cluster id for rows without one; empty if no row has a cluster id.
    - hints: sentences for the user.
    - has_history: whether a group has snapshots of three or more points in time.
    - clusters, rows: the number of cluster ids and of rows.
    - single: whether each group has at most one snapshot from before and at most one from after.
    - other_groups: whether the snapshots from after may have groups that are not compared.
    """

    cluster_id: str
    hints: tuple[str, ...]
    has_history: bool
    clusters: int
    rows: int
    single: bool
    other_groups: bool


def align(asked: DataFrame, after: DataFrame) -> Alignment:
    """Check that the snapshots from before and after a migration can be compared, and return facts about the snapshots.

    asked: the rows from before, each with the group that is to have the offset after the migration.

    Raises `InvalidInput` if a table has no rows, a row has no group, the cluster ids do not match, the tables have no
    group in common, or ``after`` is older than ``asked``.
    """
    look = _look(asked, after)
    if not look["before_rows"]:
        raise InvalidInput("BEFORE has no rows, or no rows for the split: take a snapshot of the source group")
    if not look["after_rows"]:
        raise InvalidInput("AFTER has no rows: take a snapshot of the new groups")
    if look["groupless"]:
        raise InvalidInput("a row has no group, so its offset can't be compared: add a group column")
    cluster_id = _missing_cluster(look)
    if not look["shared"]:
        example = look["before_only_example"]
        raise InvalidInput(
            f"AFTER has none of the new groups, such as {example!r}: take a snapshot of them"
            if look["handed_over"]
            else f"BEFORE and AFTER have no group in common: {_FOLLOW}"
        )
    _require_order(look["before_at"], look["after_at"])
    clusters = len({*look["before_clusters"], *look["after_clusters"]})
    return Alignment(
        cluster_id,
        _hints(look),
        has_history=look["most_moments"] > 2,
        clusters=clusters,
        rows=look["before_rows"] + look["after_rows"],
        single=look["most_of_a_side"] == 1,
        other_groups=look["after_only"] > 0 or clusters > 1,
    )


def _look(asked: DataFrame, after: DataFrame) -> Row:
    is_before, cluster = F.col("is_before"), F.col("cluster_id")
    columns = ("group", "cluster_id", "source_group", "taken_at", "topic_id")
    rows = asked.select(F.lit(True).alias("is_before"), *columns).union(
        after.select(F.lit(False).alias("is_before"), *columns)
    )
    # The rows are grouped by moment first, so that all later steps work on few rows.
    moments = rows.groupBy("group", "cluster_id", "taken_at").agg(
        F.count_if(is_before).alias("before"),
        F.count_if(~is_before).alias("after"),
        F.count_if(is_before & F.col("source_group").isNotNull()).alias("handed_over"),
        F.count_if(F.col("topic_id").isNull()).alias("without_topic_id"),
    )
    # Repartitioned explicitly, so that both of the next aggregations need only this one exchange.
    by_cluster = (
        moments.repartition("group")
        .groupBy("group", "cluster_id")
        .agg(
            *_sums(),
            F.count("taken_at").alias("moments"),
            F.greatest(*(F.count_if(F.col(side) > 0) for side in _SIDES)).alias("of_a_side"),
            *(F.max(F.when(F.col(side) > 0, F.unix_micros("taken_at"))).alias(f"{side}_at") for side in _SIDES),
        )
    )
    groups = by_cluster.groupBy("group").agg(
        *_sums(),
        *_latest(),
        F.max("moments").alias("moments"),
        F.max("of_a_side").alias("of_a_side"),
        F.sum("moments").alias("all_moments"),
        F.sum(F.when(cluster.isNull(), F.col("before") + F.col("after")).otherwise(0)).alias("clusterless"),
        F.collect_set(F.when(F.col("before") > 0, cluster)).alias("before_clusters"),
        F.collect_set(F.when(F.col("after") > 0, cluster)).alias("after_clusters"),
    )
    # Rows without a cluster id belong to the same cluster as the other rows, so the moments of both are added up.
    of_a_line = F.when(F.col("clusterless") > 0, F.col("all_moments")).otherwise(F.col("moments"))
    before_only, after_only = F.col("after") == 0, F.col("before") == 0
    total = groups.agg(
        *_latest(),
        F.sum("before").alias("before_rows"),
        F.sum("after").alias("after_rows"),
        F.sum("handed_over").alias("handed_over"),
        F.sum("clusterless").alias("clusterless"),
        F.sum("without_topic_id").alias("without_topic_id"),
        F.coalesce(F.max(F.when(~after_only, of_a_line)), F.lit(0)).alias("most_moments"),
        F.max("of_a_side").alias("most_of_a_side"),
        F.count_if(F.col("group").isNull()).alias("groupless"),
        F.count_if(~before_only & ~after_only).alias("shared"),
        F.count_if(before_only).alias("before_only"),
        F.min(F.when(before_only, F.col("group"))).alias("before_only_example"),
        F.count_if(after_only).alias("after_only"),
        F.min(F.when(after_only, F.col("group"))).alias("after_only_example"),
        _merged("before_clusters"),
        _merged("after_clusters"),
    )
    return total.collect()[0]


def _sums() -> list[Column]:
    return [F.sum(name).alias(name) for name in ("before", "after", "handed_over", "without_topic_id")]


def _latest() -> list[Column]:
    return [F.max(f"{side}_at").alias(f"{side}_at") for side in _SIDES]


def _require_order(before: int | None, after: int | None) -> None:
    """Raise `InvalidInput` if the latest snapshot from after the migration is older than the latest one from before.

    The times are in microseconds since 1970. Nothing is checked if a time is None.
    """
    if before is not None and after is not None and after < before:
        raise InvalidInput(
            f"AFTER, taken at {_moment(after)}, is older than BEFORE, taken at {_moment(before)}: swap them, or take a "
            "snapshot of the new groups now"
        )


def _moment(micros: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat() + "Z"


def _merged(sets: str) -> Column:
    return F.array_sort(F.array_distinct(F.flatten(F.collect_set(sets)))).alias(sets)


def _missing_cluster(look: Row) -> str:
    before, after = set(look["before_clusters"]), set(look["after_clusters"])
    if before and after and not before & after:
        raise InvalidInput(
            f"BEFORE is of cluster {', '.join(sorted(before))}, AFTER of {', '.join(sorted(after))}: pass snapshots of "
            "one cluster"
        )
    known = before | after
    if look["clusterless"] and len(known) > 1:
        raise InvalidInput(
            f"a row has no cluster_id, and the other rows are of several clusters ({', '.join(sorted(known))}): add it"
        )
    return min(known, default="")


def _hints(look: Row) -> tuple[str, ...]:
    hints = []
    if look["before_only"]:
        hints.append(
            f"AFTER has no rows of {counted(look['before_only'], 'expected group')}, such as "
            f"{look['before_only_example']!r}: take a snapshot with all new groups"
        )
    if look["after_only"]:
        groups = counted(look["after_only"], "group")
        hint = f"not compared: {groups} of AFTER, such as {look['after_only_example']!r}, without rows in BEFORE"
        hints.append(hint if look["handed_over"] else f"{hint}; {_FOLLOW}")
    if look["without_topic_id"]:
        hints.append(
            f"{counted(look['without_topic_id'], 'row')} without a topic id: it is not known whether a topic was "
            "deleted and created again in between"
        )
    return tuple(hints)
