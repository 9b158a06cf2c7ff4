"""Find out how long rebalances stopped the applications that share a consumer group.

An application is the members of a group that share topics (`migrate_groups.applications`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StringType, StructField, StructType

from migrate_groups.applications import EAGER_ASSIGNORS, HOLD_REBALANCE_TIMEOUT, KIP_848, topics_by_application
from migrate_groups.spark.local_rows import local_table
from migrate_groups.spark.offsets_topic.group_records import MEMBER
from migrate_groups.spark.offsets_topic.load import committed, spread
from migrate_groups.spark.offsets_topic.ownership import without_owner

_PLACE = ("group", "log_offset")
_OF_RECORD = ("group", "log_partition", "log_offset", "log_time")
_OF_TOPIC = StructType([StructField(name, StringType()) for name in ("group", "topic", "application")])


class Overload(NamedTuple):
    """Tables that show which applications share a group, and what sharing it costs.

    subscriptions: one row for each group, application and client id. Columns: topics, members (their number),
    first_seen, last_seen.

    generations: one row for each generation of a classic group. Columns: generation, assignor, since and until (when
    the generation began and ended), members (their number), joined and left (the client ids of members that joined or
    left at the end), caused_by (the applications of these members).

    stood_still: one row for each ended generation of a classic group and each application in it. In a KIP-848 group:
    one row for each period in which partitions of an application had no owner. Columns:

    - ended_at: when the generation ended, or the period without an owner began.
    - caused_by: the applications whose members joined or left. by_others: whether this application is not in
      ``caused_by``.
    - replaced: whether all members of the application restarted. In a KIP-848 group: whether all its partitions lost
      their owner.
    - seconds: how long the application stood still, measured between records; null: not known.
    - gone: the part of ``seconds`` in which the application certainly had no member; null in a KIP-848 group.

    spread: one row for each generation of a classic group and each application in it. Columns: generation, since,
    members (their number), idle (how many have no partition), consumed (the records that all members consumed),
    busiest (the records that the busiest member consumed).
    """

    subscriptions: DataFrame
    generations: DataFrame
    stood_still: DataFrame
    spread: DataFrame


def generations(records: DataFrame) -> DataFrame:
    """Return one row for each generation of a classic consumer group. Connect and other protocol types are left out.

    records: records of groups (`group_records.group_records`). Columns: group, log_partition, log_offset, log_time,
    generation, assignor, members (without the member of a hold; null: they can't be decoded).
    """
    # This tool's own member, which kept consumers out of the group.
    holds = F.lit(int(HOLD_REBALANCE_TIMEOUT * 1000))
    members = F.filter("members", lambda each: ~each["rebalance_timeout_ms"].eqNullSafe(holds))
    consumers = F.col("generation").isNotNull() & F.col("protocol_type").isin("", "consumer")
    return records.where(consumers).select(*_OF_RECORD, "generation", "assignor", members.alias("members"))


def consumers(records: DataFrame) -> DataFrame:
    """Return one row for each record that has the subscription of a KIP-848 member.

    records: records of groups (`group_records.group_records`). Columns: group, log_partition, log_offset, log_time,
    member_id, client_id, topics (null: they can't be decoded), regex (the regular expression, or null).
    """
    members = records.where((F.col("kind") == MEMBER) & ~F.col("tombstone"))
    return members.select(*_OF_RECORD, F.inline("members")).select(
        *_OF_RECORD, "member_id", "client_id", "topics", "regex"
    )


def applications(members: DataFrame) -> DataFrame:
    """Return the application of each topic of a group: columns group, topic and application (a name).

    members: the columns group, client_id and topics.
    """
    # The driver gets each subscription and each client id of a group once, and not a row for each record.
    clients = F.collect_set("client_id").alias("clients")
    found: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for row in members.where(F.size("topics") > 0).groupBy("group", "topics").agg(clients).collect():
        found[row.group] += [(client, frozenset(row.topics)) for client in row.clients or [""]]
    rows = (
        (group, topic, name)
        for group, subscribed in found.items()
        for name, topics in topics_by_application(subscribed).items()
        for topic in topics
    )
    return local_table(members.sparkSession, rows, _OF_TOPIC)


def overload(generations: DataFrame, consumers: DataFrame, owned: DataFrame, commits: DataFrame) -> Overload:
    """Return tables of the applications in each group, and of how long rebalances stopped each application.

    generations: those of classic groups. consumers, owned: the subscriptions and the assigned partitions of KIP-848
    members. commits: one row for each commit.
    """
    in_order = Window.partitionBy("group").orderBy("log_offset")
    ids = F.transform("members", lambda each: each["member_id"])
    # A checkpoint drops a table's plan. Otherwise Spark would analyse the plan again for each table made from it.
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
    everyone = everyone.withColumn("topics", F.array_compact("topics"))
    of_topic = applications(everyone)
    # A member without topics has no application, so that it is in no row of `of_member`.
    of_member = everyone.select("group", "member_id", F.get("topics", F.lit(0)).alias("topic")).distinct()
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
    found = _members(ended, of_member, committed(generations, commits)).localCheckpoint()
    return Overload(
        subscriptions=subscriptions,
        generations=ended.select(
            *("group", "generation", "assignor", F.col("log_time").alias("since"), "until"),
            F.size("members").alias("members"),
            _clients(F.array_except("_next", "_ids"), "_members_next").alias("joined"),
            _clients(F.array_except("_ids", "_next"), "members").alias("left"),
            "caused_by",
        ),
        stood_still=_stood_still(found).unionByName(_ownerless(owned, of_member)),
        spread=spread(found),
    )


def _clients(ids: Column, members: str) -> Column:
    """Return the client ids of the members whose member ids are in ``ids``. members: the column with the members."""
    there = F.filter(members, lambda each: F.array_contains(ids, each["member_id"]))
    return F.array_sort(F.transform(there, lambda each: each["client_id"]))


def _causes(spans: DataFrame, of_member: DataFrame) -> DataFrame:
    """Return, for each generation that ended because members joined or left, the applications of these members.

    Columns: group, log_offset (of the generation's record), caused_by. spans: one row for each generation. of_member:
    columns group, member_id, application.
    """
    changed = F.array_union(F.array_except("_ids", "_next"), F.array_except("_next", "_ids"))
    return (
        spans.where(F.col("_next").isNotNull())
        .select(*_PLACE, F.explode(changed).alias("member_id"))
        .join(of_member, ["group", "member_id"])
        .groupBy(*_PLACE)
        .agg(F.array_sort(F.collect_set("application")).alias("caused_by"))
    )


def _ownerless(owned: DataFrame, of_member: DataFrame) -> DataFrame:
    """Return one row for each period in which partitions of an application in a KIP-848 group had no owner.

    owned: the partitions of each member over time (`group_records.owners`). of_member: columns group, member_id,
    application.
    """
    # caused_by is always the application itself, because brokers revoke none of its partitions when a member of another
    # application joins or leaves.
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


def _members(spans: DataFrame, of_member: DataFrame, of_partitions: DataFrame) -> DataFrame:
    """Return one row for each member of each generation, with the member's last commit.

    spans: the generations. of_member: the application of each member. of_partitions: the result of `load.committed`.

    Columns added to those of the generation: member_id, application, partitions, at (the time of the last commit, or
    null), consumed (the records that the member consumed).
    """
    # A commit does not name a member, but the record of a generation says which member got which partitions.
    of_spans = spans.select(
        *_PLACE, "generation", "assignor", "log_time", "until", "_next", "caused_by", F.explode("members").alias("_m")
    ).select("*", F.col("_m.member_id").alias("member_id"), F.col("_m.partitions").alias("partitions"))
    commits = (
        of_spans.select(*_PLACE, "member_id", F.explode("partitions").alias("_p"))
        .select(*_PLACE, "member_id", F.col("_p.topic").alias("topic"), F.col("_p.partition").alias("partition"))
        .join(of_partitions, [*_PLACE, "topic", "partition"])
        .groupBy(*_PLACE, "member_id")
        .agg(F.max("at").alias("at"), F.try_sum("consumed").alias("consumed"))
    )
    rows = of_spans.drop("_m").join(of_member, ["group", "member_id"])
    return rows.join(commits, [*_PLACE, "member_id"], "left")


def _stood_still(members: DataFrame) -> DataFrame:
    """Return how long each application stood still when a generation of a classic group ended.

    Columns: those of ``stood_still`` in `Overload`. members: the result of `_members`.
    """
    # A member stands still from its last commit in a generation until the beginning of the next generation that has a
    # member of its application. An application stands still for as long as the member that stands still longest. In a
    # cooperative group only members that left count, because all others keep their partitions.
    members = members.withColumn("_left", ~F.array_contains("_next", F.col("member_id")))
    back = Window.partitionBy("group", "application").orderBy("log_offset")
    there = (
        members.groupBy("group", "application", *_PLACE[1:])
        .agg(F.min("log_time").alias("_since"), F.min("_left").alias("replaced"))
        .select("*", F.lead("_since").over(back).alias("back_at"))
        .drop("_since")
    )
    rows = members.where(F.col("until").isNotNull()).join(there, ["group", "application", "log_offset"])
    stood = F.col("assignor").isin(*EAGER_ASSIGNORS) | F.col("_left")
    begun = F.unix_micros(F.greatest("at", "log_time"))
    micros = F.unix_micros("back_at") - begun
    # If the application came back later than the next generation, that generation had no member of it.
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
