"""The facts of a write. Checks judge them, and read nothing themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Self

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource
from migrate_groups.planning.change import Change, Order, Origin
from migrate_groups.planning.decide import decide, with_an_offset
from migrate_groups.planning.execution import Execution, Source
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.partition_states import PartitionState
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.translation import Translation


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What checks tell the user to do next. The defaults fit offsets from a snapshot file.

    - read_again: what to do if the offsets are out of date.
    - still_running: what to do while a source group runs.
    - unasked: where offsets without a source group are from, and why no old group is checked.
    """

    read_again: str = "take a new snapshot"
    still_running: str = "stop these consumers"
    unasked: str = "without a source group, so no old group is checked"


FROM_FILE = Advice()
READ_EACH_TIME = Advice(read_again="run the same command again")
"""For offsets that the command reads itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of any write.

    - survey: what was read from the cluster; only its id until the check ``cluster`` has passed.
    - options, receipt: the options of the write, and the record of the run so far.
    - changes: what would be written.
    - earlier: the write of the run that this one undoes or follows; None for a hand-over.
    - topic_ids: see `Plan`; None: the ids of the topics in ``survey``.
    """

    survey: Survey
    options: WriteOptions
    receipt: Receipt = NOTHING_WRITTEN
    changes: Sequence[Change] = ()
    earlier: Execution | None = None
    topic_ids: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class HandOverFacts(Facts):
    """The facts of a hand-over or a hand-back, or of the source or the target of a move to another cluster.

    - decided: each wanted partition with what was decided, also without an offset to write.
    - advice: what the reasons tell the user to do next.
    - topics: of a hand-back, all topics for which each target group has a committed offset.
    - kept_from: of a return after a fail-over, the offset of each partition from which the group on the other cluster
      read; otherwise None.
    - ran: the source groups that ran when the file's snapshot was taken, so that they may have read on.
    """

    decided: Sequence[Change]
    advice: Advice = FROM_FILE
    topics: Mapping[str, Collection[str]] = field(default_factory=dict)
    kept_from: Mapping[TopicPartition, int] | None = None
    ran: Collection[str] = ()

    @cached_property
    def wanted(self) -> list[Change]:
        """The partitions in ``decided`` that the snapshot has."""
        return [each for each in self.decided if each.origin is not Origin.ABSENT]

    def decided_by(self, survey: Survey) -> Self:
        """Return the facts with what was read from the cluster, and with what follows from it for each partition."""
        decided = decide(self.decided, survey, self.options)
        return replace(self, survey=survey, decided=decided, changes=with_an_offset(decided))


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorFacts(Facts):
    """The facts of the mirror in a move to another cluster. ``survey`` is of the target cluster.

    lag_matters: whether the source group still runs, so that it goes on as far as the mirror. stays: of a return, how
    many records the source group has not read of each topic that does not go back; otherwise None.
    """

    source: Survey
    translation: Translation
    lag_matters: bool
    stays: Mapping[str, int] | None = None


@dataclass(frozen=True, kw_only=True)
class FailOverFacts(HandOverFacts):
    """The facts of a hand-over from a cluster that is lost. ``survey`` is of the target cluster.

    translation: the offsets as they were translated while the source cluster was there. age: how long ago that was.
    """

    translation: Translation
    age: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBackFacts(Facts):
    """The facts of a rollback or of a deletion.

    - needed: the operations that the client's principal needs for it.
    - topics: of a deletion, by group, the topics that the group must no longer consume.
    """

    needed: Mapping[Resource, frozenset[Operation]] = field(default_factory=dict)
    topics: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackFacts(WayBackFacts):
    """The facts of a rollback.

    - states: the partitions of the target groups, or those whose offsets were deleted, that are not undone yet.
    - stopped: by partition of a source group, the change that sets the offset at which the group stopped.
    """

    earlier: Execution
    states: Mapping[Order, PartitionState] = field(default_factory=dict)
    stopped: Mapping[Order, Change] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDeletionFacts(WayBackFacts):
    """The facts of a deletion of the source group's offsets. ``survey`` is of the source group's cluster.

    - targets: what was read from the cluster of the target groups, which may be the same.
    - moved: each partition of a target group, with its source whose offset is deleted.
    - refused: the changes that brokers refused in the hand-over, without those of topics that were deleted since.
    """

    earlier: Execution
    targets: Survey
    moved: Sequence[tuple[Change, Source]] = ()
    refused: Sequence[Change] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDeletionFacts(WayBackFacts):
    """The facts of a deletion of a group's offsets. shown: the changes that the user agreed to; None before that."""

    shown: Sequence[Change] | None = None
