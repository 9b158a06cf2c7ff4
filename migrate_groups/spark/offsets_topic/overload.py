"""Find what a shared group costs its applications: DataFrame to DataFrame, in Spark SQL functions only.

A commit names no member. But the record of a generation says which member had which partitions, so the last commit of
these partitions before the next generation's record is that member's last commit.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.offsets_topic.ownership import without_owner

KIP_848 = "consumer"
"""The assignor of a group that uses KIP-848's protocol, in the tables."""

_EAGER = ("range", "roundrobin", "sticky")
_PLACE = ("group", "log_offset")


class Overload(NamedTuple):
    """The tables that say who shares a group, and what it costs whom.

    subscriptions: one row for each group, application and client id: topics, members, first_seen, last_seen.
    generations: one row for each generation: generation, assignor, members, joined and left (client ids), caused_by
    (applications), until (when the next generation began; null: it is the last).
    stood_still: one row for each generation that ended and each application in it: ended_at, caused_by, by_others,
    replaced (none of the application's members was left in the next generation, and some came back), seconds (at most;
    null: not known), gone (the part of these seconds in which surely no member was there). For a KIP-848 group: one row
    for each time in which partitions of an application had no owner.
    """

    subscriptions: DataFrame
    generations: DataFrame
    stood_still: DataFrame


def applications(members: DataFrame) -> DataFrame:
    """Return the application of each topic: columns group, topic and application (its name).

    members: columns group, client_id and topics (sorted). The applications of a group are the connected components of
    its topics, where two topics are connected if one member subscribes to both. An application is named by what its
    client ids begin with, or by its first topic if that does not tell it from the others.
    """
    nothing = F.array().cast("array<array<string>>")
    merged = members.where(F.size("topics") > 0).groupBy("group").agg(F.collect_set("topics").alias("_sets")).select(
        "group",
        F.explode(
            F.aggregate(
                "_sets",
                nothing,
                lambda found, each: F.concat(
                    F.filter(found, lambda other: ~F.arrays_overlap(other, each)),
                    F.array(
                        F.array_distinct(
                            F.concat(each, F.flatten(F.filter(found, lambda other: F.arrays_overlap(other, each))))
                        )
                    ),
                ),
            )
        ).alias("_topics"),
    )  # fmt: skip
    of_topic = merged.select("group", F.explode("_topics").alias("topic"), F.array_min("_topics").alias("_first"))
    clients = members.select("group", "client_id", F.col("topics")[0].alias("topic")).distinct()
    stems = (
        clients.join(of_topic, ["group", "topic"])
        .groupBy("group", "_first")
        .agg(F.min("client_id").alias("_low"), F.max("client_id").alias("_high"))
    )
    stems = stems.withColumn("_stem", _stem())
    alike = stems.groupBy("group", "_stem").agg(F.count("*").alias("_alike"))
    named = stems.join(alike, ["group", "_stem"]).select(
        "group",
        "_first",
        F.when((F.col("_stem") != "") & (F.col("_alike") == 1), F.col("_stem"))
        .otherwise(F.col("_first"))
        .alias("application"),
    )
    return of_topic.join(named, ["group", "_first"]).select("group", "topic", "application")


