"""What the columns of a snapshot file hold, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from migrate_groups.errors import InvalidInput
from migrate_groups.files import rules
from migrate_groups.snapshots.snapshot import COLUMNS, OLDEST_UNCONSUMED
from migrate_groups.text import some

FORMATS = {
    "cluster_id": rules.name(nullable=True),
    "taken_at": rules.timestamp(nullable=True),
    "group": rules.name(nullable=True),
    "source_group": rules.name(nullable=True),
    "group_state": rules.name(nullable=True),
    "group_type": rules.name(nullable=True),
    "topic": rules.topic(),
    "topic_id": rules.name(nullable=True),
    "partition": rules.number(bits=32, nullable=False),
    "offset": rules.number(bits=64, nullable=True),
    "leader_epoch": rules.number(bits=32, nullable=True),
    "metadata": rules.free_text(),
    "log_start_offset": rules.number(bits=64, nullable=True),
    "log_end_offset": rules.number(bits=64, nullable=True),
    OLDEST_UNCONSUMED.name: rules.timestamp(nullable=True),
}


def check_names(present: Sequence[str], required: Collection[str], where: str) -> None:
    """Raise `InvalidInput`, beginning with ``where``, for a column that is unknown, missing or there twice."""
    unknown = [column for column in present if column not in FORMATS]
    missing = [column for column in required if column not in present]
    twice = {column for column in present if present.count(column) > 1}
    for complaint, names in (("unknown", unknown), ("missing", missing), ("twice there:", twice)):
        if names:
            raise InvalidInput(f"{where}: {complaint} column {some(names)}; expected {','.join(COLUMNS)}")
