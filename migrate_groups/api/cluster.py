"""A cluster, and the verbs on it, for programs."""

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
from migrate_groups.planning.execution import Execution
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
    """Return a cluster, connected to when it is first asked.

    Args:
        bootstrap_servers: ``host:port[,host:port…]``; empty: ``bootstrap.servers`` of the properties.
        command_config: a client.properties as Kafka's own tools take it.
        properties: such properties; they win over those of the file.
        timeout: seconds that one request may take, retries included.
        events: is told what goes on, and asked before each write; none: nothing is told, and every write agreed to.
        clock: for tests.

    Raises:
        UsageError: no bootstrap server, or one that is not ``host:port``.
        InvalidInput: a property that can't be used. No message quotes a secret.
    """
    given: dict[str, str] = {}
    if command_config is not None:
        given |= parse_properties(read_bytes(Path(command_config)).decode("latin-1"), str(command_config))
    told = understand(given | dict(properties or {}))
    servers = bootstrap_servers or told.bootstrap_servers
    config = ClientConfig(bootstrap_servers=servers, timeout=timeout, security=told.security)
    return Cluster(config, events or Silent(), clock or SystemClock())


class Cluster:
    """The verbs on a cluster, each as safe as the command of its name; close it, or use it in a ``with`` block.

    What looks is handed a client that has no method that writes. Every method raises `ClusterUnavailable` where the
    cluster does not answer in time, and `NotAuthorized` where it refuses. Not to be used by several threads at once.
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
        """Close the connections; the next question opens new ones."""
        self._reader = self._clients = None
        self._opened.close()

    # ObservedGroup

    def list(self) -> Sequence[GroupListing]:
        """Return all groups that this principal may describe, sorted by name, of whatever type."""
        return self._look().list_groups()

    def describe(self, *groups: str) -> Mapping[str, GroupDescription]:
        """Return the description of each of these groups; one that does not exist is ``Dead``.

        Raises `Refused` where what a member sent is not Kafka's consumer protocol.
        """
        return self._look().describe_groups(groups)

    def snapshot(self, *groups: str, time_lag: bool = False) -> Snapshot:
        """Return the committed offsets of groups, live or not, with log start and end offsets.

        ``time_lag``: with the timestamp of each partition's oldest unread record. Raises `GroupNotFound`; `Refused` for
        a share group, and while a transaction with offsets is pending.
        """
        taken = take.take_snapshot(self._look(), groups, self._clock)
        return Snapshot(with_time_lag(self._look(), taken).snapshot if time_lag else taken)

    def rewind(
        self, snapshot: Snapshot, target: RewindTo, *, past_end: PastEnd = "end", strict: bool = False
    ) -> Snapshot:
        """Return these partitions set to a target; the rows claim no source group. Writes nothing.

        past_end: what a partition gets that has no record at or after the time. Raises `InvalidInput` where a partition
        stands for several groups; `Refused` where a topic is another one since, or with ``strict`` where the target
        can't be met exactly.
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
        """Return once a group has reached the log end offsets noted in ``until``, or those of now.

        Raises `Refused` when ``timeout`` seconds are over; `GroupNotFound`; `InvalidInput` where no end is noted.
        """
        noted = (until or self.snapshot(group)).table
        spans = watch.goals(noted, group).spans
        return watch.watch(self._look(), group, spans, self._clock, progress, timeout=timeout)

    # Write offsets of a snapshot

    def plan(self, snapshot: Snapshot, *, to_groups: Sequence[str] = (), options: WriteOptions | None = None) -> Plan:
        """Return what `apply` would write, with the verdict of every check. Writes nothing.

        Raises `UsageError` where the rows name no group and ``to_groups`` neither, or more than one.
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
        """Write offsets: planned, checked, planned again beside the write, read back by two clients, watched.

        A `PlannedWrite` is written exactly as it is, or refused as stale. ``receipt``: a file; the same call goes on
        from it. Returns None where this was done before and the target groups have started.

        Raises `Refused` where a check forbids the write: nothing was written; `PartlyApplied` where not every partition
        is confirmed, or the source group moved.
        """
        if isinstance(what, PlannedWrite):
            if to_groups or options:
                raise UsageError("a plan names its groups and options: make another plan")
            wanted = ApplyRequest(rows=what.rows.table, options=what.plan.options, approved=what.plan)
        else:
            wanted = _application(what, to_groups, options)
        with open_receipt(Path(receipt)) as file:
            execution = applying.apply(self._write(), wanted, file, self._clock, self._events)
            return _checked(execution, file)

    # Cut over

    def plan_migrate(
        self, split: Split | Path, *, run_dir: Path, options: WriteOptions | None = None
    ) -> PlannedWrite | None:
        """Return the provisional plan of `migrate`, None where this run is over. Writes nothing."""
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
        """Do the whole cut-over: plan, wait for the stop, read, write, read back by two clients, watch.

        Args:
            split: a `Split`, or a spec file.
            run_dir: a folder for what a review, a way back or a proof needs later; the same call goes on from it.
            options: None: those of the spec file, or the default ones.
            wait: seconds that the source group has to stop.
            hold: keep every other client out of the stopped group until the guard is over.
            approved: the file of the plan that was reviewed.

        Returns None where this was done before and the target groups have started. Raises as `apply`.
        """
        wanted = _migration(split, run_dir, options, wait=wait, hold=hold, approved=approved)
        outcome = migrate.migrate(self._write(), wanted, self._clock, self._events)
        if outcome is not None:
            outcome.check()
        return outcome

    # Undo

    def plan_rollback(self, receipt: Path) -> Plan:
        """Return what `rollback` would write. Writes nothing."""
        return self._plan_way_back(Verb.ROLLBACK, receipt)

    def rollback(self, receipt: Path) -> WriteResult | None:
        """Restore what was there before a write. ``receipt``: the file, or the run directory.

        Returns None where it was done before. Raises `Refused` where a target group has started or the record of the
        run forbids it; and as `apply`.
        """
        return self._go_back(Verb.ROLLBACK, receipt)

    def plan_hand_back(self, receipt: Path) -> Plan:
        """Return what `hand_back` would write. Writes nothing."""
        return self._plan_way_back(Verb.HAND_BACK, receipt)

    def hand_back(self, receipt: Path, *, wait: float = _WAIT) -> WriteResult | None:
        """Move the source group forward to where the target groups are, once all of them have stopped.

        ``wait``: seconds that they have for it. Returns None where it was done before. Raises as `rollback`.
        """
        return self._go_back(Verb.HAND_BACK, receipt, wait)

    def plan_delete_offsets(self, receipt: Path) -> Plan:
        """Return what `delete_offsets` would delete. Deletes nothing."""
        return self._plan_way_back(Verb.DELETE_OFFSETS, receipt)

    def delete_offsets(self, receipt: Path) -> WriteResult | None:
        """Delete the moved topics' offsets from the source group, so that its lag is true.

        Returns None where it was done before. Raises as `rollback`.
        """
        return self._go_back(Verb.DELETE_OFFSETS, receipt)

    def _plan_way_back(self, verb: Verb, receipt: Path) -> Plan:
        with open_receipt(receipt_in(Path(receipt)), read_only=True, must_exist=True) as file:
            return go_back.plan_way_back(self._look(), verb, file, self._clock)

    def _go_back(self, verb: Verb, receipt: Path, wait: float = 0.0) -> WriteResult | None:
        with open_receipt(receipt_in(Path(receipt)), must_exist=True) as file:
            return _checked(go_back.go_back(self._write(), verb, file, self._clock, self._events, wait=wait), file)

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


def _checked(execution: Execution | None, file: ReceiptFile) -> WriteResult | None:
    """Return what became of a write. Raises `PartlyApplied`."""
    if execution is None or file.path is None:
        return None
    outcome = result_of(execution, file)
    outcome.check()
    return outcome
