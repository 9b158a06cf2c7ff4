"""After the watch of a hand-over, look for partitions that were added to the topics meanwhile."""

from __future__ import annotations

from dataclasses import replace

from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.requests import committed_by_order
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.receipt import Receipt
from migrate_groups.text import named


def with_added_partitions(
    reader: GroupReader, execution: Execution, receipt: Receipt, elsewhere: GroupReader | None = None
) -> Execution:
    """Return the record of a hand-over with a message for added partitions without an offset of a target group.

    Such a partition was added to a topic after the hand-over was planned. ``auto.offset.reset`` decides where the group
    starts there. receipt: the record of the run. elsewhere: reads the source group's cluster in a move to another one.

    If the topics or the offsets can't be read, ``not_watched`` says so.
    """
    try:
        added = receipt.added(reader.describe_topics({change.topic for change in execution.changes}))
        committed = committed_by_order(reader, added)
        there = _added_elsewhere(elsewhere, execution) if elsewhere else []
    except (ClusterUnavailable, Refused) as error:
        return execution.with_not_watched(f"it is not known whether partitions were added since the write: {error}")
    missing = [f"{group} {topic}-{number}" for (group, topic, number) in added if not committed[group, topic, number]]
    found = [f"{named('partition', missing)} added since the write, without a committed offset"] if missing else []
    found += [f"{named('partition', there)} added on the old group's cluster since the write"] if there else []
    return replace(execution, added=tuple(found))


def _added_elsewhere(reader: GroupReader, execution: Execution) -> list[str]:
    """Return the partitions of a source group's topics, on its own cluster, that the write does not know."""
    translation = execution.translation
    if translation is None or execution.options.on_uncommitted == "leave":
        return []
    known = {each.source for each in translation.partitions}
    return [
        f"{name}-{number}"
        for name, topic in reader.describe_topics(translation.source_topics).items()
        for number in topic.partitions
        if TopicPartition(name, number) not in known
    ]
