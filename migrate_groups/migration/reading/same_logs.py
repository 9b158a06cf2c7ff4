"""Check that the offsets of a snapshot belong to the topics of the cluster that a command reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.topics import TopicDescription, is_recreated
from migrate_groups.snapshots.row import Row
from migrate_groups.text import named


def refuse_other_logs(reader: GroupReader, rows: Sequence[Row], without_file: str) -> Mapping[str, TopicDescription]:
    """Raise `Refused` for rows from another cluster, and for topics that were created again since; return the topics.

    A recreated topic, which has another topic id (KIP-516), starts at offset 0. A topic that does not exist is left out
    of the result. without_file: what the user can do instead of using the file, for the message.
    """
    cluster_id = reader.cluster_id()
    clusters = {row.cluster_id for row in rows if row.cluster_id not in (None, cluster_id)}
    if clusters:
        raise Refused(
            f"the offsets are from {named('cluster', clusters)}, this is {cluster_id}: check --bootstrap-server, or "
            f"{without_file}"
        )
    described = reader.describe_topics({row.topic for row in rows})
    recreated = {
        row.topic
        for row in rows
        if row.topic in described and is_recreated(row.topic_id, described[row.topic].topic_id)
    }
    if recreated:
        raise Refused(
            f"{named('topic', recreated)} deleted and created again since the snapshot: take a new snapshot, or "
            f"{without_file}"
        )
    return described
