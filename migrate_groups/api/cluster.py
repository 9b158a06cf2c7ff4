"""Connect to a cluster, and read, plan, write and undo committed offsets from a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from migrate_groups.api.clients import open_reader, open_writer
from migrate_groups.api.snapshot import PlannedWrite, Snapshot, Split, load_split
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.clock import Clock
from migrate_groups.errors import UsageError
from migrate_groups.files.read import read_bytes
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.files.runs.run_dir import RunDir, receipt_in
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.client_properties import parse_properties, understand
from migrate_groups.migration import rewind, watch
from migrate_groups.migration.events import Events, Silent
from migrate_groups.migration.hand_over import apply as applying
from migrate_groups.migration.hand_over import migrate
from migrate_groups.migration.hand_over.apply import ApplyRequest
from migrate_groups.migration.hand_over.migrate import MigrateRequest
from migrate_groups.migration.ports import Clients, GroupReader
from migrate_groups.migration.reading import take
from migrate_groups.migration.reading.time_lag import with_time_lag
from migrate_groups.migration.result import WriteResult, result_of
from migrate_groups.migration.ways_back import go_back
from migrate_groups.model.groups import GroupDescription, GroupListing
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.regroup import name_groups
from migrate_groups.snapshots.rewind_to import PastEnd, RewindTo

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
        bootstrap_servers: ``host:port[,host:port…]``; if empty, ``bootstrap.servers`` of the properties.
        command_config: the path of a client.properties file for Kafka's own tools.
        properties: the same properties as a mapping. They override the properties of the file.
        timeout: seconds that one request may take, retries included.
        events: callbacks that get the progress and must agree to each write. If None, each write goes ahead unasked.
        clock: the clock to use; None is the clock of this machine. Tests pass their own.

    Raises:
        UsageError: there is no bootstrap server, or one is not ``host:port``.
        InvalidInput: a property can't be used, or the file can't be read. No message quotes a secret.
    """
    given: dict[str, str] = {}
    if command_config is not None:
        given |= parse_properties(read_bytes(Path(command_config)).decode("latin-1"), str(command_config))
    told = understand(given | dict(properties or {}))
    servers = bootstrap_servers or told.bootstrap_servers
    config = ClientConfig(bootstrap_servers=servers, timeout=timeout, security=told.security)
    return Cluster(config, events or Silent(), clock or SystemClock())


