"""All checks of a write, in the order in which people read them."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_groups.planning.checks import offsets, source, target
from migrate_groups.planning.checks.kind import kind
from migrate_groups.planning.checks.permission import hidden_topics, permission
from migrate_groups.planning.checks.retention import retention
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.plan import Change, Check
from migrate_groups.planning.receipt import NOTHING_WRITTEN, Receipt
from migrate_groups.planning.survey import Survey
from migrate_groups.snapshots.snapshot import Row


def run_checks(
    rows: Sequence[Row],
    changes: Sequence[Change],
    survey: Survey,
    options: WriteOptions,
    receipt: Receipt = NOTHING_WRITTEN,
) -> tuple[Check, ...]:
    """Return the verdict of every check on writing these rows; ``receipt`` is the record of the run so far."""
    return (
        source.cluster(rows, survey),
        source.hand_over(rows),
        source.same_topics(rows, survey),
        kind(rows, survey, options),
        permission(rows, survey),
        hidden_topics(rows, survey),
        source.stopped(rows, survey, options),
        source.not_moved(rows, survey),
        source.vanished(rows, survey, options, receipt),
        target.writable(rows, survey, options),
        target.existing_offsets(rows, changes, survey, options, receipt),
        offsets.complete(rows, survey, options),
        offsets.in_range(rows, changes, survey, options),
        retention(changes, survey),
    )
