"""The columns of a snapshot of committed offsets (CSV or Parquet), and the valid values of each column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from migrate_groups import schema
from migrate_groups.errors import InvalidInput
from migrate_groups.files.rules import rule
from migrate_groups.snapshots.snapshot import COLUMNS
from migrate_groups.text import named

RULES = {column.name: rule(column) for column in (*schema.SNAPSHOT, schema.OLDEST_UNCONSUMED)}


def check_names(present: Sequence[str], required: Collection[str], where: str) -> None:
    """Raise `InvalidInput` if a column of a snapshot file is unknown, missing or repeated.

    present: the column names of the file. where: the beginning of the error message, such as ``a.csv, line 1``.
    """
    unknown = [column for column in present if column not in RULES]
    missing = [column for column in required if column not in present]
    twice = [column for column, count in Counter(present).items() if count > 1]
    for complaint, names in (("unknown", unknown), ("missing", missing), ("repeated", twice)):
        if names:
            raise InvalidInput(f"{where}: {named(f'{complaint} column', names)}; expected {','.join(COLUMNS)}")
