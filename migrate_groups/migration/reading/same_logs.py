"""Check that a snapshot is from the cluster that is read, and that its topics were not created again since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.model.topics import TopicDescription, recreated_topics, topic_ids
from migrate_groups.snapshots.row import Row
from migrate_groups.text import named


def refuse_other_logs(reader: GroupReader, rows: Sequence[Row], without_file: str) -> Mapping[str, TopicDescription]:
    """Return the topics of the snapshot rows. Raises `Refused` if a row is from another cluster or a recreated topic.

    A recreated topic was deleted and created again since the snapshot. A topic that does not exist is left out.
    without_file: advice for the message: how to run the command without a snapshot.
    """
    cluster_id = reader.cluster_id()
    clusters = {row.cluster_id for row in rows if row.cluster_id not in (None, cluster_id)}
    if clusters:
        raise Refused(
            f"the offsets are from {named('cluster', clusters)}, this is {cluster_id}: check --bootstrap-server, or "
            f"{without_file}"
        )
    described = reader.describe_topics({row.topic for row in rows})
    # A recreated topic has another topic id (KIP-516), and starts at offset 0.
    if recreated := recreated_topics(((row.topic, row.topic_id) for row in rows), topic_ids(described)):
        raise Refused(
            f"{named('topic', recreated)} deleted and created again since the snapshot: take a new snapshot, or "
            f"{without_file}"
        )
    return described
