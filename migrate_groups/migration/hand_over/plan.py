"""Plan a hand-over, on one cluster or to another one."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_groups.migration.hand_over.clusters import Clusters, Planned
from migrate_groups.migration.hand_over.knowledge import Knowledge
from migrate_groups.migration.reading.survey import EarlyGroups, survey
from migrate_groups.migration.reading.take import Reading
from migrate_groups.planning.change import Change
from migrate_groups.planning.checks.facts import HandOverFacts
from migrate_groups.planning.checks.registry import planned
from migrate_groups.planning.checks.rule import Scope


def plan_hand_over(
    clusters: Clusters,
    known: Knowledge,
    reading: Reading,
    wanted: Sequence[Change],
    earlier: Planned | None = None,
    targets: EarlyGroups | None = None,
) -> Planned:
    """Return the plan to write offsets to the target groups, with the verdict of every check. Reads only.

    - known, reading: what is known of the source group, from before its stop and as it was just read.
    - wanted: the partitions and offsets to hand over.
    - earlier: a plan from before the source group stopped, whose permissions, topic names and offsets retention are
      used again on one cluster.
    - targets: the target groups on one cluster, if they were just read.

    Raises `ClusterUnavailable`, `NotAuthorized` or `PendingCommits`.
    """
    if clusters.mirror is not None:
        from migrate_groups.migration.hand_over.two_clusters import plan_move

        return plan_move(clusters.target, clusters.mirror, known, reading, wanted, is_stopped=earlier is not None)
    now = survey(clusters.target, wanted, earlier.facts if earlier else None, reading, early=targets)
    facts = HandOverFacts(survey=now, options=known.options, receipt=known.receipt, decided=wanted)
    plan = planned(Scope.HAND_OVER, facts.decided_by(now))
    return Planned(plan=plan, changes=wanted, bounds=reading.bounds, facts=now.cluster_facts)
