"""The change of one partition's committed offset as JSON: one line in the file of a plan or a receipt."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from migrate_groups.files.strict_json import Strict
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.change import Action, Change, Origin
from migrate_groups.schema import MOST_TEXT

Name = Annotated[str, msgspec.Meta(min_length=1)]
# The lookahead refuses a line feed at the end, because Python's "$" also matches before a line feed. "\\Z" would not,
# but JSON Schema has ECMAScript's regular expressions, which have no "\\Z".
Topic = Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9._-]{1,249}$(?!\n)")]
Metadata = Annotated[str, msgspec.Meta(max_length=MOST_TEXT)]
Int32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class CommittedJson(Strict, frozen=True):
    """A committed offset with its leader epoch and metadata.

    leader_epoch: null if the offset was committed without a leader epoch.
    """

    offset: Int64
    leader_epoch: Int32 | None
    metadata: Metadata


class ChangeJson(Strict, frozen=True):
    """The change of a group's committed offset for one partition, from ``before`` to ``after``.

    group, topic, partition: whose committed offset changes. before, after: null if the group has no committed offset.
    action: what the change does; if it is ``not mirrored yet``, ``after`` is null because the mirror has not delivered
    the records up to the offset. source_group: the group that hands over the offset; null if no group does.
    source_committed: the source group's committed offset when it was read; null if it had none. ``after`` differs from
    it only if an option replaced the offset. is_share: whether ``group`` is a share group; ``before`` and ``after`` are
    then its start offsets.
    """

    action: Action
    source_group: Name | None
    group: Name
    topic: Topic
    partition: Int32
    before: CommittedJson | None
    after: CommittedJson | None
    source_committed: CommittedJson | None
    is_share: bool


_Committed: TypeAlias = CommittedJson | None
_Cells: TypeAlias = tuple[Action, str | None, str, str, int, _Committed, _Committed, _Committed, bool]


def cells(change: Change) -> _Cells:
    """Return the change of a committed offset as the values of a `ChangeJson`, in the order of its fields."""
    # Committed offsets are not converted: msgspec encodes a `CommittedOffset` with the fields of `CommittedJson`.
    return (  # type: ignore[return-value]
        change.action,
        change.source_group,
        change.group,
        change.topic,
        change.partition,
        change.before,
        change.after,
        change.source_committed,
        change.is_share,
    )


def value(found: ChangeJson) -> Change:
    """Return the change of a committed offset that a `ChangeJson` describes."""
    return Change(
        source_group=found.source_group,
        group=found.group,
        topic=found.topic,
        partition=found.partition,
        is_share=found.is_share,
        before=committed(found.before),
        after=committed(found.after),
        wanted=committed(found.source_committed),
        origin=Origin.NOT_MIRRORED if found.action is Action.NOT_MIRRORED else Origin.COMMITTED,
    )


def committed(found: CommittedJson | None) -> CommittedOffset | None:
    """Return the committed offset in a `CommittedJson`. None, null in JSON, means no committed offset."""
    if found is None:
        return None
    return CommittedOffset(offset=found.offset, leader_epoch=found.leader_epoch, metadata=found.metadata)
