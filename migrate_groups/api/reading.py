"""The methods of the Python API's cluster that read groups, offsets and topics, and write nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import finalize

from migrate_groups.api.clients import open_reader, open_side, open_writer
from migrate_groups.api.snapshot import Snapshot, topic_patterns
from migrate_groups.arguments import check_choice, checked_seconds, checked_texts
from migrate_groups.clock import Clock
from migrate_groups.errors import UsageError
from migrate_groups.files import split_toml
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.migration import rewind, watch
from migrate_groups.migration.across import compare
from migrate_groups.migration.advise import shared_groups
from migrate_groups.migration.advise.propose import propose
from migrate_groups.migration.advise.shared_groups import GroupAdvice
from migrate_groups.migration.clusters import MOST_RECORDS, Mirror
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over.groups_to_move import WholeGroups
from migrate_groups.migration.ports import Clients, GroupReader, Side
from migrate_groups.migration.reading import take
from migrate_groups.migration.reading.groups import describe, list_groups
from migrate_groups.migration.reading.status import GroupStatus, with_time_lags
from migrate_groups.migration.reading.time_lag import with_time_lag
from migrate_groups.model.renames import Rename
from migrate_groups.planning.written_by import NOT_KNOWN, WrittenBy
from migrate_groups.snapshots.rewind_to import PastEnd, RewindTo, ToTime
from migrate_groups.snapshots.times import checked_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Another cluster to which a mirror copies topics, and the names of the copied topics there.

    cluster: the other cluster. rename_topics: the name of each copied topic by its original name, such as ``{"orders":
    "eu.orders"}`` or ``{"*": "eu.*"}``. For a topic that is not listed, the copy has the same name, or a prefix, a dot
    and the name. max_records: the largest number of offsets to read in each partition on each cluster. If more offsets
    would have to be read, the matching offset in the copy stays unknown.
    """

    cluster: ReadingCluster
    rename_topics: Mapping[str, str] = field(default_factory=dict)
    max_records: int = MOST_RECORDS


