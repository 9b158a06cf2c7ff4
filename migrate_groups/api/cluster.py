"""Connect to a cluster, and read, plan, write and undo committed offsets from a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from weakref import finalize

from migrate_groups.api.clients import open_reader, open_writer
from migrate_groups.api.snapshot import PlannedWrite, Snapshot, Split, load_split
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.clock import Clock
from migrate_groups.errors import UsageError
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.files.runs.run_dir import RunDir, receipt_in
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.given import load_properties
from migrate_groups.migration import rewind, watch
from migrate_groups.migration.events import Events, Silent
from migrate_groups.migration.hand_over import apply as applying
from migrate_groups.migration.hand_over import migrate
from migrate_groups.migration.hand_over.apply import ApplyRequest
from migrate_groups.migration.hand_over.migrate import MigrateRequest
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.reading import take
from migrate_groups.migration.reading.groups import describe, list_groups
from migrate_groups.migration.reading.status import GroupStatus, with_time_lags
from migrate_groups.migration.reading.time_lag import with_time_lag
from migrate_groups.migration.result import WriteResult, result_of
from migrate_groups.migration.ways_back import go_back
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.rewind_to import PastEnd, RewindTo
from migrate_groups.snapshots.selection import TopicPattern

_WAIT = 600.0


def connect(
    bootstrap_servers: str = "",
    *,
    command_config: Path | None = None,
    properties: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    events: Events | None = None,
    clock: Clock | None = None,
) -> Cluster:
    """Return a cluster. It connects when its first method is called.

    Args:
        bootstrap_servers: ``host:port[,host:port…]``. If empty, the property ``bootstrap.servers`` is used.
        command_config: the path of a client.properties file for Kafka's own tools.
        properties: client properties, values by name, such as ``security.protocol``. They override those of the file.
        timeout: the seconds that one request may take, including retries.
        events: callbacks that receive the progress, and that return whether to write. If None, methods that write do
            not ask.
        clock: the clock to use; None: the clock of this machine.

    Raises:
        UsageError: there is no bootstrap server, or one is not ``host:port``.
        InvalidInput: a property can't be used, or the file can't be read. No message quotes a secret.
    """
    given = load_properties(Path(command_config)) if command_config is not None else {}
    told = understand(given | dict(properties or {}), bootstrap_servers)
    servers = bootstrap_servers or told.bootstrap_servers
    config = ClientConfig(bootstrap_servers=servers, timeout=timeout, security=told.security)
    return Cluster(config, events or Silent(), clock or SystemClock())


class Cluster:
    """A Kafka cluster. Its methods do what the commands of the same names do, with the same checks.

    `plan` is the dry run of `apply`, `plan_migrate` that of `migrate`, and so on. Close the cluster, or use it in a
    ``with`` block. Do not use it from several threads at once.

    Methods that only read use a client that has no method that writes. Every method raises `ClusterUnavailable` if the
    cluster does not answer in time, and `NotAuthorized` if the login is refused or the principal lacks a permission.
    """

    def __init__(self, config: ClientConfig, events: Events, clock: Clock) -> None:
        self._config, self._events, self._clock = config, events, clock
        self._opened = ExitStack()
        # A cluster that the caller never closes is closed before the interpreter stops its threads. Otherwise a thread
        # of the second client would hold the lock of a closed pipe, and Python would abort.
        finalize(self, self._opened.close)
        self._reader: GroupReader | None = None
        self._clients: Clients | None = None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The next method call opens new ones."""
        self._reader = self._clients = None
        self._opened.close()

    # Read

    def list(self, *, topics: Sequence[str] = (), states: Sequence[str] = ()) -> Sequence[GroupStatus]:
        """Return the groups of all types, sorted by name, with members and lag.

        Groups that the client's principal may not describe are left out. If something about a group is not known, its
        ``remarks`` say what and why.

        topics: topic names or globs. Only groups that have a committed offset, an assignment or a subscription for one
        of these topics are returned, and groups whose topics are not known. Each group then shows only the topics that
        match. states: only groups in one of these states, such as ``Stable``, in any letter case. An empty argument
        selects all groups.

        Raises `UsageError` for an unknown state; `InvalidInput` if ``topics`` names a topic that does not exist and for
        which no group has a committed offset, an assignment or a subscription.
        """
        patterns = tuple(map(TopicPattern, topics))
        return list_groups(self._reading_client(), self._clock, topics=patterns, states=states)

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
        (``end``), set no offset (``skip``) or raise `Refused` (``fail``). strict: raise `Refused` if the requested
        offset is outside the log, if the log starts after the time of a `ToTime`, or if ``target`` needs a committed
        offset and a partition has none.

        Raises `InvalidInput` if several groups have the same partition; `Refused` if the snapshot is from another
        cluster, if a topic was deleted or recreated since, or if a partition has no leader.
        """
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

        until: a snapshot, whose log end offsets are the goal. Its rows of the group are used, or, if it has none, its
        rows without a group. If None, a snapshot is taken now. Partitions without a committed offset in the snapshot
        are not watched. timeout: seconds. progress: called about once a second.

        Raises `Refused` after ``timeout`` seconds, or if a topic is deleted; `GroupNotFound`; `InvalidInput` if the
        snapshot has no such row, if one of these rows has no log end offset, or if none of them has a committed offset.
        """
        noted = (self.snapshot(group) if until is None else until).table
        spans = watch.goals(noted, group).spans
        return watch.watch(self._reading_client(), group, spans, self._clock, progress, timeout=timeout)

    # Write the offsets of a snapshot

    def plan(self, snapshot: Snapshot, *, to_groups: Sequence[str] = (), options: WriteOptions | None = None) -> Plan:
        """Return the plan of what `apply` would write, with the verdict of every check. Writes nothing.

        to_groups: the target group of all rows, as a list of one name; if empty, each row's ``group`` is its target
        group. options: None: the defaults.

        Raises `UsageError` if neither the rows nor ``to_groups`` name a target group, if ``to_groups`` names several
        groups, or if it names the group that the snapshot was taken from. Raises `InvalidInput` if the snapshot was
        taken from its target group and ``options.restore``, which allows this, is false.
        """
        wanted = _apply_request(snapshot, to_groups, options)
        plan = applying.plan_apply(self._reading_client(), wanted, ReceiptFile(None), self._events)
        assert plan is not None  # noqa: S101  it is None only if a receipt has a hand-over
        return plan

    def apply(
        self,
        what: Snapshot | PlannedWrite,
        *,
        receipt: Path,
        to_groups: Sequence[str] = (),
        options: WriteOptions | None = None,
    ) -> WriteResult | None:
        """Write committed offsets to groups, and return the outcome of each partition.

        The steps: plan, check, plan again right before the write, write, read back with both clients, watch the source
        groups for ``options.guard`` seconds.

        what: a snapshot, or a plan that was made from a snapshot. A plan is written exactly as it is, or refused if the
        groups have changed since. receipt: the file that records the write; the same call with it resumes an
        interrupted run. to_groups: the target group of all rows, as a list of one name; if empty, each row's ``group``
        is its target group. options: None: the defaults.

        Returns None if an earlier run wrote these offsets and a target group has started since. Raises `Refused` if a
        check forbids the write; nothing was written then. Raises `PartlyApplied` if not every partition is confirmed,
        or if a source group still consumes; `UsageError` if ``to_groups`` or ``options`` are given with a plan; and the
        errors of `plan`.
        """
        if isinstance(what, PlannedWrite):
            if to_groups or options:
                raise UsageError(
                    "a plan has its own groups and options: pass no to_groups and options with it, or make another plan"
                )
            wanted = ApplyRequest(rows=what.rows.table, options=what.plan.options, approved=what.plan)
        else:
            wanted = _apply_request(what, to_groups, options)
        with open_receipt(Path(receipt)) as file:
            execution = applying.apply(self._writing_clients(), wanted, file, self._clock, self._events)
            return _checked(result_of(execution, file) if execution else None)

    # Cut over

    def plan_migrate(
        self, split: Split | Path, *, run_dir: Path, options: WriteOptions | None = None
    ) -> PlannedWrite | None:
        """Return what `migrate` would write if the source group stopped now. Writes nothing.

        `migrate` makes the plan again once the source group has stopped. split: a `Split`, or the path of a spec file.
        run_dir: the run directory, which need not exist. options: None: those of the spec file, or the defaults.

        Returns None if an earlier run handed over and a target group has started since. Raises `InvalidInput` if the
        split is invalid or does not cover the topics of the source group; `GroupNotFound`; `Refused` if the receipt in
        ``run_dir`` forbids a hand-over; `UsageError` if this receipt is of another migration.
        """
        wanted = _migrate_request(split, run_dir, options)
        prepared = migrate.plan_migration(self._reading_client(), wanted, self._clock, self._events)
        return PlannedWrite(prepared.plan, Snapshot.of_rows(prepared.rows())) if prepared else None

    def migrate(
        self,
        split: Split | Path,
        *,
        run_dir: Path,
        options: WriteOptions | None = None,
        wait: float = _WAIT,
        hold: bool = False,
        approved: Path | None = None,
    ) -> WriteResult | None:
        """Hand over the source group's committed offsets to the target groups, and return the outcome.

        The steps: plan, wait until the source group has stopped, plan again, write, read back with both clients, watch
        the source group for ``options.guard`` seconds.

        Args:
            split: a `Split`, or the path of a spec file.
            run_dir: the run directory. The same call with it resumes an interrupted run.
            options: None: those of the spec file, or the defaults.
            wait: seconds within which the source group must stop.
            hold: keep every other client out of the stopped source group until the watch after the write is over.
            approved: the file of a plan that was reviewed. The write is refused if cluster, groups, partitions or
                options differ from it.

        Returns None if an earlier run handed over and a target group has started since. Raises `Refused` if a check
        forbids the write or the source group does not stop; nothing was written then. Raises `PartlyApplied` if not
        every partition is confirmed, or if the source group still consumes; and the errors of `plan_migrate`.
        """
        wanted = _migrate_request(split, run_dir, options, wait=wait, hold=hold, approved=approved)
        return _checked(migrate.migrate(self._writing_clients(), wanted, self._clock, self._events))

    # Undo

    def plan_rollback(self, receipt: Path) -> Plan:
        """Return the plan of what `rollback` would write and delete. Writes nothing.

        receipt: the path of the receipt, or of its run directory. Raises `Refused` if the receipt forbids the rollback.
        """
        return self._plan_way_back(Verb.ROLLBACK, receipt)

    def rollback(self, receipt: Path) -> WriteResult | None:
        """Restore the committed offsets that the target groups had before a write, and return the outcome.

        receipt: the path of the receipt, or of its run directory. Returns None if an earlier call completed the
        rollback. Raises `Refused` if a target group has started or the receipt forbids the rollback; nothing was
        written then. Raises `PartlyApplied` if not every partition is confirmed, or if a target group consumes after
        the write.
        """
        return self._go_back(Verb.ROLLBACK, receipt)

    def plan_hand_back(self, receipt: Path) -> Plan:
        """Return the plan of what `hand_back` would write. Writes nothing.

        receipt: the path of the receipt, or of its run directory. Raises `Refused` if the receipt forbids a hand-back.
        """
        return self._plan_way_back(Verb.HAND_BACK, receipt)

    def hand_back(self, receipt: Path, *, wait: float = _WAIT) -> WriteResult | None:
        """Move the source group forward to the committed offsets of the target groups, once all of them have stopped.

        receipt: the path of the receipt, or of its run directory. wait: seconds within which the target groups and the
        source group must stop. Returns None if an earlier call completed the hand-back. Raises `Refused` if the receipt
        or a check forbids the hand-back, or if a group does not stop; nothing was written then. Raises `PartlyApplied`
        if not every partition is confirmed, or if a target group still consumes.
        """
        return self._go_back(Verb.HAND_BACK, receipt, wait)

    def plan_delete_offsets(self, receipt: Path) -> Plan:
        """Return the plan of what `delete_offsets` would delete. Deletes nothing.

        receipt: the path of the receipt, or of its run directory. Raises `Refused` if the receipt forbids the deletion.
        """
        return self._plan_way_back(Verb.DELETE_OFFSETS, receipt)

    def delete_offsets(self, receipt: Path) -> WriteResult | None:
        """Delete the source group's committed offsets of the moved topics, so that its lag no longer counts them.

        receipt: the path of the receipt, or of its run directory. Returns None if an earlier call completed the
        deletion. Raises `Refused` if the receipt or a check forbids the deletion; nothing was deleted then. Raises
        `PartlyApplied` if not every partition is confirmed, or if the source group consumes these topics.
        """
        return self._go_back(Verb.DELETE_OFFSETS, receipt)

    def _plan_way_back(self, verb: Verb, receipt: Path) -> Plan:
        with open_receipt(receipt_in(Path(receipt)), read_only=True, must_exist=True) as file:
            return go_back.plan_way_back(self._reading_client(), verb, file, self._clock)

    def _go_back(self, verb: Verb, receipt: Path, wait: float = 0.0) -> WriteResult | None:
        with open_receipt(receipt_in(Path(receipt)), must_exist=True) as file:
            execution = go_back.go_back(self._writing_clients(), verb, file, self._clock, self._events, wait=wait)
            return _checked(result_of(execution, file) if execution else None)

    def _reading_client(self) -> GroupReader:
        self._reader = self._reader or self._opened.enter_context(open_reader(self._config))
        return self._reader

    def _writing_clients(self) -> Clients:
        self._clients = self._clients or self._opened.enter_context(open_writer(self._config))
        return self._clients


def _apply_request(snapshot: Snapshot, to_groups: Sequence[str], options: WriteOptions | None) -> ApplyRequest:
    chosen = options or WriteOptions()
    rows = name_groups(snapshot.table, to_groups, fan_out=False, restore=chosen.restore)
    return ApplyRequest(rows=rows, options=chosen)


def _migrate_request(
    split: Split | Path,
    run_dir: Path,
    options: WriteOptions | None,
    *,
    wait: float = _WAIT,
    hold: bool = False,
    approved: Path | None = None,
) -> MigrateRequest:
    file = load_split(split, options)
    reviewed = None if approved is None else (str(approved), PlannedWrite.read(approved).plan)
    run = RunDir(Path(run_dir))
    return MigrateRequest(file=file, options=file.options, run=run, wait=wait, hold=hold, approved=reviewed)


def _checked(result: WriteResult | None) -> WriteResult | None:
    """Return the result of a write unchanged, after a check. None, which means that there was no write, stays None.

    Raises `PartlyApplied` if a partition is not confirmed, if a group that must no longer consume does, or if a file of
    the run could not be written.
    """
    if result is not None:
        result.check()
    return result
