"""Make a plan of the offsets to write from a snapshot, and make the plan again right before the write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.survey import survey
from migrate_groups.migration.reading.take import Reading
from migrate_groups.model.topics import topic_ids
from migrate_groups.planning.change import Change
from migrate_groups.planning.checks.advice import FROM_FILE, Advice
from migrate_groups.planning.checks.run import run_checks
from migrate_groups.planning.checks.source import cluster
from migrate_groups.planning.decide import decide, with_an_offset
from migrate_groups.planning.drift import Reasons, drift
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check, Plan, Verdict
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.planning.survey import ClusterFacts, Survey
from migrate_groups.planning.wanted import wanted_rows
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, some


def make_plan(
    reader: GroupReader,
    snapshot: SnapshotTable,
    options: WriteOptions,
    receipt: Receipt = NOTHING_WRITTEN,
    advice: Advice = FROM_FILE,
) -> Plan:
    """Return the plan that writes the offsets of a snapshot to its groups, with the verdict of every check.

    - receipt: the record of the run so far.
    - advice: what the messages of checks tell the user to do.

    Raises `InvalidInput` if the snapshot has several rows for a partition of a group; `ClusterUnavailable`,
    `NotAuthorized` or `PendingCommits`.
    """
    wanted = wanted_rows(snapshot.at_one_moment().rows())
    reader = for_one_phase(reader)
    return _of_other_cluster(reader, wanted, options, advice) or _judged(
        wanted, survey(reader, wanted), options, receipt, advice
    )


def make_again(reader: GroupReader, snapshot: SnapshotTable, approved: Plan, advice: Advice = FROM_FILE) -> Plan:
    """Return an approved plan, made again from its snapshot and the current state of the cluster.

    Raises `Refused` if the plan is for another cluster, if another client has changed a committed offset, or if an
    offset to write is no longer in the log; `InvalidInput` if the snapshot has several rows for a partition of a group;
    `ClusterUnavailable`, `NotAuthorized` or `PendingCommits`.
    """
    wanted = wanted_rows(snapshot.at_one_moment().rows())
    reader = for_one_phase(reader)
    if (here := reader.cluster_id()) != approved.cluster_id:
        raise Refused(
            f"the plan is for cluster {approved.cluster_id}, this is {here}: check --bootstrap-server; "
            "nothing was written"
        )
    if (refused := _of_other_cluster(reader, wanted, approved.options, advice)) is not None:
        return refused
    facts = survey(reader, wanted)
    plan = _judged(wanted, facts, approved.options, NOTHING_WRITTEN, advice)
    _refuse_drifted(
        drift(approved, plan, wanted, facts, resuming=True),
        "the plan is stale: {} changed since it was made: {}; make a new plan",
    )
    return plan


def plan_at_the_write(
    reader: GroupReader,
    snapshot: SnapshotTable,
    shown: Plan,
    receipt: Receipt = NOTHING_WRITTEN,
    advice: Advice = FROM_FILE,
) -> Plan:
    """Return the plan that was ``shown`` to the user, made again right before the write.

    Called after the wait that `still_to_settle` returns.

    Raises `Refused` if a check forbids the write, if a committed offset has changed since the plan was shown, or if an
    offset to write is no longer in the log; `ClusterUnavailable`, `NotAuthorized` or `PendingCommits`.
    """
    wanted = wanted_rows(snapshot.at_one_moment().rows())
    facts = survey(for_one_phase(reader), wanted)
    plan = _judged(wanted, facts, shown.options, receipt, advice)
    refuse_forbidden(plan.refusals(at_the_write=True))
    _refuse_drifted(drift(shown, plan, wanted, facts), "{} changed since the plan was shown: {}; run the command again")
    return plan


def plan_of(
    reader: GroupReader,
    wanted: Sequence[Change],
    options: WriteOptions,
    receipt: Receipt = NOTHING_WRITTEN,
    cluster_facts: ClusterFacts | None = None,
    reading: Reading | None = None,
) -> Plan:
    """Return the plan that writes the wanted offsets to target groups, with the verdict of every check.

    - wanted: one item for each target group and partition.
    - cluster_facts: permissions, topics and offsets retention; None: read from the cluster.
    - reading: the source group's offsets and log ranges; None: read from the cluster.

    Raises `ClusterUnavailable`, `NotAuthorized` or `PendingCommits`.
    """
    facts = survey(for_one_phase(reader), wanted, cluster_facts, reading)
    return _judged(wanted, facts, options, receipt, FROM_FILE)


def _of_other_cluster(
    reader: GroupReader, wanted: Sequence[Change], options: WriteOptions, advice: Advice
) -> Plan | None:
    """Return a plan with only the check that refuses the cluster; None if the offsets may be of this cluster."""
    # Groups and topics of the same names are others there. So nothing else is read, and nothing else is judged.
    cluster_id = reader.cluster_id()
    check = cluster(wanted, cluster_id, advice)
    if check.verdict is not Verdict.REFUSE:
        return None
    return Plan(cluster_id=cluster_id, options=options, changes=(), checks=(check,))


def _judged(wanted: Sequence[Change], facts: Survey, options: WriteOptions, receipt: Receipt, advice: Advice) -> Plan:
    """Return the plan that writes the wanted offsets, with the verdict of every check on these facts of the cluster."""
    decisions = decide(wanted, facts, options)
    changes = with_an_offset(decisions)
    checks = run_checks(decisions, changes, facts, options, receipt, advice)
    ids = topic_ids(facts.topics)
    return Plan(cluster_id=facts.cluster_id, options=options, changes=changes, checks=checks, topic_ids=ids)


def _refuse_drifted(reasons: Reasons, message: str) -> None:
    if reasons:
        named = [f"{group} {topic}-{number} ({', '.join(why)})" for (group, topic, number), why in reasons.items()]
        raise Refused(message.format(counted(len(named), "partition"), some(named)) + "; nothing was written")


def refuse_forbidden(refusals: Sequence[Check]) -> None:
    """Raise `Refused` if there are checks that forbid the write, with the name and reason of each of them."""
    if refusals:
        raise Refused("; ".join(f"{check.name}: {check.reason}" for check in refusals) + "; nothing was written")


def still_to_settle(snapshot: SnapshotTable, settle: float, now: datetime) -> float:
    """Return how many seconds to wait before the write, until the snapshot of a source group is ``settle`` seconds old.

    The result is ``settle`` if the snapshot has no time, and 0 if no row has a source group.
    """
    ages = [
        0.0 if row.taken_at is None else (now - row.taken_at).total_seconds()
        for row in snapshot.rows()
        if row.source_group is not None
    ]
    # If the snapshot's time is in the future (another clock), its age is not known, so wait the full ``settle``.
    return min(settle, max(0.0, settle - min(ages, default=settle)))