class ReadingCluster:
    """The base class of `Cluster`: its connections, and the methods that write nothing."""

    def __init__(self, config: ClientConfig, events: Events, clock: Clock, by: WrittenBy = NOT_KNOWN) -> None:
        self._config, self._events, self._clock, self._by = config, events, clock, by
        self._opened = ExitStack()
        # A cluster that the caller never closes is closed before the interpreter stops its threads. Otherwise a thread
        # of the second client would hold the lock of a closed pipe, and Python would abort.
        finalize(self, self._opened.close)
        self._reader: GroupReader | None = None
        self._clients: Clients | None = None
        self._sides: dict[bool, Side] = {}  # True: one that can write

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The next method call opens new ones."""
        self._reader = self._clients = None
        self._sides.clear()
        self._opened.close()

    def list(
        self, *, topics: Sequence[str] = (), states: Sequence[str] = (), types: Sequence[str] = ()
    ) -> Sequence[GroupStatus]:
        """Return the groups of all types, sorted by name, with members and lag.

        A group that the client's principal may not describe is left out. A group's ``remarks`` say what is not known
        about it.

        Args:
            topics: topic names or globs. Only groups that use a matching topic are returned, and groups whose topics
                are not known. A group uses a topic if it has a committed offset, an assignment or a subscription for
                it. Each group shows only the matching topics.
            states: group states such as ``Stable``, in any letter case. Only groups in these states are returned.
            types: group types such as ``consumer``, in any letter case. Only groups of these types are returned.

        An empty argument selects all groups.

        Raises:
            UsageError: a state or type is unknown, or an argument is not a list of texts.
            InvalidInput: ``topics`` names a topic that does not exist and that no group uses.
        """
        patterns, wanted = topic_patterns("topics", topics), checked_texts("states", states)
        kinds = checked_texts("types", types)
        return list_groups(self._reading_client(), self._clock, topics=patterns, states=wanted, types=kinds)

    def describe(self, *groups: str, topics: Sequence[str] = (), time_lag: bool = False) -> Mapping[str, GroupStatus]:
        """Return the members, committed offsets, log start offsets and log end offsets of groups, by group name.

        While a transactional commit is pending for a partition, its committed offset is None, and the
        group's ``remarks`` say so.

        topics: topic names or globs. Only matching topics are returned, with the members that read them. time_lag: add
        the timestamp of each partition's oldest unread record.

        Raises `GroupNotFound` if a group does not exist, and `InvalidInput` if no group uses a topic. Raises `Refused`
        if a member's metadata is not in the format of Kafka's consumer protocol.
        """
        patterns = topic_patterns("topics", topics)
        found = describe(self._reading_client(), groups, self._clock, topics=patterns)
        return {each.group: each for each in (with_time_lags(self._reading_client(), found)[0] if time_lag else found)}

    def snapshot(self, *groups: str, time_lag: bool = False) -> Snapshot:
        """Return the committed offsets of groups, with log start and log end offsets. The groups may have members.

        time_lag: add the timestamp of each partition's oldest unread record.

        Raises `GroupNotFound` if a group does not exist, `Refused` for a share group, and `PendingCommits` if a
        transactional commit is still pending at the time-out.
        """
        taken = take.take_snapshot(self._reading_client(), groups, self._clock)
        return Snapshot(with_time_lag(self._reading_client(), taken).snapshot if time_lag else taken)

    def rewind(
        self, snapshot: Snapshot, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return the partitions of a snapshot with the offsets that ``target`` requests. Writes nothing.

        The returned rows name no group. Choose a group with `Snapshot.given_to`, or with ``to_groups`` of `apply`.

        Args:
            target: the requested offsets, such as ``ToEarliest()`` or the first records from a time on (`ToTime`).
            past_end: what a partition gets if it has no record at or after the time of a `ToTime`: the log end offset
                (``end``), no offset (``skip``), or the error `Refused` (``fail``).
            strict: raise `Refused` if a requested offset is outside the log, if the log starts after the requested
                time, or if a partition lacks a committed offset that ``target`` needs.

        Raises:
            UsageError: the time of a `ToTime` is in the future, before 1970, or probably in seconds; or ``target`` or
                ``past_end`` is wrong.
            InvalidInput: the snapshot has several rows of a partition.
            Refused: the snapshot is from another cluster, a topic was deleted or recreated since, or a partition has no
                leader.
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

        Args:
            until: a snapshot with the log end offsets to reach. If it has no row of the group, its rows without a group
                are used, such as those from `rewind`. Partitions whose row has no ``offset`` are not watched. None: a
                snapshot is taken now.
            timeout: seconds.
            progress: called about once a second.

        Raises:
            Refused: ``timeout`` is over, ``until`` is from another cluster, or a topic was deleted or recreated since.
            GroupNotFound: the group does not exist.
            InvalidInput: ``until`` has only rows of other groups, several rows for one partition, a row without a log
                end offset, or no row with an ``offset``.
        """
        if timeout != math.inf:
            checked_seconds("timeout", timeout)
        goal = self.snapshot(group) if until is None else until
        wanted = watch.goals(goal.table, group)
        return watch.watch(self._reading_client(), group, wanted, self._clock, progress, timeout=timeout)

    def compare(self, *groups: str, to: ReadingCluster | Copies, trust_copy: Sequence[str] = ()) -> compare.Comparison:
        """Return the offsets at which groups must continue in a mirror's copies of their topics on another cluster.

        The offsets are found by comparing records. The result also has the groups' committed offsets on both clusters.
        It says how many records a group would read again or skip if it started on the other cluster now.

        to: the other cluster. A `Copies` object also gives the names of the copied topics. trust_copy: topics whose
        copies are trusted where this cluster has no record left to compare.

        Raises `GroupNotFound` if a group does not exist on this cluster, and `Refused` if a group has no committed
        offset here. Raises `InvalidInput` if both clusters are the same, or if it is not clear which topic is the copy.
        """
        trusted = checked_texts("trust_copy", trust_copy)
        return compare.compare(self._mirror_to(to), groups, self._clock, trusted)

    def whole_groups(
        self,
        spec: Path,
        *,
        names: Mapping[str, str] | None = None,
        approved: Path | None = None,
        to: ReadingCluster | Copies | None = None,
    ) -> Mapping[str, SplitFile]:
        """Return a split of each group of a fleet, by group, in the order of the spec.

        `Cluster.migrate` and `Cluster.plan_migrate` take a split, with the write options of the spec.

        spec: the path of a spec file with ``groups``, which are names and globs. names: the new name of each group that
        is renamed, by its old name, such as ``{"orders": "eu-orders"}`` or ``{"*": "eu-*"}``, before the rules of the
        spec. approved: the folder of reviewed plans: a group without one is left out. Globs also match the groups of
        these plans, even if a group no longer exists. to: the cluster of the new groups, where they may keep their
        names; None: this cluster.

        Raises `InvalidInput` if the spec or a plan is invalid, if a glob matches no group, or if a group needs another
        name. Raises `UsageError` if ``names`` has an unknown group, or gives several groups one name. Raises `Refused`
        if no group is left.
        """
        reviewed = None if approved is None else Path(approved)
        rules = [Rename(old=old, new=new, option="names") for old, new in (names or {}).items()]
        wanted = WholeGroups(file=split_toml.load_groups(Path(spec)), renames=rules, reviewed=reviewed)
        return wanted.find(self._reading_client(), elsewhere=to is not None).splits

    def advise(self, *groups: str) -> Sequence[GroupAdvice]:
        """Return which of these groups several applications share; the worst finding first. No name means all groups.

        An application is a set of members that subscribe to the same topics. Raises `GroupNotFound` if a group does not
        exist.
        """
        return shared_groups.advise(self._reading_client(), self._clock, groups)

    def propose_split(self, group: str, applications: Sequence[str] = ()) -> str:
        """Return the text of a spec file with a new target group for each application of a shared group.

        applications: the names of the applications that get a target group, as `advise` returns them. The others stay.
        If empty, all get one.

        Raises `UsageError` for an unknown application, `Refused` if the group is not shared by several applications,
        `Undetermined` if its applications are not known, and `GroupNotFound` if it does not exist.
        """
        [found] = self.advise(group)
        return propose(self._reading_client(), found, checked_texts("applications", applications)).to_toml()

    def _mirror_to(self, to: ReadingCluster | Copies, *, writes: bool = False) -> Mirror:
        copies = to if isinstance(to, Copies) else Copies(cluster=to)
        renames = [Rename(old=old, new=new, option="rename_topics") for old, new in copies.rename_topics.items()]
        return Mirror(self._side(writes=writes), copies.cluster._side(writes=False), renames, copies.max_records)

    def _reading_client(self) -> GroupReader:
        self._reader = self._reader or self._opened.enter_context(open_reader(self._config))
        return self._reader

    def _writing_clients(self) -> Clients:
        self._clients = self._clients or self._opened.enter_context(open_writer(self._config))
        return self._clients

    def _side(self, *, writes: bool) -> Side:
        if writes not in self._sides:
            self._sides[writes] = self._opened.enter_context(open_side(self._config, writes=writes))
        return self._sides[writes]