def overload(generations: DataFrame, consumers: DataFrame, owned: DataFrame, commits: DataFrame) -> Overload:
    """Return the tables, from `generations.generations`, `generations.consumers`, `ownership.owners`, and the commits.

    commits: columns group, topic, partition, log_offset, log_time. The caller may restrict all four to a time.
    """
    in_order = Window.partitionBy("group").orderBy("log_offset")
    ids = F.transform("members", lambda each: each["member_id"])
    # Each table that several others are made of is kept without its plan, which Spark would analyse again for each.
    spans = (
        generations.withColumn("_ids", ids)
        .withColumns(
            {
                "until": F.lead("log_time").over(in_order),
                "_next": F.lead("_ids").over(in_order),
                "_members_next": F.lead("members").over(in_order),
            }
        )
        .localCheckpoint()
    )
    each = spans.select("*", F.explode("members").alias("_member")).select("*", "_member.*")
    classic = each.select("group", "member_id", "client_id", "topics", "log_time")
    everyone = classic.unionByName(consumers.select(*classic.columns))
    of_topic = applications(everyone)
    of_member = everyone.select("group", "member_id", F.col("topics")[0].alias("topic")).distinct()
    of_member = of_member.join(of_topic, ["group", "topic"]).groupBy("group", "member_id").agg(
        F.max("application").alias("application")
    ).localCheckpoint()  # fmt: skip
    subscriptions = (
        everyone.join(of_member, ["group", "member_id"])
        .groupBy("group", "application", "client_id")
        .agg(
            F.array_sort(F.array_distinct(F.flatten(F.collect_set("topics")))).alias("topics"),
            F.count_distinct("member_id").alias("members"),
            F.min("log_time").alias("first_seen"),
            F.max("log_time").alias("last_seen"),
        )
    )
    caused = _causes(spans, of_member)
    none = F.array().cast("array<string>")
    ended = spans.join(caused, [*_PLACE], "left").withColumn("caused_by", F.coalesce("caused_by", none))
    ended = ended.localCheckpoint()
    classic_rows = _stood_still(ended, of_member, _last_commits(generations, commits).localCheckpoint())
    return Overload(
        subscriptions=subscriptions,
        generations=ended.select(
            *("group", "generation", "assignor", F.col("log_time").alias("since"), "until"),
            F.size("members").alias("members"),
            _clients(F.array_except("_next", "_ids"), "_members_next").alias("joined"),
            _clients(F.array_except("_ids", "_next"), "members").alias("left"),
            "caused_by",
        ),
        stood_still=classic_rows.unionByName(_ownerless(owned, of_member)),
    )


def _stem() -> Column:
    """Return what ``_low`` and ``_high`` both begin with, without the number of an instance."""
    low, high = F.col("_low"), F.col("_high")
    size = F.aggregate(
        F.sequence(F.lit(1), F.greatest(F.least(F.length(low), F.length(high)), F.lit(1))),
        F.lit(0),
        lambda found, at: F.when(F.substring(low, 1, at) == F.substring(high, 1, at), at).otherwise(found),
    )
    return F.regexp_replace(F.substring(low, F.lit(1), size), "[-_.:/ 0-9]+$", "")


def _clients(ids: Column, members: str) -> Column:
    """Return the client ids of the members with these ids, each as often as it has members."""
    there = F.filter(members, lambda each: F.array_contains(ids, each["member_id"]))
    return F.array_sort(F.transform(there, lambda each: each["client_id"]))


def _causes(spans: DataFrame, of_member: DataFrame) -> DataFrame:
    """Return the applications whose members joined or left at the end of each generation, by group and log_offset."""
    changed = F.array_union(F.array_except("_ids", "_next"), F.array_except("_next", "_ids"))
    return (
        spans.where(F.col("_next").isNotNull())
        .select(*_PLACE, F.explode(changed).alias("member_id"))
        .join(of_member, ["group", "member_id"])
        .groupBy(*_PLACE)
        .agg(F.array_sort(F.collect_set("application")).alias("caused_by"))
    )


def _last_commits(generations: DataFrame, commits: DataFrame) -> DataFrame:
    """Return the last commit of each partition within each generation: group, log_offset, topic, partition, at."""
    marks = generations.select(
        "group", "log_offset", F.lit(None).cast("timestamp").alias("log_time"), F.col("log_offset").alias("_begun")
    )
    both = commits.select("group", "log_offset", "log_time", "topic", "partition").unionByName(
        marks, allowMissingColumns=True
    )
    begun = F.last("_begun", ignorenulls=True).over(Window.partitionBy("group").orderBy("log_offset"))
    return (
        both.select("group", "topic", "partition", "log_time", begun.alias("log_offset"))
        .where(F.col("topic").isNotNull() & F.col("log_offset").isNotNull())
        .groupBy("group", "log_offset", "topic", "partition")
        .agg(F.max("log_time").alias("at"))
    )


