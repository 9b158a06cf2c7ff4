"""Offsets that were translated from one cluster to another, as JSON: a line for each partition in a plan or receipt."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import msgspec

from migrate_groups.files.runs.change_json import Int32, Int64, Name, Topic
from migrate_groups.files.strict_json import Strict
from migrate_groups.mirrors.position import Counts, Method, Position, Status
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.translation import Behind, TranslatedOffset, Translation

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Fingerprint = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}$(?!\n)")]


class SourceJson(Strict, frozen=True):
    """The source group, if it is on another cluster. Otherwise the file has null in place of this object.

    cluster_id: the cluster of the source group. group: its name. compared_at: when the offsets were translated, if that
    cluster could not be asked since; otherwise null.
    """

    cluster_id: str
    group: Name
    compared_at: Moment | None


class TranslatedJson(Strict, frozen=True):
    """An offset on the source cluster, and the offset at which the group must continue in the mirror's copy.

    topic, partition: the partition on the source cluster. source_offset: the offset that was translated.
    committed_offset: the source group's committed offset; null if it has none. target_topic: the topic of the copy on
    the target cluster; null if there is no copy. translated_offset: the offset at which the group must continue in the
    copy; the lowest if several are possible; null if none is known. status: how exact it is. reread_at_most: the
    largest number of records that the group reads again if it starts there. method: how ``translated_offset`` was
    searched for. compared: how many records of the copy were matched with a record of the source. fingerprint_before:
    the hash of the source's last record before ``source_offset``; null if no such record was read. fingerprint_after:
    the hash of the source's first record at or after ``source_offset``; null if no such record was read. mirrored_to:
    the last stable offset of the copy; null if it was not read. behind_records: the number of source records that the
    copy lacked; from 1,600 on a number of offsets, and an upper bound; null if not known, or in a plan that was
    written. behind_milliseconds: the time between the first of these records and the newest one; null if not known.
    copies: how many records the mirror has delivered again. aborted: how many records of aborted transactions the
    mirror has delivered as committed. reason: why the status is not ``exact``; otherwise empty.
    """

    topic: Topic
    partition: Int32
    source_offset: Int64
    committed_offset: Int64 | None
    target_topic: Topic | None
    status: Status
    translated_offset: Int64 | None
    reread_at_most: Int64
    method: Method
    compared: Int64
    fingerprint_before: Fingerprint | None
    fingerprint_after: Fingerprint | None
    mirrored_to: Int64 | None
    behind_records: Int64 | None
    behind_milliseconds: Int64 | None
    copies: Int64
    aborted: Int64
    reason: str


def source(translation: Translation | None) -> SourceJson | None:
    """Return, as JSON, the group whose offsets were translated to another cluster; None without ``translation``."""
    if translation is None:
        return None
    return SourceJson(translation.cluster_id, translation.group, translation.compared_at)


def lines(translation: Translation | None) -> tuple[TranslatedJson, ...]:
    """Return, as JSON, each partition's offset and the corresponding offset in the mirror's copy.

    The result is empty if ``translation`` is None.
    """
    return tuple(map(_line, translation.partitions)) if translation else ()


def value(of: SourceJson | None, found: Iterable[TranslatedJson]) -> Translation | None:
    """Return, from JSON, a source group's offsets and the corresponding offsets in the mirror's copies of topics.

    of: the source group; if it is None, the result is None.
    """
    if of is None:
        return None
    return Translation(
        cluster_id=of.cluster_id,
        group=of.group,
        partitions=tuple(map(_value, found)),
        compared_at=of.compared_at,
    )


def _line(each: TranslatedOffset) -> TranslatedJson:
    position = each.position
    return TranslatedJson(
        topic=each.source.topic,
        partition=each.source.partition,
        source_offset=each.offset,
        committed_offset=each.committed,
        target_topic=each.copy.topic if each.copy else None,
        status=position.status,
        translated_offset=position.offset,
        reread_at_most=position.reread,
        method=position.method,
        compared=position.compared,
        fingerprint_before=position.before.hex() if position.before else None,
        fingerprint_after=position.after.hex() if position.after else None,
        mirrored_to=position.as_of,
        behind_records=each.behind.records if each.behind else None,
        behind_milliseconds=each.behind.milliseconds if each.behind else None,
        copies=position.counts.copies,
        aborted=position.counts.aborted,
        reason=position.reason,
    )


def _value(found: TranslatedJson) -> TranslatedOffset:
    return TranslatedOffset(
        source=TopicPartition(found.topic, found.partition),
        offset=found.source_offset,
        committed=found.committed_offset,
        copy=TopicPartition(found.target_topic, found.partition) if found.target_topic else None,
        position=Position(
            status=found.status,
            offset=found.translated_offset,
            reread=found.reread_at_most,
            counts=Counts(copies=found.copies, aborted=found.aborted),
            reason=found.reason,
            method=found.method,
            compared=found.compared,
            as_of=found.mirrored_to,
            before=bytes.fromhex(found.fingerprint_before) if found.fingerprint_before else None,
            after=bytes.fromhex(found.fingerprint_after) if found.fingerprint_after else None,
        ),
        behind=None if found.behind_records is None else Behind(found.behind_records, found.behind_milliseconds),
    )
