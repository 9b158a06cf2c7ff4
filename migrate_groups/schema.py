"""The columns of snapshot files, and of the tables that `reconcile` writes.

This module imports only the standard library.
"""

# Only the standard library is imported, because Spark's workers load this module too.
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

MOST_INT32, MOST_INT64 = 2**31 - 1, 2**63 - 1
MOST_TEXT = 2**15 - 1
"""The most bytes of a text in UTF-8, such as committed metadata, that Kafka's protocol can carry."""


class Kind(StrEnum):
    """The type of a column's cells. An empty cell is null, except in a `TEXT` column, where it is an empty text."""

    NAME = "name"
    TOPIC = "topic"
    TEXT = "text"
    INT32 = "int32"
    INT64 = "int64"
    TIMESTAMP = "timestamp"
    """An instant in UTC, in microseconds."""


@dataclass(frozen=True, slots=True)
class Form:
    """Which texts are valid in the cells of a column.

    - pattern: a regular expression for the whole cell. If it is empty, any text is valid.
    - expected: a description of the valid texts for error messages.
    """

    pattern: str
    expected: str


FORMS: Mapping[Kind, Form] = {
    Kind.NAME: Form("", "a name"),
    Kind.TOPIC: Form("[a-zA-Z0-9._-]{1,249}", "a topic: letters, digits, '.', '_' and '-'"),
    Kind.TEXT: Form("", f"a text of at most {MOST_TEXT:,} bytes"),
    # Only plain digits, so that 1.2E+09 or 1,000 from a spreadsheet is refused.
    Kind.INT32: Form("[0-9]{1,19}", f"a whole number from 0 to {MOST_INT32}"),
    Kind.INT64: Form("[0-9]{1,19}", f"a whole number from 0 to {MOST_INT64}"),
    Kind.TIMESTAMP: Form(
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?Z",
        "a UTC time such as 2026-11-20T21:24:55.123456Z",
    ),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a snapshot file, or of a table that `reconcile` writes.

    required: a snapshot file must have the column, and no cell of the column may be empty.
    """

    name: str
    kind: Kind
    required: bool = False

    @property
    def form(self) -> Form:
        """Which texts are valid in the column's cells, for instance in a CSV file."""
        return FORMS[self.kind]

    @property
    def nullable(self) -> bool:
        """Whether a cell of the column may be null."""
        return not self.required and self.kind is not Kind.TEXT


SNAPSHOT = (
    Column("cluster_id", Kind.NAME),
    Column("taken_at", Kind.TIMESTAMP),
    Column("group", Kind.NAME),
    Column("source_group", Kind.NAME),
    Column("group_state", Kind.NAME),
    Column("group_type", Kind.NAME),
    Column("topic", Kind.TOPIC, required=True),
    Column("topic_id", Kind.NAME),
    Column("partition", Kind.INT32, required=True),
    Column("offset", Kind.INT64),
    Column("leader_epoch", Kind.INT32),
    Column("metadata", Kind.TEXT),
    Column("log_start_offset", Kind.INT64),
    Column("log_end_offset", Kind.INT64),
)
"""The columns of a snapshot file, in the order of the file."""

UNKNOWN_STATE = "Unknown"
"""Kafka's name for the state of a group that is not known: ``group_state`` of rows from a copied log of
``__consumer_offsets``. It is not known whether the group had stopped, so it hands nothing over."""

OLDEST_UNCONSUMED = Column("oldest_unconsumed_at", Kind.TIMESTAMP)
"""An optional last column of a snapshot file: the timestamp of the oldest record that the group has not read."""

RESET = tuple(
    Column(column.name, column.kind, required=True)
    for column in SNAPSHOT
    if column.name in ("group", "topic", "partition", "offset")
)
"""The columns of a file for ``kafka-consumer-groups --reset-offsets --from-file``.

The file has no header. The column ``group`` may be missing."""
REQUIRED = tuple(column.name for column in SNAPSHOT if column.required)

_PLACE = (Column("cluster_id", Kind.NAME), Column("group", Kind.NAME))
_STATUSES = ("missing", "below_log_start", "behind", "unexpected", "ahead", "no_commit", "exact")


def _numbers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, Kind.INT64) for name in names)


PARTITION_VERDICT = (
    *_PLACE,
    Column("source_group", Kind.NAME),
    Column("topic", Kind.TOPIC),
    Column("partition", Kind.INT32),
    Column("status", Kind.NAME),
    *_numbers("before_offset", "after_offset", "before_log_start", "before_log_end", "after_log_start"),
    *_numbers("after_log_end", "lag_before", "lag_after", "produced", "consumed"),
    Column("reason", Kind.NAME),
)
"""The columns of the table ``partition_verdict`` of `reconcile`, without the time lags."""

GROUP_TOPIC_SUMMARY = (
    *_PLACE,
    Column("topic", Kind.TOPIC),
    Column("worst", Kind.NAME),
    *_numbers("partitions", *_STATUSES, "lag_before", "lag_after", "produced", "consumed"),
)
"""The columns of the table ``group_topic_summary`` of `reconcile`, without the time lags."""

LAG_TIMELINE = (
    *_PLACE,
    Column("topic", Kind.TOPIC),
    Column("taken_at", Kind.TIMESTAMP),
    Column("source_group", Kind.NAME),
    *_numbers("partitions", "committed", "lag", "produced", "consumed"),
)
"""The columns of the table ``lag_timeline`` of `reconcile`."""
