"""The class `Cluster` of the Python API: plan and write committed offsets, and undo a write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from migrate_groups.api.offsets_topic import LogCluster
from migrate_groups.api.operator import written_by
from migrate_groups.api.reading import Copies, ReadingCluster
from migrate_groups.api.requests import apply_request, migrate_request
from migrate_groups.api.snapshot import PlannedWrite, Snapshot, Split
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.arguments import checked_seconds, checked_timeout
from migrate_groups.clock import Clock
from migrate_groups.errors import Refused
from migrate_groups.files import kept_offsets_json
from migrate_groups.files.runs import receipt_json
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.files.runs.run_dir import receipt_in
from migrate_groups.files.split_toml import SplitFile
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.properties import load_properties
from migrate_groups.migration.clusters import Clusters, Mirror
from migrate_groups.migration.events import Events
from migrate_groups.migration.hand_over import apply as applying
from migrate_groups.migration.hand_over import fail_over as failing_over
from migrate_groups.migration.hand_over import migrate
from migrate_groups.migration.hand_over.prepared import MigrateRequest
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.run_status import RunStatus, run_status
from migrate_groups.migration.ways_back import go_back
from migrate_groups.migration.ways_back.move_back import move_back
from migrate_groups.migration.write_result import WriteResult, result_of
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.run_states import Verb

_WAIT = 600.0


def connect(
    bootstrap_servers: str = "",
    *,
    command_config: Path | None = None,
    properties: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    events: Events | None = None,
    clock: Clock | None = None,
    reference: str = "",
) -> Cluster:
    """Return a cluster. It connects when its first method is called.

    Args:
        bootstrap_servers: ``host:port[,host:port…]``. If empty, the property ``bootstrap.servers`` is used.
        command_config: the path of a client.properties file, as Kafka's own tools take it.
        properties: client properties by name, such as ``security.protocol``. They override those of the file.
        timeout: the time-out of a request in seconds, including its retries.
        events: callbacks that receive the progress and decide whether to write. If None, methods write without asking.
        clock: the clock to use. If None, the clock of this machine.
        reference: why offsets are written, such as the number of a change ticket. Receipts keep it, with user and host.

    Raises:
        UsageError: ``reference`` is too long or not one line; there is no bootstrap server, an address is not
        ``host:port``, or ``timeout`` is out of range. InvalidInput: a property can't be used, or the file can't be
        read. No message quotes a secret.
    """
    given = load_properties(Path(command_config)) if command_config is not None else {}
    told = understand(given | dict(properties or {}), bootstrap_servers)
    servers = bootstrap_servers or told.bootstrap_servers
    config = ClientConfig(
        bootstrap_servers=servers, timeout=checked_timeout("timeout", timeout), security=told.security
    )
    return Cluster(config, events or Events(), clock or SystemClock(), written_by(reference))


class Cluster(LogCluster):
    """A Kafka cluster. Its methods do what the ``migrate-groups`` commands of the same names do, with the same checks.

    `plan` and the methods whose names begin with ``plan_`` are dry runs: they write nothing. Close the cluster, or use
    it in a ``with`` block. Do not use it from several threads at once.

    Every method raises `ClusterUnavailable` if the cluster does not answer in time, and `NotAuthorized` if the login is
    refused or the principal lacks a permission.
    """

    # Write the offsets of a snapshot

    def plan(self, snapshot: Snapshot, *, to_groups: Sequence[str] = (), options: WriteOptions | None = None) -> Plan:
        """Return the plan of what `apply` would write, with the verdict of every check. Writes nothing.

        Args:
            to_groups: one target group for all rows, as a list. If empty, each row's ``group`` is its target group.
            options: the write options. If None, the defaults.

        Raises:
            UsageError: ``to_groups`` has several groups, or the group that the snapshot was taken from; or a row has no
                target group.
            InvalidInput: ``to_groups`` is empty and the snapshot would be written back to its own group, which only
                ``options.restore`` allows; or a target group would get several rows for one partition.
        """
        wanted = apply_request(snapshot, to_groups, options)
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

        The offsets are checked again right before the write, and read back afterwards. Then the source groups are
        watched for ``options.guard`` seconds.

        Args:
            what: a snapshot, or a plan made from a snapshot. A plan is refused if the groups have changed since.
            receipt: the file that records the write. The same call with this file resumes an interrupted run.
            to_groups: one target group for all rows, as a list. If empty, each row's ``group`` is its target group.
            options: the write options. If None, the defaults.

        Returns None if an earlier run wrote these offsets and a target group has started since.

        Raises:
            Refused: a check forbids the write. Nothing was written.
            PartlyApplied: an offset is not confirmed, or a source group still consumes.
            UsageError: ``to_groups`` has several groups, or the group that the snapshot was taken from; a row has no
                target group; or ``to_groups`` or ``options`` are given with a plan.
            InvalidInput: ``to_groups`` is empty and the snapshot would be written back to its own group, which only
                ``options.restore`` allows; or a target group would get several rows for one partition.
        """
        wanted = apply_request(what, to_groups, options)
        with open_receipt(Path(receipt), by=self._by) as file:
            execution = applying.apply(self._writing_clients(), wanted, file, self._clock, self._events)
            return _checked(result_of(execution, file) if execution else None)

    # Cut over

    def plan_migrate(
        self,
        split: Split | SplitFile | Path,
        *,
        run_dir: Path,
        to: Cluster | Copies | None = None,
        options: WriteOptions | None = None,
        app_principals: Sequence[str] = (),
    ) -> PlannedWrite | None:
        """Return what `migrate` would write if the source group stopped now. Writes nothing.

        Args:
            split: a `Split`, the path of a spec file, or an element of `whole_groups`.
            run_dir: the folder for the files of this migration. It need not exist.
            to: the cluster of the target groups, to which a mirror copies the topics. A `Copies` object also gives the
                names of the copied topics. None: the target groups are on the source group's cluster.
            options: the write options. If None, those of the spec file, or the defaults.
            app_principals: the principals of the new applications, each as ``User:NAME`` for all target groups, or as
                ``GROUP=User:NAME``. A check says whether ACLs let them read.

        Returns None if an earlier run handed over the offsets and a target group has started since.

        Raises:
            InvalidInput: the split is invalid, or does not cover the topics of the source group.
            GroupNotFound: the source group does not exist.
            Refused: the receipt in ``run_dir`` (the record of earlier runs) forbids the write.
            PartlyApplied: a target group has started after an earlier run, but the source group still consumes.
            UsageError: ``run_dir`` is of another migration.
        """
        target, mirror = self._written_to(to, writes=False)
        wanted = replace(migrate_request(split, run_dir, options, None, app_principals), mirror=mirror)
        prepared = migrate.plan_migration(target._reading_client(), wanted, self._clock, self._events)
        return PlannedWrite(prepared.plan, Snapshot.of_rows(prepared.rows())) if prepared else None

    def migrate(
        self,
        split: Split | SplitFile | Path,
        *,
        run_dir: Path,
        to: Cluster | Copies | None = None,
        options: WriteOptions | None = None,
        wait: float = _WAIT,
        hold: bool = False,
        approved: Path | None = None,
        app_principals: Sequence[str] = (),
    ) -> WriteResult | None:
        """Hand over the source group's committed offsets to the target groups, and return the outcome.

        The call waits until the source group has stopped, then checks and writes the offsets, and reads them back. Then
        it watches the source group for ``options.guard`` seconds.

        Args:
            split: a `Split`, the path of a spec file, or an element of `whole_groups`.
            run_dir: the folder for the files of this migration. The same call with this folder resumes an interrupted
                run.
            to: the cluster of the target groups, to which a mirror copies the topics. Each offset is translated to the
                matching offset in the copy. A `Copies` object also gives the names of the copied topics. None: the
                target groups are on the source group's cluster.
            options: the write options. If None, those of the spec file, or the defaults.
            wait: the most seconds to wait until the source group has stopped. Afterwards, the most seconds to wait for
                the mirror to deliver the last records.
            hold: keep other consumers out of the stopped source group until the watch is over. Then watch the group
                once more.
            approved: the file of a reviewed plan. The write is refused if the cluster, groups, partitions or options
                differ.
            app_principals: as in `plan_migrate`.

        Returns None if an earlier run handed over the offsets and a target group has started since.

        Raises:
            Refused: a check forbids the write, or the source group does not stop. Nothing was written.
            PartlyApplied: an offset is not confirmed, the source group still consumes, or the mirror has delivered
                records twice.
            InvalidInput: the split is invalid, or does not cover the topics of the source group.
            GroupNotFound: the source group does not exist.
            UsageError: ``run_dir`` is of another migration, or ``hold`` is used with ``to`` or with topics that stay.
        """
        target, mirror = self._written_to(to, writes=True)
        wanted = migrate_request(split, run_dir, options, approved, app_principals)
        wanted = replace(wanted, wait=checked_seconds("wait", wait), hold=hold, mirror=mirror, by=self._by)
        return _checked(migrate.migrate(target._writing_clients(), wanted, self._clock, self._events))

    def plan_fail_over(
        self, split: Split | SplitFile | Path, kept: Path, *, run_dir: Path, options: WriteOptions | None = None
    ) -> PlannedWrite | None:
        """Return what `fail_over` would write. Writes nothing. The arguments and errors are those of `fail_over`."""
        wanted = migrate_request(split, run_dir, options)
        prepared = failing_over.plan_fail_over(
            self._reading_client(), wanted, kept_offsets_json.load(Path(kept)), self._clock, self._events
        )
        return PlannedWrite(prepared.plan, Snapshot.of_rows(prepared.rows())) if prepared else None

    def fail_over(
        self, split: Split | SplitFile | Path, kept: Path, *, run_dir: Path, options: WriteOptions | None = None
    ) -> WriteResult | None:
        """Start target groups on this cluster at kept offsets, because the source group's cluster is lost.

        Args:
            split: as for `migrate`, with the names of the topics and of the source group on the lost cluster.
            kept: the file that ``migrate-groups compare -o`` wrote.
            run_dir: the folder for the files of this run.
            options: the write options. If None, those of the spec file, or the defaults.

        Returns None if an earlier call handed over the offsets and a target group has started since.

        Raises:
            Refused: a check forbids the write. Nothing was written.
            PartlyApplied: an offset is not confirmed.
            InvalidInput: the split or the file is invalid, or has no offset of the group.
            UsageError: ``run_dir`` is of another migration.
        """
        wanted = replace(migrate_request(split, run_dir, options), by=self._by)
        kept_offsets = kept_offsets_json.load(Path(kept))
        clients = self._writing_clients()
        return _checked(failing_over.fail_over(clients, wanted, kept_offsets, self._clock, self._events))

    def _written_to(self, to: Cluster | Copies | None, *, writes: bool) -> tuple[ReadingCluster, Mirror | None]:
        """Return the target groups' cluster, and the mirror that copies topics to it (None for this cluster).

        writes: commits to probe groups on this cluster must be possible.
        """
        if to is None:
            return self, None
        return to.cluster if isinstance(to, Copies) else to, self._mirror_to(to, writes=writes)

    # Undo

    def status(self, run: Path, *, to: Cluster | None = None) -> RunStatus:
        """Return what a run has done, what the brokers say now, and what each command may do next. Writes nothing.

        run: the file that records the writes, or the run directory of `migrate`. to: the cluster of the target
        groups, if they are on another cluster. Raises `InvalidInput` if the receipt can't be read, and `UsageError` if
        ``to`` is missing or not needed.
        """
        calls = {verb: f"{verb.value.replace('-', '_')}({str(run)!r})" for verb in Verb}
        calls[Verb.HAND_OVER] = "the same migrate or apply"
        with open_receipt(receipt_in(Path(run)), read_only=True, must_exist=True) as file:
            return run_status(self._readers(to), file, self._clock, calls)

    def plan_rollback(self, run: Path, *, to: Cluster | None = None) -> Plan:
        """Return the plan of what `rollback` would write and delete. Writes nothing.

        run: the file that records the write, or the run directory of `migrate`. to: as in `rollback`. Raises `Refused`
        if the receipt forbids the rollback; `InvalidInput` if the receipt can't be read.
        """
        return self._plan_way_back(Verb.ROLLBACK, run, to)

    def rollback(self, run: Path, *, to: Cluster | None = None) -> WriteResult | None:
        """Restore the committed offsets that the target groups had before a write, and return the outcome.

        run: the file that records the write, or the run directory of `migrate`. to: the cluster of the target groups,
        if they are on another cluster. If the source group's can't be reached, call this method of the target groups'
        cluster without ``to``: then the claims on the other one stay. Returns None if an earlier call has done
        everything.

        Raises `Refused` if a target group has started or the receipt forbids the rollback. Nothing was written then.
        Raises `PartlyApplied` if an offset could not be confirmed, or if a target group consumes after the write.
        """
        return self._go_back(Verb.ROLLBACK, run, to=to)

    def plan_hand_back(self, run: Path, *, to: Cluster | None = None) -> Plan:
        """Return the plan of `hand_back`, which moves the source group to the target groups' offsets. Writes nothing.

        run, to: as in `hand_back`. Raises `Refused` if the receipt forbids the hand-back, for instance because the
        hand-over was rolled back, or if it was completed before.
        """
        if to is None:
            return self._plan_way_back(Verb.HAND_BACK, run)
        wanted = self._move_back(run, to, writes=False)
        prepared = migrate.plan_migration(self._reading_client(), wanted, self._clock, self._events)
        if prepared is None:
            raise Refused(f"nothing to hand back: {run} is handed back already")
        return prepared.plan

    def hand_back(self, run: Path, *, to: Cluster | None = None, wait: float = _WAIT) -> WriteResult | None:
        """Move the source group to the target groups' committed offsets, once all these groups have stopped.

        run: the file that records the hand-over, or the run directory of `migrate`. to: the cluster of the target
        group, if it is another one. Its offsets in the mirror's copies are translated to the topics that were copied.
        wait: the most seconds to wait until the groups have stopped. Returns None if an earlier call has done
        everything.

        Raises `Refused` if the receipt or a check forbids the hand-back, or if a group does not stop. Nothing was
        written then. Raises `PartlyApplied` if an offset could not be confirmed, or if a target group still consumes.
        """
        seconds = checked_seconds("wait", wait)
        if to is None:
            return self._go_back(Verb.HAND_BACK, run, seconds)
        wanted = replace(self._move_back(run, to, writes=True), wait=seconds, by=self._by)
        return _checked(migrate.migrate(self._writing_clients(), wanted, self._clock, self._events))

    def _move_back(self, run: Path, to: Cluster, *, writes: bool) -> MigrateRequest:
        path = receipt_in(Path(run))
        return move_back(receipt_json.load(path), path.parent, to._mirror_to(self, writes=writes))

    def plan_delete_offsets(self, run: Path, *, to: Cluster | None = None) -> Plan:
        """Return the plan of `delete_offsets`, with the offsets that it would delete. Deletes nothing.

        run: the file that records the hand-over, or the run directory of `migrate`. to: the cluster of the target
        groups, if they are on another cluster. It is only read. Raises `Refused` if the receipt forbids the deletion,
        and `UsageError` if ``to`` is missing or not needed.
        """
        return self._plan_way_back(Verb.DELETE_OFFSETS, run, to)

    def delete_offsets(self, run: Path, *, to: Cluster | None = None) -> WriteResult | None:
        """Delete the source group's committed offsets of the topics that target groups took over.

        run: the file that records the hand-over, or the run directory of `migrate`. to: the cluster of the target
        groups, if they are on another cluster. It is only read. Returns None if an earlier call has done everything.

        Raises `Refused` if the receipt or a check forbids the deletion, and `UsageError` if ``to`` is missing or not
        needed. Nothing was deleted then. Raises `PartlyApplied` if a deletion could not be confirmed, or if the source
        group still consumes these topics.
        """
        return self._go_back(Verb.DELETE_OFFSETS, run, to=to)

    def _readers(self, to: Cluster | None) -> Clusters[GroupReader]:
        return Clusters(self._reading_client(), (to or self)._reading_client())

    def _plan_way_back(self, verb: Verb, run: Path, to: Cluster | None = None) -> Plan:
        with open_receipt(receipt_in(Path(run)), read_only=True, must_exist=True) as file:
            return go_back.plan_way_back(self._readers(to), verb, file, self._clock)

    def _go_back(self, verb: Verb, run: Path, wait: float = 0.0, *, to: Cluster | None = None) -> WriteResult | None:
        with open_receipt(receipt_in(Path(run)), must_exist=True, by=self._by) as file:
            clusters = Clusters(self._writing_clients(), (to or self)._writing_clients())
            execution = go_back.go_back(clusters, verb, file, self._clock, self._events, wait=wait)
            return _checked(result_of(execution, file) if execution else None)


def _checked(result: WriteResult | None) -> WriteResult | None:
    if result is not None:
        result.check()
    return result
