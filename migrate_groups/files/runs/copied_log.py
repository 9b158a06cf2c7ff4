"""Raw records of ``__consumer_offsets``, copied to Parquet files in a folder for later analysis.

Each copy adds files. The next copy continues after the last file, also if a copy was interrupted. `save_log_ends`
writes another file for the same analysis: log end offsets at several times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from migrate_groups.errors import InvalidInput
from migrate_groups.files.lock import locked
from migrate_groups.files.parquet import table_of, write_table
from migrate_groups.files.safe_write import write_whole
from migrate_groups.model.offsets_topic import OFFSETS_TOPIC
from migrate_groups.planning import typed_json
from migrate_groups.text import named

if TYPE_CHECKING:
    from migrate_groups.spark.offsets_topic.offsets_log import CopiedFiles

SCHEMA = pa.schema(
    [
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("log_time", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("producer_id", pa.int64()),
    ]
)
"""The columns: the partition and offset of a record in the offsets topic, the time when it was written, its kind
(``record``, ``control`` or ``aborted``), the bytes of its key and value, and the producer id of its transaction."""

LOG_ENDS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("taken_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("log_end_offset", pa.int64()),
    ]
)
"""The columns: the log end offset of a partition at the time ``taken_at``; null if it is not known. The Spark job of
`history` reads them (`spark.offsets_topic.commits_over_time.LOG_ENDS`)."""

_METADATA = b"migrate-groups"
_VERSION = 1
"""The version of the format. A later one adds columns or values that a reader may not ignore."""
_LOG_ENDS_AT_ONCE = 100_000


class _Version(msgspec.Struct, frozen=True):
    version: int


class _State(_Version, frozen=True, kw_only=True):
    """The metadata of a file: the copied log as of this file, and the offsets at which the file begins."""

    cluster_id: str
    starts: Mapping[int, int]
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    consistent: Mapping[int, Sequence[tuple[int, int]]]
    topic_id: str | None
    held_back: Mapping[int, int]
    copied_at: datetime | None
    followers: Mapping[int, int]


_AS_THEY_ARE = [name for name in _State.__struct_fields__ if name not in ("version", "begins")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedLog:
    """The records of one cluster's ``__consumer_offsets`` that have been copied to files in a folder.

    starts: by partition number, the offset from which on records are copied. ends: by partition number, the first
    offset that is not copied yet. consistent: by partition number, ranges of offsets in which, if a record is there,
    compaction had removed no later record of the same key. topic_id: of ``__consumer_offsets``; None: not known.
    files: the number of files in the folder. held_back: for the partitions that have just been copied up to the log
    end, the number of offsets that can't be read because of an open transaction. copied_at: when their log end offsets
    were read; None: not known. followers: the partitions among these that were read from a follower, which may lack the
    last records; with the follower's broker.
    """

    folder: Path
    cluster_id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    consistent: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    topic_id: str | None = None
    files: int = 0
    held_back: Mapping[int, int] = field(default_factory=dict)
    copied_at: datetime | None = None
    followers: Mapping[int, int] = field(default_factory=dict)

    @property
    def for_spark(self) -> CopiedFiles:
        """The copied log as input for Spark jobs."""
        from migrate_groups.spark.offsets_topic.offsets_log import CopiedFiles

        consistent = [(number, *each) for number, ranges in self.consistent.items() for each in ranges]
        return CopiedFiles(
            str(self.folder), self.ranges, self.cluster_id, consistent, self.copied_at, [*self.followers]
        )

    @property
    def ranges(self) -> list[tuple[int, int, int, int]]:
        """For each partition of ``held_back``: its number, its start, its end, and the offsets that are held back."""
        # Spark reads these tuples as `spark.offsets_topic.evidence.Range`.
        return [(number, self.starts[number], self.ends[number], held) for number, held in self.held_back.items()]

    @property
    def offsets(self) -> int:
        """The number of copied offsets in the partitions of ``held_back``. The number of records may be lower."""
        return sum(end - start for _, start, end, _ in self.ranges)

    @staticmethod
    @contextmanager
    def locked(folder: Path) -> Iterator[None]:
        """Lock the folder of a copied log while records are added to it. A missing folder is made.

        Raises `Refused` if another process copies to the folder; `InvalidInput` if the folder can't be used.
        """
        _make(folder)
        with locked(folder):
            yield

    @staticmethod
    def load_with_starts(folder: Path, cluster_id: str, starts: Mapping[int, int]) -> CopiedLog:
        """Return the copy of ``__consumer_offsets`` in a folder, with the partitions of ``starts`` added.

        starts: by partition number, the first offset to copy. A missing folder is made. Raises `InvalidInput` if the
        folder can't be used, has a copy from another cluster or from another start offset, or has a Parquet file of
        something else.
        """
        found = CopiedLog.load(folder, cluster_id)
        for number, start in starts.items():
            if found.starts.get(number, start) != start:
                raise InvalidInput(f"{folder} holds the log of another cut-over: name another folder with --log")
        return found.with_partitions(starts)

    @staticmethod
    def read(folder: Path) -> CopiedLog:
        """Return the copy of ``__consumer_offsets`` in a folder, with the partitions that the last run copied.

        Raises `InvalidInput` as `load`, and if the folder has no copy, or if the last copy was interrupted.
        """
        described = _all_described(folder) if folder.is_dir() else []
        if not described or not described[-1].held_back:
            raise InvalidInput(f"{folder} has no complete copy of {OFFSETS_TOPIC}: run history with this --log")
        _refuse_others(described, described[-1].cluster_id)
        return described[-1]

    @staticmethod
    def load(folder: Path, cluster_id: str, topic_id: str | None = None) -> CopiedLog:
        """Return the copy of a cluster's ``__consumer_offsets`` in a folder.

        topic_id: of ``__consumer_offsets``; None: not known. A missing folder is made. Raises `InvalidInput` if the
        folder can't be used, lacks a file, has a copy from another cluster or of a topic that was created again since,
        or has a Parquet file that is damaged or of something else.
        """
        _make(folder)
        described = _all_described(folder)
        if not described:
            return CopiedLog(folder=folder, cluster_id=cluster_id, starts={}, ends={}, topic_id=topic_id)
        _refuse_others(described, cluster_id)
        found = described[-1]
        if topic_id and found.topic_id not in (None, topic_id):
            raise InvalidInput(
                f"{folder} holds the log of a {OFFSETS_TOPIC} that was deleted since: name another folder with --log"
            )
        return replace(found, files=found.files + 1, held_back={}, copied_at=None, followers={})

    def with_partitions(self, starts: Mapping[int, int]) -> CopiedLog:
        """Return this copy of ``__consumer_offsets`` with the partitions of ``starts`` added, still without records.

        starts: by partition number, the first offset to copy; ignored for partitions that the copy already has.
        """
        return replace(self, starts={**starts, **self.starts}, ends={**starts, **self.ends})

    def with_consistent(self, ranges: Mapping[int, tuple[int, int]], whole: Collection[int]) -> CopiedLog:
        """Return the copied log with more ranges that are `consistent`, for the next file.

        ranges: by partition number, the first offset and the end. whole: partitions that lack no offset of theirs.
        """
        grown = {number: [*known] for number, known in self.consistent.items()}
        for number, (first, end) in ranges.items():
            known = grown.setdefault(number, [])
            # Nothing can be missing in a range without a hole, so it makes the range before it longer.
            if number in whole and known and known[-1][1] == first:
                first = known.pop()[0]
            known.append((first, end))
        return replace(self, consistent=grown)

    def with_records(self, rows: Iterable[tuple[object, ...]], ends: Mapping[int, int]) -> CopiedLog:
        """Write records to one more file, and return the copied log with that file.

        rows: the records, as tuples with the columns of `SCHEMA`. ends: by partition number, the offset at which the
        next copy continues. Raises `InvalidInput` if the file can't be written.
        """
        grown = replace(self, ends={**self.ends, **ends}, files=self.files + 1)
        # In the same file as the records, so that both are always written together.
        state = _State(version=_VERSION, begins=self.ends, **{name: getattr(grown, name) for name in _AS_THEY_ARE})
        table = table_of(rows, SCHEMA.with_metadata({_METADATA: msgspec.json.encode(state)}))
        write_whole(self.folder / f"{self.files:06}.parquet", lambda file: write_table(table, file))
        return grown


def save_log_ends(rows: Iterable[tuple[str, int, datetime, int | None]], path: Path) -> None:
    """Write log end offsets, with the time of each, to a Parquet file.

    rows: topic, partition number, time, and the log end offset at that time or None if it is not known.
    """
    remaining = iter(rows)
    with pq.ParquetWriter(path, LOG_ENDS, write_page_checksum=True) as writer:
        # 100,000 rows at a time, so that memory does not grow with their number.
        while piece := list(islice(remaining, _LOG_ENDS_AT_ONCE)):
            writer.write_table(table_of(piece, LOG_ENDS))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder} can't be used: {error.strerror or error}") from error


def _all_described(folder: Path) -> list[CopiedLog]:
    """Return the copied log as each file of a folder describes it, in the order of the files."""
    try:
        files = sorted(folder.glob("*.parquet"))
    except OSError as error:
        raise InvalidInput(f"{folder} can't be used: {error.strerror or error}") from error
    read = [*map(_described, files)]
    described = [each for each, _ in read]
    # A hole that a lost file leaves would look like records that were compacted away.
    if lost := sorted({*range(len(described) and described[-1].files)} - {each.files for each in described}):
        raise InvalidInput(f"{folder} lacks {lost[0]:06}.parquet: restore it, or name another folder with --log")
    # Files of two copies would hold records twice, or none of some offsets.
    before: Mapping[int, int] = {}
    for each, begins in read:
        if not before.items() <= begins.items() or (not before and begins != each.starts):
            raise InvalidInput(
                f"{folder}/{each.files:06}.parquet does not continue the file before it: restore the files of one "
                "copy, or name another folder with --log"
            )
        before = each.ends
    return described


def _refuse_others(described: Iterable[CopiedLog], cluster_id: str) -> None:
    if others := {(each.folder, each.cluster_id) for each in described if each.cluster_id != cluster_id}:
        folder, names = next(iter(others))[0], {name for _, name in others}
        raise InvalidInput(f"{folder} holds the log of {named('cluster', names)}: name another folder with --log")


def _described(path: Path) -> tuple[CopiedLog, Mapping[int, int]]:
    """Return the copied log as a file describes it, and by partition number the offset at which the file begins."""
    try:
        schema = pq.read_schema(path)
        metadata = (schema.metadata or {})[_METADATA]
        if (version := typed_json.decode(metadata, _Version).version) > _VERSION:
            raise InvalidInput(
                f"{path} has format version {version}, but this version of migrate-groups reads {_VERSION}: "
                "install the version that wrote the file, or name another folder with --log"
            )
        state = typed_json.decode(metadata, _State)
        kept = {name: getattr(state, name) for name in _AS_THEY_ARE}
        found = CopiedLog(folder=path.parent, files=int(path.stem), **kept)
    except (pa.ArrowException, msgspec.MsgspecError, OSError, ValueError, KeyError, RecursionError) as error:
        raise InvalidInput(f"{path} is damaged, or not a copied log: name another folder with --log") from error
    if lacking := [name for name in SCHEMA.names if name not in schema.names]:
        raise InvalidInput(f"{path} lacks {named('column', lacking)}: name another folder with --log")
    return found, state.begins
