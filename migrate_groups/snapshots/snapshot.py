"""The snapshot: a table of groups' committed offsets at one moment, with log start and log end offsets.

It has a row for every partition of every topic for which a group has a committed offset, an assignment or a
subscription.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import starmap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from migrate_groups import schema
from migrate_groups.errors import InvalidInput
from migrate_groups.snapshots.row import Row
from migrate_groups.text import counted, cut, named, one_line, some

_TYPES = {
    schema.Kind.NAME: pa.string(),
    schema.Kind.TOPIC: pa.string(),
    schema.Kind.TEXT: pa.string(),
    schema.Kind.INT32: pa.int32(),
    schema.Kind.INT64: pa.int64(),
    schema.Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}


def _field(column: schema.Column) -> pa.Field:
    never_null = column.required or column.kind is schema.Kind.TEXT
    return pa.field(column.name, _TYPES[column.kind], nullable=not never_null)


SCHEMA = pa.schema([_field(column) for column in schema.SNAPSHOT])
COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)
OLDEST_UNCONSUMED = _field(schema.OLDEST_UNCONSUMED)
_ORDER = [("group", "ascending"), ("topic", "ascending"), ("partition", "ascending"), ("taken_at", "ascending")]


@dataclass(frozen=True, eq=False, slots=True)
class SnapshotTable:
    """A snapshot of committed offsets as a table, sorted by group, topic, partition and ``taken_at``.

    The table has the columns of `SCHEMA`, and ``oldest_unconsumed_at`` if time lags were requested. With snapshots from
    several times, the table is called a history.
    """

    table: pa.Table  # not a list of rows, because a snapshot may have a million rows

    @staticmethod
    def of(table: pa.Table) -> SnapshotTable:
        """Return a table that has the columns of `SCHEMA` as a snapshot, with its rows sorted.

        Raises `InvalidInput` for duplicate rows (with the same cluster, time, groups and partition).
        """
        asked = OLDEST_UNCONSUMED.name in table.column_names
        fields = SCHEMA.append(OLDEST_UNCONSUMED) if asked else SCHEMA
        snapshot = SnapshotTable(table.select(fields.names).cast(fields).sort_by(_ORDER))
        snapshot._refuse_duplicates(
            ["cluster_id", "taken_at", "group", "source_group", "topic", "partition"],
            "several rows for {}: keep one row for each partition of a group",
        )
        return snapshot

    @staticmethod
    def of_rows(rows: Iterable[Row]) -> SnapshotTable:
        """Return a snapshot of these rows, sorted.

        Raises `InvalidInput` for duplicate rows (with the same cluster, time, groups and partition).
        """
        columns = list(zip(*map(astuple, rows), strict=True)) or [()] * len(Row.__struct_fields__)
        fields = SCHEMA.append(OLDEST_UNCONSUMED) if any(columns[-1]) else SCHEMA
        arrays = [_array(column, field.type) for column, field in zip(columns, fields, strict=False)]
        return SnapshotTable.of(pa.Table.from_arrays(arrays, schema=fields))

    def rows(self) -> Iterator[Row]:
        """Yield the rows in the table's order."""
        columns = [*map(_values, self.table.columns)]
        columns += [[None] * len(self)] * (len(Row.__struct_fields__) - len(columns))
        return starmap(Row, zip(*columns, strict=True))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return f"<SnapshotTable: {self.in_words()}>"

    def in_words(self) -> str:
        """Return how many rows the snapshot has and of which groups, such as ``6 rows of groups a, b``."""
        groups = [one_line(group) for group in self.groups() if group is not None]
        return f"{counted(len(self), 'row')} of {cut(named('group', groups), 200) if groups else 'no group'}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SnapshotTable) and bool(self.table.equals(other.table))

    __hash__ = None  # type: ignore[assignment]

    def groups(self) -> list[str | None]:
        """Return the groups in the snapshot, sorted. If rows have no group, the last element is None."""
        return sorted(self._distinct("group"), key=lambda group: (group is None, group or ""))

    def states(self) -> list[str | None]:
        """Return the states that the groups had when the snapshot was taken, each once; None: not known."""
        return self._distinct("group_state")

    def refuse_some_without_group(self) -> None:
        """Raise `InvalidInput` if some rows have a group and some have none."""
        groups = self.groups()
        if len(groups) > 1 and None in groups:
            raise InvalidInput("some rows have a group and some have none: select one group with filter --group first")

    def topics(self) -> list[str]:
        """Return the topics in the snapshot, sorted."""
        return sorted(self._distinct("topic"))

    def keep(self, wanted: Mapping[str, Iterable[Any]]) -> SnapshotTable:
        """Return the rows that have a wanted value in every column of ``wanted``.

        wanted: column name -> the values to keep, such as ``{"topic": ["orders"]}``.
        """
        table = self.table
        for column, values in wanted.items():
            table = table.filter(pc.is_in(table[column], value_set=pa.array(list(values), SCHEMA.field(column).type)))
        return SnapshotTable(table)

    def replace(self, **columns: pa.Array | pa.Scalar) -> SnapshotTable:
        """Return the snapshot with these columns replaced, and its rows sorted again.

        columns: an array with a value for each row, or one value for all rows. Raises `InvalidInput` for duplicate rows
        (with the same cluster, time, groups and partition).
        """
        table = self.table
        for name, values in columns.items():
            if isinstance(values, pa.Scalar):
                values = pa.repeat(values, table.num_rows)
            table = table.set_column(table.schema.get_field_index(name), SCHEMA.field(name), values)
        return SnapshotTable.of(table)

    def given_to(self, group: str, source_group: str | None, *, is_share: bool = False) -> SnapshotTable:
        """Return the snapshot with ``group`` and ``source_group`` set in all rows, and the type ``share`` if asked for.

        The rows must be of one group, with one row for each partition, because they are not sorted or checked for
        duplicates again.
        """
        table = self.table
        share = [("group_type", "share")] if is_share else []
        for name, value in (("group", group), ("source_group", source_group), *share):
            values = pa.repeat(pa.scalar(value, pa.string()), table.num_rows)
            table = table.set_column(table.schema.get_field_index(name), SCHEMA.field(name), values)
        return SnapshotTable(table)

    def with_oldest_unconsumed(self, moments: Iterable[datetime | None]) -> SnapshotTable:
        """Return the snapshot with the column ``oldest_unconsumed_at`` added.

        moments: for each row, the timestamp of the oldest unread record; None if no record is unread, or if not known.
        """
        return SnapshotTable(self.table.append_column(OLDEST_UNCONSUMED, pa.array(moments, OLDEST_UNCONSUMED.type)))

    def at_one_moment(self) -> SnapshotTable:
        """Return the snapshot unchanged, or raise `InvalidInput` if a partition of a group has several rows."""
        self._refuse_duplicates(
            ["group", "topic", "partition"],
            "rows of several moments, or of several source groups, for {}: keep the rows of one taken_at and of one "
            "source group",
        )
        return self

    def with_each_partition_once(self) -> SnapshotTable:
        """Return the snapshot unchanged, or raise `InvalidInput` if a partition has several rows.

        Rows of different groups count, too.
        """
        self.at_one_moment()
        partitions = self.table.group_by(["topic", "partition"], use_threads=False).aggregate([])
        if partitions.num_rows < len(self):
            raise InvalidInput(
                f"several groups have the same partitions: {some([group or '(none)' for group in self.groups()])}; "
                "select one group with filter --group first"
            )
        return self

    def _distinct(self, column: str) -> list[Any]:
        values: list[Any] = pc.unique(self.table[column]).to_pylist()
        return values

    def _refuse_duplicates(self, keys: list[str], complaint: str) -> None:
        # The rows are sorted, so that rows with equal keys are neighbours.
        if not self._has_equal_neighbours([name for name, _ in _ORDER if name in keys]):
            return
        counted = self.table.group_by(keys, use_threads=False).aggregate([([], "count_all")])
        if counted.num_rows == self.table.num_rows:
            return
        twice = counted.filter(pc.greater(counted["count_all"], 1)).slice(0, 5)
        names = [
            f"{topic}-{partition}" + ("" if group is None else f" of group {group!r}")
            for group, topic, partition in zip(
                twice["group"].to_pylist(), twice["topic"].to_pylist(), twice["partition"].to_pylist(), strict=True
            )
        ]
        raise InvalidInput(complaint.format(some(names)))

    def _has_equal_neighbours(self, names: list[str]) -> bool:
        """Return whether any two adjacent rows are equal in these columns."""
        agree = pa.scalar(len(self) > 1)
        for name in names:
            column = self.table[name].combine_chunks()
            one, next_one = column.slice(0, max(0, len(self) - 1)), column.slice(1)
            both_null = pc.and_(pc.is_null(one), pc.is_null(next_one))
            agree = pc.and_(agree, pc.or_(both_null, pc.fill_null(pc.equal(one, next_one), fill_value=False)))
        return bool(pc.any(agree).as_py())


