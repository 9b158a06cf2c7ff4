"""One change of a plan as JSON: a line of a plan's file, and of a receipt's."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from migrate_groups.files.strict_json import Strict
from migrate_groups.model.partitions import CommittedOffset
from migrate_groups.planning.plan import Action, Change

Name = Annotated[str, msgspec.Meta(min_length=1)]
Topic = Annotated[str, msgspec.Meta(pattern=r"\A[a-zA-Z0-9._-]{1,249}\Z")]
Int32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class CommittedJson(Strict, frozen=True):
    """A committed offset; null in place of it where nothing is committed."""

    offset: Int64
    leader_epoch: Int32 | None
    metadata: str


class ChangeJson(Strict, frozen=True):
    """A change. ``action`` says what it does to a reader of the file; it follows from ``before`` and ``after``."""

    action: Action
    source_group: Name | None
    group: Name
    topic: Topic
    partition: Int32
    before: CommittedJson | None
    after: CommittedJson | None
    source_committed: CommittedJson | None


_Committed: TypeAlias = CommittedJson | None
_Cells: TypeAlias = tuple[Action, str | None, str, str, int, _Committed, _Committed, _Committed]


def cells(change: Change) -> _Cells:
    """Return the values of a `ChangeJson`, in their order.

    Committed offsets are as they are: msgspec writes them by the fields of `CommittedJson`.
    """
    return (  # type: ignore[return-value]
        change.action,
        change.source_group,
        change.group,
        change.topic,
        change.partition,
        change.before,
        change.after,
        change.source_committed,
    )


def value(found: ChangeJson) -> Change:
    """Return the change in JSON."""
    return Change(
        source_group=found.source_group,
        group=found.group,
        topic=found.topic,
        partition=found.partition,
        before=committed(found.before),
        after=committed(found.after),
        source_committed=committed(found.source_committed),
    )


def committed(found: CommittedJson | None) -> CommittedOffset | None:
    """Return the committed offset in JSON."""
    if found is None:
        return None
    return CommittedOffset(offset=found.offset, leader_epoch=found.leader_epoch, metadata=found.metadata)