def _ownerless(owned: DataFrame, of_member: DataFrame) -> DataFrame:
    """Return the times without an owner of KIP-848 groups in the columns of ``stood_still``.

    Only members that leave or join the application itself leave its partitions without an owner, because the brokers
    take none from members of another application.
    """
    return without_owner(owned, of_member).select(
        "group",
        F.lit(None).cast("int").alias("generation"),
        F.lit(KIP_848).alias("assignor"),
        F.col("begun").alias("ended_at"),
        "application",
        F.array("application").alias("caused_by"),
        F.lit(False).alias("by_others"),
        F.col("whole").alias("replaced"),
        "seconds",
        F.lit(None).cast("double").alias("gone"),
    )


def _stood_still(spans: DataFrame, of_member: DataFrame, last: DataFrame) -> DataFrame:
    """Return for how long each application stood still at the end of each generation; see `Overload`.

    An application stands still from its member's last commit to the record of the next generation that it is in. For
    a cooperative group only the partitions of members that left do, because all others keep theirs.
    """
    of_spans = spans.select(
        *_PLACE, "generation", "assignor", "log_time", "until", "_next", "caused_by", F.explode("members").alias("_m")
    ).select("*", F.col("_m.member_id").alias("member_id"), F.col("_m.partitions").alias("partitions"))
    of_spans = of_spans.join(of_member, ["group", "member_id"]).withColumn(
        "_left", ~F.array_contains("_next", F.col("member_id"))
    )
    back = Window.partitionBy("group", "application").orderBy("log_offset")
    there = (
        of_spans.groupBy("group", "application", *_PLACE[1:])
        .agg(F.min("log_time").alias("_since"), F.min("_left").alias("replaced"))
        .select("*", F.lead("_since").over(back).alias("back_at"))
        .drop("_since")
    )
    commits = (
        of_spans.select(*_PLACE, "member_id", F.explode("partitions").alias("_p"))
        .select(*_PLACE, "member_id", F.col("_p.topic").alias("topic"), F.col("_p.partition").alias("partition"))
        .join(last, [*_PLACE, "topic", "partition"])
        .groupBy(*_PLACE, "member_id")
        .agg(F.max("at").alias("at"))
    )
    rows = of_spans.where(F.col("until").isNotNull()).join(there, ["group", "application", "log_offset"])
    rows = rows.join(commits, [*_PLACE, "member_id"], "left")
    stood = F.col("assignor").isin(*_EAGER) | F.col("_left")
    begun = F.unix_micros(F.greatest("at", "log_time"))
    micros = F.unix_micros("back_at") - begun
    # A generation without the application: its members came back only after that generation had begun.
    gone = F.when(F.col("back_at") > F.col("until"), (F.unix_micros("until") - begun) / 1e6)
    seconds = F.when(stood & F.col("at").isNotNull() & F.col("back_at").isNotNull(), micros / 1e6)
    by_application = rows.groupBy(
        *_PLACE, "generation", "assignor", "until", "caused_by", "application", "replaced", "back_at"
    ).agg(F.max(seconds).alias("seconds"), F.coalesce(F.min(gone), F.lit(0.0)).alias("gone"))
    return by_application.select(
        "group", "generation", "assignor", F.col("until").alias("ended_at"), "application",
        "caused_by", (~F.array_contains("caused_by", F.col("application"))).alias("by_others"),
        F.coalesce(F.col("replaced") & F.col("back_at").isNotNull(), F.lit(False)).alias("replaced"), "seconds", "gone",
    )  # fmt: skip
