"""Ask the cluster for all that a write involves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from migrate_groups.cluster.ports import GroupReader, Operation, Resource, TopicPartition
from migrate_groups.errors import NotAuthorized
from migrate_groups.offsets.snapshot import Row
from migrate_groups.plan.checks.permission import hidden, missing, needed
from migrate_groups.plan.survey import Surroundings, Survey
from migrate_groups.text import some


def permissions_unless_hidden(
    reader: GroupReader, wanted: Mapping[Resource, frozenset[Operation]]
) -> Mapping[Resource, frozenset[Operation] | None]:
    """Return what this principal may do with these groups and topics.

    Raises `NotAuthorized` where one of them is hidden from it, naming all that it lacks of what is ``wanted``: what is
    hidden would be left out of every answer that does not ask for it by name.
    """
    permissions = reader.permissions(wanted)
    if hidden(permissions):
        lacking = some(missing(wanted, permissions), most=20)
        raise NotAuthorized(f"not authorized: {reader.principal} lacks {lacking}; grant it these permissions")
    return permissions


def look_around(reader: GroupReader, rows: Sequence[Row]) -> Surroundings:
    """Return what surrounds the groups and topics of these rows, each of which names its group.

    Raises `NotAuthorized` where one of them is hidden from this principal, naming all that it lacks; and as
    `GroupReader`.
    """
    return Surroundings(
        principal=reader.principal,
        permissions=permissions_unless_hidden(reader, needed(rows)),
        topic_names=reader.topic_names(),
        offsets_retention=reader.offsets_retention(),
    )


def survey(reader: GroupReader, rows: Sequence[Row], surroundings: Surroundings | None = None) -> Survey:
    """Return the facts about the groups, topics and partitions of these rows, each of which names its group.

    ``surroundings`` are those that are known already; where they lack a group or topic they are looked at anew. Every
    partition of every topic is asked for explicitly, so that a topic hidden by an ACL is an error and not an omission.
    Raises as `look_around`.
    """
    if surroundings is None or not needed(rows).keys() <= surroundings.permissions.keys():
        surroundings = look_around(reader, rows)
    topics = reader.describe_topics({row.topic for row in rows})
    wanted: dict[str, set[TopicPartition]] = defaultdict(set)
    for row in rows:
        partitions = topics[row.topic].partitions if row.topic in topics else ()
        asked = {row.topic_partition, *(TopicPartition(row.topic, partition) for partition in partitions)}
        for group in (row.group, row.source_group):
            if group is not None:
                wanted[group] |= asked
    existing = {TopicPartition(name, partition) for name, topic in topics.items() for partition in topic.partitions}
    return Survey(
        cluster_id=reader.cluster_id(),
        groups={group: reader.describe_group(group) for group in wanted},
        committed={group: reader.committed(group, partitions) for group, partitions in wanted.items()},
        topics=topics,
        bounds=reader.log_bounds(existing),
        surroundings=surroundings,
    )
