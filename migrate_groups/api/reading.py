"""Read groups, committed offsets and topics from a program: the methods of a cluster that write nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from weakref import finalize

from migrate_groups.api.clients import open_reader, open_side, open_writer
from migrate_groups.api.snapshot import Snapshot, topic_patterns
from migrate_groups.arguments import check_choice, checked_seconds, checked_texts
from migrate_groups.clock import Clock
from migrate_groups.errors import UsageError
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.migration import rewind, watch
from migrate_groups.migration.across import compare
from migrate_groups.migration.across.mirror import MOST_RECORDS, Mirror
from migrate_groups.migration.ports import Clients, GroupReader, Side
from migrate_groups.migration.reading import take
from migrate_groups.migration.reading.groups import describe, list_groups
from migrate_groups.migration.reading.status import GroupStatus, with_time_lags
from migrate_groups.migration.reading.time_lag import with_time_lag
from migrate_groups.mirrors.names import Rename, TopicNames
from migrate_groups.snapshots.rewind_to import PastEnd, RewindTo, ToTime
from migrate_groups.snapshots.times import checked_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """The copies of topics that a mirror has written to another cluster.

    cluster: that cluster. rename_topics: the names of the copies by the names of the topics, such as ``{"orders":
    "eu.orders"}`` or ``{"*": "eu.*"}``. For any other topic, the copy has the same name, or a prefix, a dot and the
    name. max_records: to find an offset in a copy, a range of at most this many offsets of the partition is read on
    each cluster; if that is not enough, the offset stays unknown.
    """

    cluster: ReadingCluster
    rename_topics: Mapping[str, str] = field(default_factory=dict)
    max_records: int = MOST_RECORDS


class ReadingCluster:
    """The base class of `Cluster`: its connections, and the methods that write nothing."""

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._opened = ExitStack()
        # A cluster that the caller never closes is closed before the interpreter stops its threads. Otherwise a thread
        # of the second client would hold the lock of a closed pipe, and Python would abort.
        finalize(self, self._opened.close)
        self._reader: GroupReader | None = None
        self._clients: Clients | None = None
        self._side: Side | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The next method call opens new ones."""
        self._reader = self._clients = self._side = None
        self._opened.close()

    def list(self, *, topics: Sequence[str] = (), states: Sequence[str] = ()) -> Sequence[GroupStatus]:
        """Return the groups of all types, sorted by name, with members and lag.

        Groups that the client's principal may not describe are left out. If something about a group is not known, its
        ``remarks`` say what and why.

        topics: topic names or globs. Only groups that have a committed offset, an assignment or a subscription for one
        of these topics are returned, and groups whose topics are not known. Each group then shows only the topics that
        match. states: only groups in one of these states, such as ``Stable``, in any letter case. An empty argument
        selects all groups.

        Raises `UsageError` for an unknown state, or if an argument is not a list of texts; `InvalidInput` if ``topics``
        names a topic that does not exist and for which no group has a committed offset, an assignment or a
        subscription.
        """
        patterns, wanted = topic_patterns("topics", topics), checked_texts("states", states)
        return list_groups(self._reading_client(), self._clock, topics=patterns, states=wanted)

    def describe(self, *groups: str, time_lag: bool = False) -> Mapping[str, GroupStatus]:
        """Return, by group name, each group's members, committed offsets, log start offsets and log end offsets.

        groups: their names; if none is given, the result is empty. time_lag: add the timestamp of each partition's
        oldest unread record. While a transactional commit is pending for a partition, its offset is None, and
        ``remarks`` of the group says so.

        Raises `GroupNotFound`; `Refused` if the metadata of a member is not in the format of Kafka's consumer protocol.
        """
        found = describe(self._reading_client(), groups, self._clock)
        return {each.group: each for each in (with_time_lags(self._reading_client(), found)[0] if time_lag else found)}

    def snapshot(self, *groups: str, time_lag: bool = False) -> Snapshot:
        """Return the committed offsets of groups with log start and log end offsets. The groups may have members.

        groups: their names; if none is given, the snapshot is empty. time_lag: add the timestamp of each partition's
        oldest unread record.

        Raises `GroupNotFound`; `Refused` for a share group; `PendingCommits` if a transactional commit is still pending
        at the time-out.
        """
        taken = take.take_snapshot(self._reading_client(), groups, self._clock)
        return Snapshot(with_time_lag(self._reading_client(), taken).snapshot if time_lag else taken)

    def rewind(
        self, snapshot: Snapshot, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Look up the offset that ``target`` requests for each partition of a snapshot. Writes nothing.

        The returned rows have these offsets and name no group: choose one with `Snapshot.given_to`, or with
        ``to_groups`` of `apply`.

        past_end: what to do for a partition without a record at or after the time of a `ToTime`: use the log end offset
        (``end``), return no offset (``skip``) or raise `Refused` (``fail``). strict: raise `Refused` if the requested
        offset is outside the log, if the log starts after the time of a `ToTime`, or if ``target`` needs a committed
        offset and a partition has none.

        Raises `UsageError` if the time of a `ToTime` is in the future, before 1970, or looks like seconds, or if
        ``target`` or ``past_end`` is wrong; `InvalidInput` if several groups have the same partition; `Refused` if the
        snapshot is from another cluster, if a topic was deleted or recreated since, or if a partition has no leader.
        """
        check_choice("past_end", past_end, PastEnd)
        if not isinstance(target, RewindTo):
            raise UsageError(f"target is {target!r}; expected one such as ToEarliest() or ToOffset(42)")
        if isinstance(target, ToTime):
            checked_moment(target.moment, self._clock.now(), f"ToTime is {target.moment}")
        found = rewind.rewind(
            self._reading_client(), snapshot.table, target, self._clock, past_end=past_end, strict=strict
        )
        return Snapshot(found.snapshot)

    def watch(
        self,
        group: str,
        *,
        until: Snapshot | None = None,
        timeout: float = math.inf,
        progress: Callable[[watch.WatchProgress], None] = lambda progress: None,
    ) -> watch.WatchProgress:
        """Wait until a group has reached the log end offset of each partition, and return the last progress.

        until: a snapshot, whose log end offsets are the goal. Its rows of the group are used or, if there are none, its
        rows that name no group, which `rewind` makes. If None, a snapshot is taken now. Partitions without a committed
        offset in these rows are not watched. timeout: seconds. progress: called about once a second.

        Raises `Refused` after ``timeout`` seconds, if the snapshot is from another cluster, or if a topic is deleted or
        was created again since; `GroupNotFound`; `InvalidInput` if the snapshot has no such row, if one of these rows
        has no log end offset, or if none of them has a committed offset.
        """
        if timeout != math.inf:
            checked_seconds("timeout", timeout)
        goal = self.snapshot(group) if until is None else until
        wanted = watch.goals(goal.table, group)
        return watch.watch(self._reading_client(), group, wanted, self._clock, progress, timeout=timeout)

    def compare(self, *groups: str, to: ReadingCluster | Copies) -> compare.Comparison:
        """Return, for each partition of groups, the place at which they must continue in its copy on another cluster.

        The place is found by comparing records. groups: their names. to: the other cluster, to which a mirror copies
        the topics, or the `Copies` on it. The result also has the groups' committed offsets on both clusters, and how
        many records they would read again or skip if they started at their committed offsets on the other cluster.

        Raises `GroupNotFound` if a group does not exist on this cluster; `Refused` if it has no committed offset on
        this cluster; `InvalidInput` if both clusters are the same, or if it is not clear which topic is the copy.
        """
        return compare.compare(self._mirror_to(to), groups, self._clock)

    def _mirror_to(self, to: ReadingCluster | Copies) -> Mirror:
        copies = to if isinstance(to, Copies) else Copies(cluster=to)
        names = TopicNames(tuple(Rename(f"{here}={there}") for here, there in copies.rename_topics.items()))
        return Mirror(self._reading_side(), copies.cluster._reading_side(), names, copies.max_records)

    def _reading_client(self) -> GroupReader:
        self._reader = self._reader or self._opened.enter_context(open_reader(self._config))
        return self._reader

    def _writing_clients(self) -> Clients:
        self._clients = self._clients or self._opened.enter_context(open_writer(self._config))
        return self._clients

    def _reading_side(self) -> Side:
        self._side = self._side or self._opened.enter_context(open_side(self._config))
        return self._side
