"""Make a plan of the offsets to write from a snapshot, and make the plan again right before the write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from migrate_groups.errors import Refused
from migrate_groups.migration.ports import GroupReader
from migrate_groups.migration.reading.phase import for_one_phase
from migrate_groups.migration.reading.survey import survey, unread
from migrate_groups.planning.check import Check
from migrate_groups.planning.checks.facts import FROM_FILE, Advice, HandOverFacts
from migrate_groups.planning.checks.registry import is_wrong_cluster, planned, read_on
from migrate_groups.planning.checks.rule import Scope
from migrate_groups.planning.decide import wanted_rows
from migrate_groups.planning.drift import Reasons, drift
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Plan
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.schema import UNKNOWN_STATE
from migrate_groups.snapshots.snapshot import SnapshotTable
from migrate_groups.text import counted, some

_NOT_SEEN_RUNNING = (None, "Empty", UNKNOWN_STATE)


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

    Raises `InvalidInput` if the snapshot has several rows for a partition of a group.
    """
    reader = for_one_phase(reader)
    return planned(Scope.HAND_OVER, _read_facts(reader, _facts(reader, snapshot, options, receipt, advice)))


def make_again(reader: GroupReader, snapshot: SnapshotTable, approved: Plan, advice: Advice) -> Plan:
    """Return an approved plan, made again from its snapshot and the current state of the cluster.

    Raises `Refused` if the plan is for another cluster, if another client has changed a committed offset, or if an
    offset to write is no longer in the log; `InvalidInput` if the snapshot has several rows for a partition of a group.
    """
    reader = for_one_phase(reader)
    facts = _facts(reader, snapshot, approved.options, NOTHING_WRITTEN, advice)
    if (here := facts.survey.cluster_id) != approved.cluster_id:
        raise Refused(
            f"the plan is for cluster {approved.cluster_id}, this is {here}: check --bootstrap-server; "
            "nothing was written"
        )
    facts = _read_facts(reader, facts)
    plan = planned(Scope.HAND_OVER, facts)
    if is_wrong_cluster(Scope.HAND_OVER, facts):
        return plan
    _refuse_drifted(
        drift(approved, plan, facts.wanted, facts.survey, resuming=True),
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
    offset to write is no longer in the log.
    """
    reader = for_one_phase(reader)
    facts = _read_facts(reader, _facts(reader, snapshot, shown.options, receipt, advice))
    plan = planned(Scope.HAND_OVER, facts)
    refuse_forbidden(plan.refusals(at_the_write=True))
    _refuse_drifted(
        drift(shown, plan, facts.wanted, facts.survey), "{} changed since the plan was shown: {}; run the command again"
    )
    return plan


def _facts(
    reader: GroupReader, snapshot: SnapshotTable, options: WriteOptions, receipt: Receipt, advice: Advice
) -> HandOverFacts:
    """Return the facts of a hand-over of a snapshot before anything but the id of the cluster is read."""
    rows = [*snapshot.at_one_moment().rows()]
    ran = {each.source_group for each in rows if each.source_group and each.group_state not in _NOT_SEEN_RUNNING}
    return HandOverFacts(
        survey=unread(reader), options=options, receipt=receipt, decided=wanted_rows(rows), advice=advice, ran=ran
    )


def _read_facts(reader: GroupReader, facts: HandOverFacts) -> HandOverFacts:
    """Return the facts with what was read of the cluster, and what follows from it; unchanged on the wrong cluster."""
    return read_on(Scope.HAND_OVER, facts, lambda known: known.decided_by(survey(reader, known.decided)))


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
        if row.handed_over_by is not None
    ]
    # If the snapshot's time is in the future (another clock), its age is not known, so wait the full ``settle``.
    return min(settle, max(0.0, settle - min(ages, default=settle)))
