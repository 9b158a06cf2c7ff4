"""Run all checks of a hand-over to another cluster, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrate_groups.planning.change import Change, Origin
from migrate_groups.planning.checks import mirror, offsets, source, target
from migrate_groups.planning.checks.advice import Advice
from migrate_groups.planning.checks.kind import kind
from migrate_groups.planning.checks.metadata import metadata
from migrate_groups.planning.checks.permission import hidden_topics, permission, source_permission
from migrate_groups.planning.checks.retention import retention
from migrate_groups.planning.checks.run import written
from migrate_groups.planning.decide import with_an_offset
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.survey import Survey
from migrate_groups.planning.translation import Translation

_ADVICE = Advice(read_again="run the same command again")


def checks_of_source(
    decisions: Sequence[Change], survey: Survey, options: WriteOptions, receipt: Receipt
) -> tuple[Check, ...]:
    """Return the checks of a source group whose offsets are translated to another cluster.

    decisions: the offsets to translate, with the source group in place of the target groups. survey: facts of the
    source cluster, with committed offsets that were read after the translation.
    """
    wanted = [each for each in decisions if each.origin is not Origin.ABSENT]
    starts = [(each.topic_partition, each.after) for each in decisions if each.after is not None]
    topics = source.same_topics(wanted, survey, _ADVICE)
    return (
        source.hand_over(wanted, _ADVICE),
        topics,
        kind(wanted, survey, options),
        source_permission(wanted, survey),
        hidden_topics(wanted, survey),
        source.stopped(wanted, survey, options, _ADVICE),
        source.not_moved(wanted, survey, _ADVICE).depending_on(topics),
        source.vanished(wanted, survey, options, receipt).depending_on(topics),
        offsets.complete(decisions, survey, options, _ADVICE).depending_on(topics),
        offsets.in_range(decisions, starts, survey).depending_on(topics),
    )


def checks_of_mirror(
    translation: Translation, here: Survey, there: Survey, options: WriteOptions, *, is_stopped: bool
) -> tuple[Check, ...]:
    """Return the checks of the mirror, and of the offsets that were translated to its copies.

    here, there: the facts of the source cluster and of the target cluster. is_stopped: whether the plan was made after
    the stop of the source group; then it does not matter how far the mirror is behind.
    """
    return (
        Check.passed("cluster", f"from cluster {here.cluster_id} to cluster {there.cluster_id}"),
        mirror.translated_offsets(translation, options),
        mirror.delivered(translation),
        mirror.partitions(translation, here.topics, there.topics),
        *(() if is_stopped else mirror.lag(translation)),
    )


def checks_of_target(
    decisions: Sequence[Change], survey: Survey, options: WriteOptions, receipt: Receipt
) -> tuple[Check, ...]:
    """Return the checks of the target groups, on the target cluster.

    The name of a check that is also made of the source group begins with ``target``. receipt: the record of the run so
    far.
    """
    wanted, changes = decisions, with_an_offset(decisions)
    return (
        _of_target(kind(wanted, survey, options)),
        _of_target(permission(wanted, survey)),
        target.writable(wanted, survey, options),
        target.existing_offsets(decisions, options, receipt),
        mirror.synchronised(decisions),
        _of_target(offsets.in_range(decisions, written(changes), survey)),
        *metadata(changes, survey),
        retention(changes, survey),
        *target.second_client(survey, options),
    )


def _of_target(check: Check) -> Check:
    return replace(check, name=f"target {check.name}")
