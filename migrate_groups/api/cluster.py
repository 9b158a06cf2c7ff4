"""Connect to a cluster, and read, plan, write and undo committed offsets from a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from migrate_groups.api.reading import Copies, ReadingCluster
from migrate_groups.api.requests import apply_request, migrate_request
from migrate_groups.api.snapshot import PlannedWrite, Snapshot, Split
from migrate_groups.api.system_clock import SystemClock
from migrate_groups.arguments import checked_seconds, checked_timeout
from migrate_groups.clock import Clock
from migrate_groups.files.runs.receipt_file import ReceiptFile, open_receipt
from migrate_groups.files.runs.run_dir import receipt_in
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.credentials.client_properties import understand
from migrate_groups.kafka.credentials.given import load_properties
from migrate_groups.migration.across.mirror import Mirror
from migrate_groups.migration.events import Events, Silent
from migrate_groups.migration.hand_over import apply as applying
from migrate_groups.migration.hand_over import migrate
from migrate_groups.migration.result import WriteResult, result_of
from migrate_groups.migration.ways_back import go_back
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
        UsageError: there is no bootstrap server, or one is not ``host:port``; or ``timeout`` is wrong.
        InvalidInput: a property can't be used, or the file can't be read. No message quotes a secret.
    """
    given = load_properties(Path(command_config)) if command_config is not None else {}
    told = understand(given | dict(properties or {}), bootstrap_servers)
    servers = bootstrap_servers or told.bootstrap_servers
    config = ClientConfig(
        bootstrap_servers=servers, timeout=checked_timeout("timeout", timeout), security=told.security
    )
    return Cluster(config, events or Silent(), clock or SystemClock())