def _array(column: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an Arrow array of the type ``kind``."""
    # Usually all values are the same. Then only one is converted, because that is faster.
    if column and column.count(column[0]) == len(column):
        return pa.repeat(pa.scalar(column[0], kind), len(column))
    return pa.array(column, kind)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as Python objects; None for null."""
    if not (pa.types.is_string(column.type) or pa.types.is_timestamp(column.type)):
        values: list[Any] = column.to_pylist()
        return values
    # Equal texts and equal timestamps become one object, because that is faster.
    encoded = column.combine_chunks().dictionary_encode()
    different = [*encoded.dictionary.to_pylist(), None]
    return [different[index] for index in encoded.indices.fill_null(len(different) - 1).to_pylist()]


def concatenate_by_group(snapshots: Sequence[SnapshotTable]) -> SnapshotTable:
    """Return all rows of these snapshots as one snapshot, sorted.

    Each of ``snapshots`` must have rows of one group only. Raises `InvalidInput` if snapshots of the same group have
    duplicate rows (with the same cluster, time, groups and partition).
    """
    tables = {snapshot.groups()[0]: snapshot.table for snapshot in snapshots if len(snapshot)}
    if len(tables) < sum(len(snapshot) > 0 for snapshot in snapshots):
        return concatenate(snapshots)
    # Snapshots of different groups are put in order, which is faster than sorting all rows.
    ordered = [tables[group] for group in sorted(tables, key=lambda group: (group is None, group or ""))]
    return SnapshotTable(pa.concat_tables(ordered)) if ordered else SnapshotTable.of_rows([])


def concatenate(snapshots: Iterable[SnapshotTable]) -> SnapshotTable:
    """Return all rows of these snapshots as one snapshot, sorted.

    Raises `InvalidInput` for duplicate rows (with the same cluster, time, groups and partition).
    """
    tables = [snapshot.table for snapshot in snapshots]
    return (
        SnapshotTable.of(pa.concat_tables(tables, promote_options="default")) if tables else SnapshotTable.of_rows([])
    )
