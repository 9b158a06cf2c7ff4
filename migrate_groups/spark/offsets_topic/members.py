"""Find the client ids and hosts of groups' members in the log of ``__consumer_offsets``.

Messages: ``GroupMetadataValue.json`` (versions 0 to 3) and, for KIP-848, ``ConsumerGroupMemberMetadataValue.json``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from migrate_groups.spark.offsets_topic.generations import member_fields, member_starts
from migrate_groups.spark.offsets_topic.record_bytes import (
    after_compact_string,
    after_string,
    compact_string,
    has_all_before,
    number,
    string,
)

_CLASSIC, _KIP_848 = 2, 5
_VERSIONS = (0, 1, 2, 3)
# The smallest size of a member in bytes. It limits the number of members that a damaged record can claim.
_LEAST_BYTES = 18


MEMBERS = (_CLASSIC, _KIP_848)
"""The types of the records that list members."""


def members(log: DataFrame) -> DataFrame:
    """Return one row for each record of ``__consumer_offsets`` that lists members of a group.

    log: decoded records (`offsets_log.decode`). Columns:

    - group, log_partition, log_offset, log_time.
    - until: the log_time of the record that replaced this record; null: no record did.
    - clients: a list of ``client/host``; empty: no member is left; null: the record can't be decoded.
    """
    rows = _with_places(log.where(F.col("type").isin(*MEMBERS) & F.col("problem").isNull()))
    record = Window.partitionBy("log_partition", "type", "group", "member").orderBy("log_offset")
    nobody = F.array().cast("array<string>")
    clients = F.when(F.col("tombstone"), nobody).when(F.col("type") == _CLASSIC, _of_classic()).otherwise(_of_kip_848())
    place = ("group", "log_partition", "log_offset", "log_time")
    return rows.select(*place, F.lead("log_time").over(record).alias("until"), clients.alias("clients"))


def _with_places(rows: DataFrame) -> DataFrame:
    """Return the rows with more columns: the version of the record's value, and the positions of member fields."""
    # Each position is computed from the previous one, and is stored in a column. In a single expression, each further
    # position would double the size of the expression.
    version, classic, kip_848 = F.col("_version"), F.col("_classic"), F.col("_kip_848")
    rows = rows.withColumns(
        {
            "_version": F.when(F.octet_length("value") >= 2, number(F.lit(1), 2)),
            "_classic": after_string(F.lit(3)) + 4,  # skips the version, the protocol type and the generation
            "_kip_848": after_compact_string(F.lit(3)),  # skips the version and the group instance id
        }
    )
    # The next columns skip the protocol and the rack.
    rows = rows.withColumns({"_classic": after_string(classic), "_kip_848": after_compact_string(kip_848)})
    rows = rows.withColumns(
        {
            "_classic": F.when(version.isin(*_VERSIONS), after_string(classic) + F.when(version >= 2, 8).otherwise(0)),
            "_host": after_compact_string(kip_848),
        }
    )
    return rows.withColumn("_members", number(classic, 4))


def _of_classic() -> Column:
    version, start, members = F.col("_version"), F.col("_classic"), F.col("_members")
    count = F.least(members, F.octet_length("value") / _LEAST_BYTES).cast("int")

    def named(start: Column) -> Column:
        return member_fields(start, version, lambda client, host, *_: F.concat(string(client)[1], string(host)[1]))

    nobody = F.array().cast("array<string>")
    starts = member_starts(start + 4, count, version)["starts"]
    return F.when(members == 0, nobody).when(members > 0, F.array_compact(F.transform(starts, named)))


def _of_kip_848() -> Column:
    _, client = compact_string(F.col("_kip_848"))
    after, host = compact_string(F.col("_host"))
    named = F.when(has_all_before(after), F.concat(client, host))
    return F.when(F.col("_version") == 0, F.when(named.isNotNull(), F.array(named)))