class Cluster(ReadingCluster):
    """A Kafka cluster. Its methods do what the commands of the same names do, with the same checks.

    `plan` is the dry run of `apply`, `plan_migrate` that of `migrate`, and so on. Close the cluster, or use it in a
    ``with`` block. Do not use it from several threads at once.

    Methods that only read use a client that has no method that writes. Every method raises `ClusterUnavailable` if the
    cluster does not answer in time, and `NotAuthorized` if the login is refused or the principal lacks a permission.
    """

    def __init__(self, config: ClientConfig, events: Events, clock: Clock) -> None:
        super().__init__(config, clock)
        self._events = events

    # Write the offsets of a snapshot

    def plan(self, snapshot: Snapshot, *, to_groups: Sequence[str] = (), options: WriteOptions | None = None) -> Plan:
        """Return the plan of what `apply` would write, with the verdict of every check. Writes nothing.

        to_groups: the target group of all rows, as a list of one name; if empty, each row's ``group`` is its target
        group. options: None: the defaults.

        Raises `UsageError` if ``to_groups`` has several groups, or the group that the snapshot was taken from. Without
        ``to_groups``, raises `UsageError` if a row has no group, and `InvalidInput` if a row's group is still the one
        that the snapshot was taken from, unless ``options.restore`` allows this.
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

        The steps: plan, check, plan again right before the write, write, read back with kafka-python and
        confluent-kafka, watch the source groups for ``options.guard`` seconds.

        what: a snapshot, or a plan that was made from a snapshot. A plan is written exactly as it is, or refused if the
        groups have changed since. receipt: the file that records the write; the same call with it resumes an
        interrupted run. to_groups: the target group of all rows, as a list of one name; if empty, each row's ``group``
        is its target group. options: None: the defaults.

        Returns None if an earlier run wrote these offsets and a target group has started since. Raises `Refused` if a
        check forbids the write; nothing was written then. Raises `PartlyApplied` if not every partition is confirmed,
        or if a source group still consumes. Raises `UsageError` if ``to_groups`` or ``options`` are given with a plan,
        or if the target group of a row is missing or not allowed; `InvalidInput` if a snapshot would be written back to
        its own group without ``options.restore``.
        """
        wanted = apply_request(what, to_groups, options)
        with open_receipt(Path(receipt)) as file:
            execution = applying.apply(self._writing_clients(), wanted, file, self._clock, self._events)
            return _checked(result_of(execution, file) if execution else None)

    # Cut over

    def plan_migrate(
        self,
        split: Split | Path,
        *,
        run_dir: Path,
        to: Cluster | Copies | None = None,
        options: WriteOptions | None = None,
    ) -> PlannedWrite | None:
        """Return what `migrate` would write if the source group stopped now. Writes nothing.

        `migrate` makes the plan again once the source group has stopped. split: a `Split`, or the path of a spec file.
        run_dir: the run directory, which need not exist. to: the cluster of the target groups, if it is another one, to
        which a mirror copies the topics; or the `Copies` on it: that cluster, and the names of the copied topics. None:
        this cluster. options: None: those of the spec file, or the defaults.

        Returns None if an earlier run handed over and a target group has started since. Raises `InvalidInput` if the
        split is invalid or does not cover the topics of the source group; `GroupNotFound`; `Refused` if the receipt in
        ``run_dir`` forbids a hand-over; `UsageError` if this receipt is of another migration.
        """
        target, mirror = self._written_to(to)
        wanted = replace(migrate_request(split, run_dir, options), mirror=mirror)
        prepared = migrate.plan_migration(target._reading_client(), wanted, self._clock, self._events)
        return PlannedWrite(prepared.plan, Snapshot.of_rows(prepared.rows())) if prepared else None

    def migrate(
        self,
        split: Split | Path,
        *,
        run_dir: Path,
        to: Cluster | Copies | None = None,
        options: WriteOptions | None = None,
        wait: float = _WAIT,
        hold: bool = False,
        approved: Path | None = None,
    ) -> WriteResult | None:
        """Hand over the source group's committed offsets to the target groups, and return the outcome.

        The steps: plan, wait until the source group has stopped, plan again, write, read back with kafka-python and
        confluent-kafka, watch the source group for ``options.guard`` seconds.

        Args:
            split: a `Split`, or the path of a spec file.
            run_dir: the run directory. The same call with it resumes an interrupted run.
            to: the cluster of the target groups, to which a mirror copies the topics; or the `Copies` on it: that
                cluster, and the names of the copied topics. Each offset is translated to the offset in the copy at
                which a group skips no record and reads none again. None: this cluster.
            options: None: those of the spec file, or the defaults.
            wait: seconds within which the source group must stop, and then the mirror must deliver the last records.
            hold: keep every other client out of the stopped source group until the watch after the write is over. Then
                watch the group for another ``options.guard`` seconds.
            approved: the file of a plan that was reviewed. The write is refused if cluster, groups, partitions or
                options differ from it.

        Returns None if an earlier run handed over and a target group has started since. Raises `Refused` if a check
        forbids the write or the source group does not stop; nothing was written then. Raises `PartlyApplied` if not
        every partition is confirmed, if the source group still consumes, or if the mirror has delivered records again.
        Raises `InvalidInput` if the split is invalid or does not cover the topics of the source group; `GroupNotFound`;
        `UsageError` if ``run_dir`` has the receipt of another migration.
        """
        target, mirror = self._written_to(to)
        wanted = migrate_request(split, run_dir, options, approved)
        wanted = replace(wanted, wait=checked_seconds("wait", wait), hold=hold, mirror=mirror)
        return _checked(migrate.migrate(target._writing_clients(), wanted, self._clock, self._events))

    def _written_to(self, to: Cluster | Copies | None) -> tuple[ReadingCluster, Mirror | None]:
        """Return the target groups' cluster, and the mirror that copies to it; no mirror if it is this cluster."""
        if to is None:
            return self, None
        return to.cluster if isinstance(to, Copies) else to, self._mirror_to(to)

    # Undo

    def plan_rollback(self, receipt: Path) -> Plan:
        """Return the plan of what `rollback` would write and delete. Writes nothing.

        receipt: the path of the receipt, or of its run directory. Raises `Refused` if the receipt forbids the rollback.
        """
        return self._plan_way_back(Verb.ROLLBACK, receipt)

    def rollback(self, receipt: Path) -> WriteResult | None:
        """Restore the committed offsets that the target groups had before a write, and return the outcome.

        receipt: the path of the receipt, or of its run directory. Returns None if an earlier call completed the
        rollback. But if that call could not check afterwards whether a target group consumes, this is checked now, and
        the outcome is returned. Raises `Refused` if a target group has started or the receipt forbids the rollback;
        nothing was written then. Raises `PartlyApplied` if not every partition is confirmed, or if a target group
        consumes after the write.
        """
        return self._go_back(Verb.ROLLBACK, receipt)

    def plan_hand_back(self, receipt: Path) -> Plan:
        """Return the plan that moves the source group forward to the target groups' committed offsets. Writes nothing.

        `hand_back` would write this plan. receipt: the path of the receipt, or of its run directory. Raises `Refused`
        if the receipt forbids a hand-back, for instance because the run was rolled back.
        """
        return self._plan_way_back(Verb.HAND_BACK, receipt)

    def hand_back(self, receipt: Path, *, wait: float = _WAIT) -> WriteResult | None:
        """Move the source group forward to the committed offsets of the target groups, once all of them have stopped.

        receipt: the path of the receipt, or of its run directory. wait: seconds within which the target groups and the
        source group must stop. Returns None if an earlier call completed the hand-back. But if that call could not
        check afterwards whether a target group consumes, this is checked now, and the outcome is returned. Raises
        `Refused` if the receipt or a check forbids the hand-back, or if a group does not stop; nothing was written
        then. Raises `PartlyApplied` if not every partition is confirmed, or if a target group still consumes.
        """
        return self._go_back(Verb.HAND_BACK, receipt, checked_seconds("wait", wait))

    def plan_delete_offsets(self, receipt: Path, *, to: Cluster | None = None) -> Plan:
        """Return the plan to delete the source group's committed offsets of the moved topics. Deletes nothing.

        receipt: the path of the receipt, or of its run directory. to: the cluster of the target groups, if it is
        another one; it is only read. Raises `Refused` if the receipt forbids the deletion; `UsageError` if ``to`` is
        missing or not needed.
        """
        return self._plan_way_back(Verb.DELETE_OFFSETS, receipt, to)

    def delete_offsets(self, receipt: Path, *, to: Cluster | None = None) -> WriteResult | None:
        """Delete the source group's committed offsets of the moved topics, so that its lag no longer counts them.

        receipt: the path of the receipt, or of its run directory. to: the cluster of the target groups, if it is
        another one; it is only read. Returns None if an earlier call completed the deletion. But if that call could not
        check afterwards whether the source group consumes these topics, this is checked now, and the outcome is
        returned. Raises `Refused` if the receipt or a check forbids the deletion, and `UsageError` if ``to`` is missing
        or not needed; nothing was deleted then. Raises `PartlyApplied` if not every partition is confirmed, or if the
        source group consumes these topics.
        """
        return self._go_back(Verb.DELETE_OFFSETS, receipt, to=to)

    def _plan_way_back(self, verb: Verb, receipt: Path, to: Cluster | None = None) -> Plan:
        with open_receipt(receipt_in(Path(receipt)), read_only=True, must_exist=True) as file:
            elsewhere = to._reading_client() if to else None
            return go_back.plan_way_back(self._reading_client(), verb, file, self._clock, elsewhere)

    def _go_back(
        self, verb: Verb, receipt: Path, wait: float = 0.0, *, to: Cluster | None = None
    ) -> WriteResult | None:
        with open_receipt(receipt_in(Path(receipt)), must_exist=True) as file:
            clients = self._writing_clients()._replace(elsewhere=to._reading_client() if to else None)
            execution = go_back.go_back(clients, verb, file, self._clock, self._events, wait=wait)
            return _checked(result_of(execution, file) if execution else None)


def _checked(result: WriteResult | None) -> WriteResult | None:
    if result is not None:
        result.check()
    return result
