"""Run all checks of a write, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from migrate_groups.planning.change import Action, Change, Origin
from migrate_groups.planning.checks import offsets, source, target
from migrate_groups.planning.checks.advice import FROM_FILE, Advice
from migrate_groups.planning.checks.kind import kind
from migrate_groups.planning.checks.metadata import metadata
from migrate_groups.planning.checks.permission import hidden_topics, permission
from migrate_groups.planning.checks.retention import retention
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Check, Verdict
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.planning.survey import Survey


def written(changes: Iterable[Change]) -> Iterator[offsets.Offset]:
    """Yield each partition and offset that these changes set, without offsets that are in place already."""
    for change in changes:
        if change.after is not None and change.action is not Action.UNCHANGED:
            yield change.topic_partition, change.after


def run_checks(
    decisions: Sequence[Change],
    changes: Sequence[Change],
    survey: Survey,
    options: WriteOptions,
    receipt: Receipt = NOTHING_WRITTEN,
    advice: Advice = FROM_FILE,
) -> tuple[Check, ...]:
    """Run all checks of a write, and return their verdicts in the order in which they are shown.

    changes: the changes that follow from the decisions. receipt: the record of the run so far.
    """
    wanted = [each for each in decisions if each.origin is not Origin.ABSENT]
    topics = source.same_topics(wanted, survey, advice)
    stopped = source.stopped(wanted, survey, options, advice)
    not_moved = source.not_moved(wanted, survey, advice).depending_on(topics)
    # Offsets that are out of date are not judged further: another advice would contradict "take a new snapshot".
    outdated = (topics, not_moved)
    instead = advice.read_again if not_moved.verdict is Verdict.PENDING else ""
    return (
        source.cluster(wanted, survey.cluster_id, advice),
        source.hand_over(wanted, advice),
        topics,
        kind(wanted, survey, options),
        permission(wanted, survey),
        hidden_topics(wanted, survey),
        stopped,
        not_moved,
        source.vanished(wanted, survey, options, receipt, instead).depending_on(*outdated, stopped),
        target.writable(wanted, survey, options),
        target.existing_offsets(decisions, options, receipt).depending_on(*outdated),
        offsets.complete(decisions, survey, options, advice).depending_on(*outdated),
        offsets.in_range(decisions, written(changes), survey).depending_on(*outdated),
        *(each.depending_on(*outdated) for each in metadata(changes, survey)),
        retention(changes, survey),
        *target.second_client(survey, options),
    )
