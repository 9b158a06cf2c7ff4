"""The columns of a snapshot, defined once: the types of CSV, Parquet, JSON and Spark are made from this.

Standard library only, since it goes to Spark's workers as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

MOST_INT32, MOST_INT64 = 2**31 - 1, 2**63 - 1


class Kind(StrEnum):
    """What the cells of a column hold. An empty cell is null, but in a `TEXT`, where it is the empty text."""

    NAME = "name"
    TOPIC = "topic"
    TEXT = "text"
    INT32 = "int32"
    INT64 = "int64"
    TIMESTAMP = "timestamp"
    """An instant in UTC, in microseconds."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a cell of a kind is written: a regular expression for all of it (empty: any text), and words for people."""

    pattern: str
    expected: str


FORMS: Mapping[Kind, Form] = {
    Kind.NAME: Form("", "a name"),
    Kind.TOPIC: Form("[a-zA-Z0-9._-]{1,249}", "a topic: letters, digits, '.', '_' and '-'"),
    Kind.TEXT: Form("", "any text"),
    # Plain digits: a spreadsheet's 1.2E+09 or 1,000 is refused.
    Kind.INT32: Form("[0-9]{1,19}", f"a whole number from 0 to {MOST_INT32}"),
    Kind.INT64: Form("[0-9]{1,19}", f"a whole number from 0 to {MOST_INT64}"),
    Kind.TIMESTAMP: Form(
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?Z",
        "a UTC time such as 2026-11-20T21:24:55.123456Z",
    ),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column. required: a CSV must have it, and no cell of it is null; a Parquet file has all columns."""

    name: str
    kind: Kind
    required: bool = False

    @property
    def form(self) -> Form:
        """How its cells are written."""
        return FORMS[self.kind]

    @property
    def nullable(self) -> bool:
        """Whether a cell may be null."""
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
"""The columns of a snapshot, in their order."""

OLDEST_UNCONSUMED = Column("oldest_unconsumed_at", Kind.TIMESTAMP)
"""A further, last column, of snapshots that were asked for it: the timestamp of the oldest record left to read."""

RESET = tuple(
    Column(column.name, column.kind, required=True)
    for column in SNAPSHOT
    if column.name in ("group", "topic", "partition", "offset")
)
"""The columns of a file of ``kafka-consumer-groups --from-file``, which has no header; ``group`` may be left out."""
REQUIRED = tuple(column.name for column in SNAPSHOT if column.required)