class Cluster:
    """A Kafka cluster. Each method does what the command of the same name does, with the same checks.

    Close it, or use it in a ``with`` block. Do not use it from several threads at once. Methods that only read use a
    client that has no method that writes. Every method raises `ClusterUnavailable` if the cluster does not answer in
    time, and `NotAuthorized` if it refuses the principal.
    """

    def __init__(self, config: ClientConfig, events: Events, clock: Clock) -> None:
        self._config, self._events, self._clock = config, events, clock
        self._opened = ExitStack()
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

    def list(self) -> Sequence[GroupListing]:
        """Return all groups of every type that this principal may describe, sorted by name."""
        return self._look().list_groups()

    def describe(self, *groups: str) -> Mapping[str, GroupDescription]:
        """Return the description of each of these groups. The state of a group that does not exist is ``Dead``.

        Raises `Refused` if the metadata of a member is not in the format of Kafka's consumer protocol.
        """
        return self._look().describe_groups(groups)

    def snapshot(self, *groups: str, time_lag: bool = False) -> Snapshot:
        """Return the committed offsets of groups with log start and log end offsets. The groups may have members.

        time_lag: add the timestamp of each partition's oldest unread record.

        Raises `GroupNotFound`; `Refused` for a share group, and while a transactional commit is pending.
        """
        taken = take.take_snapshot(self._look(), groups, self._clock)
        return Snapshot(with_time_lag(self._look(), taken).snapshot if time_lag else taken)

    def rewind(
        self, snapshot: Snapshot, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return the snapshot's partitions with the offsets that ``target`` asks for. Writes nothing.

        The rows name no group: choose one with `Snapshot.given_to`, or with ``to_groups`` of `apply`.

        past_end: what to do for a partition without a record at or after a `ToTime`: use the log end offset (``end``),
        set no offset (``skip``) or raise `Refused` (``fail``). strict: raise `Refused` if an offset is outside
        the log, the log no longer goes back to the time, or no offset is committed.

        Raises `InvalidInput` if several groups have the same partition; `Refused` if a topic was deleted or recreated
        since the snapshot, or a partition has no leader.
        """
        found = rewind.rewind(self._look(), snapshot.table, target, self._clock, past_end=past_end, strict=strict)
        return Snapshot(found.snapshot)

    def watch(
        self,
        group: str,
        *,
        until: Snapshot | None = None,
        timeout: float = math.inf,
        progress: Callable[[watch.WatchProgress], None] = lambda progress: None,
    ) -> watch.WatchProgress:
        """Wait until a group has reached the log end offsets in ``until``, or, if that is None, the current ones.

        Returns the last progress. ``progress`` is called once a second. Raises `Refused` after ``timeout`` seconds, or
        if a topic is deleted; `GroupNotFound`; `InvalidInput` if the snapshot has no row, log end offset or committed
        offset for the group.
        """
        noted = (until or self.snapshot(group)).table
        spans = watch.goals(noted, group).spans
        return watch.watch(self._look(), group, spans, self._clock, progress, timeout=timeout)

    # Write the offsets of a snapshot

    def plan(self, snapshot: Snapshot, *, to_groups: Sequence[str] = (), options: WriteOptions | None = None) -> Plan:
        """Return the plan of what `apply` would write, with the verdict of every check. Writes nothing.

        Raises `UsageError` if the target group is named neither by the rows nor by ``to_groups``, or if ``to_groups``
        names several; `InvalidInput` if the rows are the target group's own snapshot and ``options.restore`` is false.
        """
        wanted = _application(snapshot, to_groups, options)
        plan = applying.plan_application(self._look(), wanted, ReceiptFile(None), self._events)
        assert plan is not None  # noqa: S101  there is no run that could be over
        return plan

    def apply(
        self,
        what: Snapshot | PlannedWrite,
        *,
        receipt: Path,
        to_groups: Sequence[str] = (),
        options: WriteOptions | None = None,
    ) -> WriteResult | None:
        """Write offsets: plan, check, plan again right before the write, write, read back with both clients, watch.

        A `PlannedWrite` is written exactly as it is, or refused as stale. ``receipt`` is a file: the same call with it
        resumes an interrupted run. Returns None if an earlier run wrote these offsets and the target groups have
        started.

        Raises `Refused` if a check forbids the write: then nothing was written; `PartlyApplied` if not every partition
        is confirmed, or if the source group still consumes.
        """
        if isinstance(what, PlannedWrite):
            if to_groups or options:
                raise UsageError("a plan names its groups and options: make another plan")
            wanted = ApplyRequest(rows=what.rows.table, options=what.plan.options, approved=what.plan)
        else:
            wanted = _application(what, to_groups, options)
        with open_receipt(Path(receipt)) as file:
            execution = applying.apply(self._write(), wanted, file, self._clock, self._events)
            return _checked(result_of(execution, file) if execution else None)

    # Cut over

    def plan_migrate(
        self, split: Split | Path, *, run_dir: Path, options: WriteOptions | None = None
    ) -> PlannedWrite | None:
        """Return what `migrate` would write if the source group stopped now. Writes nothing.

        `migrate` makes the plan again once the source group has stopped. Returns None if an earlier run handed over and
        the target groups have started.
        """
        wanted = _migration(split, run_dir, options)
        prepared = migrate.plan_migration(self._look(), wanted, self._clock, self._events)
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
        """Do the whole cut-over: plan, wait until the source group stops, write, read back with both clients, watch.

        Args:
            split: a `Split`, or the path of a spec file.
            run_dir: the run directory. The same call with it resumes an interrupted run.
            options: None uses the options of the spec file, or the defaults.
            wait: seconds within which the source group must stop.
            hold: keep every other client out of the stopped source group until the watch after the write is over.
            approved: the file of a plan that was reviewed. A plan with another intent is refused.

        Returns None if an earlier run handed over and the target groups have started. Raises the errors of `apply`.
        """
        wanted = _migration(split, run_dir, options, wait=wait, hold=hold, approved=approved)
        return _checked(migrate.migrate(self._write(), wanted, self._clock, self._events))

    # Undo

    def plan_rollback(self, receipt: Path) -> Plan:
        """Return the plan of what `rollback` would write and delete. Writes nothing."""
        return self._plan_way_back(Verb.ROLLBACK, receipt)

    def rollback(self, receipt: Path) -> WriteResult | None:
        """Restore the target groups' committed offsets from before a write. receipt: its file, or the run directory.

        Returns None if this was done before. Raises `Refused` if a target group has started or the receipt forbids the
        rollback; and the errors of `apply`.
        """
        return self._go_back(Verb.ROLLBACK, receipt)

    def plan_hand_back(self, receipt: Path) -> Plan:
        """Return the plan of what `hand_back` would write. Writes nothing."""
        return self._plan_way_back(Verb.HAND_BACK, receipt)

    def hand_back(self, receipt: Path, *, wait: float = _WAIT) -> WriteResult | None:
        """Move the source group forward to the committed offsets of the target groups, once all of them have stopped.

        ``wait`` is the seconds within which the target groups and the source group must stop. Returns None if this was
        done before. Raises `Refused` if the receipt forbids the hand-back; and the errors of `apply`.
        """
        return self._go_back(Verb.HAND_BACK, receipt, wait)

    def plan_delete_offsets(self, receipt: Path) -> Plan:
        """Return the plan of what `delete_offsets` would delete. Deletes nothing."""
        return self._plan_way_back(Verb.DELETE_OFFSETS, receipt)

    def delete_offsets(self, receipt: Path) -> WriteResult | None:
        """Delete the offsets of the moved topics from the source group, so that its lag no longer counts them.

        Returns None if this was done before. Raises `Refused` if the receipt forbids the deletion; and the errors of
        `apply`.
        """
        return self._go_back(Verb.DELETE_OFFSETS, receipt)

    def _plan_way_back(self, verb: Verb, receipt: Path) -> Plan:
        with open_receipt(receipt_in(Path(receipt)), read_only=True, must_exist=True) as file:
            return go_back.plan_way_back(self._look(), verb, file, self._clock)

    def _go_back(self, verb: Verb, receipt: Path, wait: float = 0.0) -> WriteResult | None:
        with open_receipt(receipt_in(Path(receipt)), must_exist=True) as file:
            execution = go_back.go_back(self._write(), verb, file, self._clock, self._events, wait=wait)
            return _checked(result_of(execution, file) if execution else None)

    def _look(self) -> GroupReader:
        self._reader = self._reader or self._opened.enter_context(open_reader(self._config))
        return self._reader

    def _write(self) -> Clients:
        self._clients = self._clients or self._opened.enter_context(open_writer(self._config))
        return self._clients


def _application(snapshot: Snapshot, to_groups: Sequence[str], options: WriteOptions | None) -> ApplyRequest:
    chosen = options or WriteOptions()
    rows = name_groups(snapshot.table, to_groups, fan_out=False, restore=chosen.restore)
    return ApplyRequest(rows=rows, options=chosen)


def _migration(
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
    """Return the result of a write, None if there was none. Raises `PartlyApplied` as `WriteResult.check`."""
    if result is not None:
        result.check()
    return result
