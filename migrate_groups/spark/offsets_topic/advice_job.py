"""The Spark job behind ``advise --log``, which measures what sharing a consumer group costs each application.

An application is the members of a group that share topics (`migrate_groups.applications`).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import ArrayType, StringType

from migrate_groups.applications import KIP_848
from migrate_groups.errors import Undetermined
from migrate_groups.spark.files import write_csv, written_path
from migrate_groups.spark.local_rows import MAX_ROWS, plain_rows
from migrate_groups.spark.offsets_topic.advice_result import Costs, Generation, SharedCost, Subscription
from migrate_groups.spark.offsets_topic.evidence import evidence, missing_offsets
from migrate_groups.spark.offsets_topic.group_records import group_records, owners
from migrate_groups.spark.offsets_topic.load import keeps_up, of_members
from migrate_groups.spark.offsets_topic.offsets_log import (
    OFFSET_COMMIT,
    CopiedFiles,
    copied_log,
    decode,
    in_place,
    of_kinds,
)
from migrate_groups.spark.offsets_topic.overload import Overload, consumers, generations, overload


class Measured(NamedTuple):
    """What it costs each application of a group that other applications are in the same group.

    table: one row for each application (columns: `SharedCost`). applications: at most `MAX_ROWS` rows of ``table``, the
    most important first. found: the tables from which the costs are computed.
    """

    found: Overload
    table: DataFrame
    applications: tuple[SharedCost, ...]


def measure_costs(
    spark: SparkSession,
    copied: CopiedFiles,
    *,
    groups: Collection[str] | None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Measured:
    """Measure what it costs each application of a group that other applications are in the same group.

    copied: a copy of the log of ``__consumer_offsets``. groups: the group names; None: all. since, until: only records
    from ``since`` (inclusive) to ``until`` (exclusive); None: no bound.

    Raises `Undetermined` if the log has no record of a member of these groups that subscribes to a topic by name.
    """
    raw = copied_log(spark, copied.folder)
    log = decode(raw)
    wanted = F.lit(True) if groups is None else F.col("group").isin(*groups)
    if since is not None:
        wanted = wanted & (F.col("log_time") >= F.lit(since))
    if until is not None:
        wanted = wanted & (F.col("log_time") < F.lit(until))
    records = group_records(log).where(wanted).localCheckpoint()
    classic, new = generations(records), consumers(records)
    # Commits are needed for classic groups only. For KIP-848 groups, `owners` shows when an application stood still.
    of_groups = classic.select("group").distinct()
    commits = of_kinds(log, OFFSET_COMMIT).where(in_place(wanted & F.col("offset").isNotNull()))
    commits = commits.join(F.broadcast(of_groups), "group", "left_semi")
    owned = owners(log).where(wanted).join(F.broadcast(new.select("group").distinct()), "group", "left_semi")
    subscribed = new.where(F.col("topics").isNotNull())
    found = overload(classic.where(F.col("members").isNotNull()), subscribed, owned, commits)
    found = Overload(*(each.localCheckpoint() for each in found))
    missing = missing_offsets(spark, evidence(raw, {}, copied.ranges))
    table = advice(found, classic, new, missing).localCheckpoint()
    rows = _rows(table)
    if not rows:
        raise Undetermined(
            "the log has no record of the members of these groups with a topic by name: they have had no rebalance "
            "since, it is compacted away, or they subscribe by regular expression; name a longer --since, run it again "
            "later with the same --log, or run advise without --log"
        )
    return Measured(found, table, rows)


def write_costs(measured: Measured, out: Path, timeline: DataFrame | None = None) -> Costs:
    """Write the costs of shared groups as Parquet and CSV tables, and return a summary.

    out: an existing folder. timeline: lag over time of some of the groups (`history.history`). Without it, the columns
    keeps_up and best_third of the table ``advice`` are null.
    """
    found, table, shown = measured
    if timeline is not None:
        place = ["group", "application"]
        known = keeps_up(table, timeline)
        table = table.drop("keeps_up", "best_third").join(known, place, "left").localCheckpoint()
        shown = _rows(table)
    for name, each in {**found._asdict(), "advice": table}.items():
        _write(each, out, name)
    shared = sorted({row.group for row in shown if row.applications > 1})
    spans = found.generations.where(F.col("group").isin(*shared)).orderBy(F.col("since").desc(), "group")
    who = found.subscriptions.where(F.col("group").isin(*shared)).orderBy("group", "application", "client_id")
    return Costs(
        applications=shown,
        found=len(shown) if len(shown) < MAX_ROWS else table.count(),
        generations=plain_rows(spans, Generation) if shared else (),
        subscriptions=plain_rows(who, Subscription) if shared else (),
    )


def _rows(table: DataFrame) -> tuple[SharedCost, ...]:
    worst = F.col("applications").desc(), F.col("stood_still").desc_nulls_last()
    rows: tuple[SharedCost, ...] = plain_rows(table.orderBy(*worst, "group", "application"), SharedCost)
    return rows


def advice(found: Overload, classic: DataFrame, new: DataFrame, missing: DataFrame) -> DataFrame:
    """Return the costs of a shared group for each application, one row each.

    Columns: those of `SharedCost`; keeps_up and best_third are null.

    - found: the result of `overload`.
    - classic: the generations of classic groups. new: the subscriptions of KIP-848 members.
    - missing: how many offsets of each partition of ``__consumer_offsets`` have no record.
    """
    # The columns keeps_up and best_third stay null here, because load.keeps_up computes them from lag over time.
    place = ["group", "application"]
    own = found.subscriptions.groupBy(*place).agg(
        F.array_sort(F.array_distinct(F.flatten(F.collect_set("topics")))).alias("topics"),
        F.slice(F.array_sort(F.collect_set("client_id")), 1, 20).alias("clients"),
    )
    numbers = own.groupBy("group").agg(F.count("*").cast("int").alias("applications"))
    said = classic.where(F.col("assignor") != "").select("group", "log_offset", "log_partition", "log_time", "assignor")
    said = said.withColumn("regex", F.lit(False)).unionByName(
        new.select(
            *("group", "log_offset", "log_partition", "log_time"),
            F.lit(KIP_848).alias("assignor"),
            F.col("regex").isNotNull().alias("regex"),
        )
    )
    of_group = said.groupBy("group").agg(
        F.max_by("assignor", "log_offset").alias("assignor"),
        F.max("regex").alias("regex"),
        F.min("log_time").alias("since"),
        F.first("log_partition").alias("log_partition"),
    )
    ended = found.generations.where(F.col("until").isNotNull())
    rebalances = ended.groupBy("group").agg(F.count("*").cast("int").alias("rebalances"))
    caused = ended.select("group", F.explode("caused_by").alias("application")).groupBy(*place)
    stood = own.select(*place).join(found.stood_still, place, "left").groupBy(*place).agg(
        _seconds(F.col("by_others")).alias("stood_still"),
        _seconds(~F.col("by_others")).alias("outage"),
        F.count_if("replaced").cast("int").alias("replaced"),
        F.round(F.sum(F.when(F.col("replaced"), F.col("seconds"))), 3).alias("restart_outage"),
        F.round(F.sum(F.when(F.col("replaced"), F.col("gone"))), 3).alias("restart_gone"),
        F.max(F.when(~F.col("replaced") & ~F.col("by_others"), F.col("seconds"))).alias("single_most"),
    )  # fmt: skip
    counts = {name: F.coalesce(name, F.lit(0)) for name in ("rebalances", "caused", "replaced")}
    # A time of 0 s counts as not known if the log lacks records or has only one generation.
    whole, has_ended = F.col("missing") == 0, F.col("rebalances") > 0
    zeros = {"stood_still": whole & has_ended, "outage": whole & (has_ended | (F.col("assignor") == KIP_848))}
    return (
        own.join(numbers, "group")
        .join(of_group, "group")
        .join(rebalances, "group", "left")
        .join(caused.agg(F.count("*").cast("int").alias("caused")), place, "left")
        .join(stood, place)
        .join(of_members(found.spread), place, "left")
        .join(missing, "log_partition")
        .drop("log_partition")
        .withColumns(counts)
        .withColumns({name: F.when(told | (F.col(name) > 0), F.col(name)) for name, told in zeros.items()})
        .withColumns({name: F.when(F.col("assignor") != KIP_848, F.col(name)) for name in ("idle", "spread")})
        .withColumns(dict.fromkeys(("keeps_up", "best_third"), F.lit(None).cast("double")))
    )


def _seconds(rows: Column) -> Column:
    """Return the sum of the column ``seconds`` over the rows for which the condition ``rows`` is true.

    The sum is 0 if there is no such row, and null if ``seconds`` is null in all of them.
    """
    return F.when(F.count_if(rows) == 0, 0.0).otherwise(F.round(F.sum(F.when(rows, F.col("seconds"))), 3))


def _write(table: DataFrame, out: Path, name: str) -> None:
    """Write a table as Parquet and as CSV, each as a folder with one file. In the CSV, lists are texts with commas."""
    lists = [each.name for each in table.schema if isinstance(each.dataType, ArrayType)]
    one = table.coalesce(1).sortWithinPartitions("group", *(["application"] if "application" in table.columns else []))
    one.write.parquet(written_path(str(out / f"{name}.parquet")))
    texts = {each: F.array_join(F.col(each).cast(ArrayType(StringType())), ", ") for each in lists}
    write_csv(one.withColumns(texts), written_path(str(out / f"{name}.csv")))
