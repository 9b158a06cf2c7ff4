"""Read from a cluster what `doctor` shows. Writes nothing."""

from __future__ import annotations

from migrate_groups.errors import ClusterUnavailable
from migrate_groups.migration.ports import GroupReader, LogClients, OffsetsReader
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.checks.permission import Permissions
from migrate_groups.planning.examination import NEEDED, NO, NOT_KNOWN, YES, Examination


def examine(clients: LogClients, second: OffsetsReader) -> Examination:
    """Return what the brokers show of a cluster, and of the permissions of the client's principal.

    Raises `ClusterUnavailable` or `NotAuthorized` if kafka-python can't reach the cluster or log in. What else can't be
    read is in the result.
    """
    reader = clients.reader
    cluster_id = reader.cluster_id()
    return Examination(
        principal=reader.principal,
        cluster_id=cluster_id,
        brokers=reader.brokers(),
        second_client=_second_client(reader, second, cluster_id),
        offers=reader.offers(),
        permissions=_permissions(reader),
        offsets_topic=_offsets_topic(clients),
        retention=reader.offset_limits().retention,
    )


def _permissions(reader: GroupReader) -> Permissions:
    """Return the permissions on each of `NEEDED`; None where the brokers can't be asked for them."""
    try:
        return reader.permissions([*NEEDED])
    except ClusterUnavailable:
        return dict.fromkeys(NEEDED)


def _second_client(reader: GroupReader, second: OffsetsReader, cluster_id: str) -> str:
    """Return why the second client can't read back what is written; empty if it can log in to the same cluster."""
    if reader.second_client_lacks:
        return reader.second_client_lacks
    try:
        found = second.cluster_id()
    except ClusterUnavailable as error:
        return str(error)
    return "" if found == cluster_id else f"it reached another cluster, {found}: check bootstrap.servers"


def _offsets_topic(clients: LogClients) -> tuple[str, str]:
    """Return whether the log of ``__consumer_offsets`` can be read, and why not."""
    try:
        topic = clients.reader.describe_topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if topic is None:
            return NOT_KNOWN, f"the brokers show no topic {OFFSETS_TOPIC}: it is hidden, or no group has committed yet"
        ranges = clients.reader.log_ranges([TopicPartition(OFFSETS_TOPIC, number) for number in topic.partitions])
        logs = {partition.partition: log for partition, log in ranges.items() if log.start < log.end}
        if not logs:
            return NOT_KNOWN, f"{OFFSETS_TOPIC} has no record yet"
        number, log = next(iter(logs.items()))  # one partition, because a read that gets no record takes the time-out
        for piece in clients.topic.read({number: log.start}, {number: log.end}):
            if piece.records or piece.positions[number] > log.start:
                return YES, ""
    except ClusterUnavailable as error:  # also `NotAuthorized`
        return NO, str(error)
    return NOT_KNOWN, f"no record of {OFFSETS_TOPIC} came within the time-out"
