"""The landed log: raw records of ``__consumer_offsets``, copied to Parquet files in a folder. Later runs add files.

The metadata of each file says for each partition from which offset and up to which offset the log has been copied so
far. No other file says this, so it can't disagree with the records. After a run was killed, the next run resumes after
the last file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from migrate_groups.errors import InvalidInput
from migrate_groups.files.parquet import write_table
from migrate_groups.files.safe_write import write_whole

SCHEMA = pa.schema(
    [
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("log_time", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)
"""The columns: the partition and offset of a record in the offsets topic, the time when it was written, its kind
(``record``, ``control`` or ``aborted``), and the bytes of its key and value."""

_METADATA = b"migrate-groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedLog:
    """The landed log in a folder: the copied part of one cluster's ``__consumer_offsets``.

    starts, ends: by partition, the first offset of the copied part, and the first offset after it. files: how many
    files the log has.
    """

    folder: Path
    cluster_id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    files: int = 0

    @staticmethod
    def opened(folder: Path, cluster_id: str, starts: Mapping[int, int]) -> LandedLog:
        """Return the landed log in a folder, with these partitions and their start offsets added.

        Makes the folder if it does not exist. Raises `InvalidInput` if the log has one of the partitions with another
        start offset, and in the cases of `kept`.
        """
        found = LandedLog.kept(folder, cluster_id)
        for number, start in starts.items():
            if found.starts.get(number, start) != start:
                raise InvalidInput(f"{folder} holds the log of another cut-over; name another folder")
        return found.with_more(starts)

    @staticmethod
    def kept(folder: Path, cluster_id: str) -> LandedLog:
        """Return the landed log in a folder. Make the folder if it does not exist; the log is then empty.

        Raises `InvalidInput` if a Parquet file there can't be read or is not part of a landed log, if the log is of
        another cluster, or if the folder can't be used.
        """
        try:
            folder.mkdir(exist_ok=True)
            files = sorted(folder.glob("*.parquet"))
        except OSError as error:
            raise InvalidInput(f"{folder} can't be used: {error.strerror or error}") from error
        if not files:
            return LandedLog(folder=folder, cluster_id=cluster_id, starts={}, ends={})
        *_, found = map(_described, files)
        if found.cluster_id != cluster_id:
            raise InvalidInput(f"{folder} holds the log of cluster {found.cluster_id}; name another folder")
        return replace(found, files=int(files[-1].stem) + 1)

    def with_more(self, starts: Mapping[int, int]) -> LandedLog:
        """Return the landed log of ``__consumer_offsets`` with these partitions added.

        starts: for each partition, the first offset to land. A partition that it has already keeps its own.
        """
        return replace(self, starts={**starts, **self.starts}, ends={**starts, **self.ends})

    def with_records(self, rows: Iterable[tuple[object, ...]], ends: Mapping[int, int]) -> LandedLog:
        """Write records (rows of `SCHEMA`) to one more file, and return the log with these end offsets by partition."""
        grown = replace(self, ends={**self.ends, **ends}, files=self.files + 1)
        state = {
            "cluster_id": self.cluster_id,
            "starts": {str(number): start for number, start in self.starts.items()},
            "ends": {str(number): end for number, end in grown.ends.items()},
        }
        columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=SCHEMA.with_metadata({_METADATA: json.dumps(state).encode()}))
        write_whole(self.folder / f"{self.files:06}.parquet", lambda file: write_table(table, file))
        return grown


def _described(path: Path) -> LandedLog:
    try:
        metadata = pq.read_schema(path).metadata or {}
        state = json.loads(metadata[_METADATA])
        starts, ends = ({int(number): int(at) for number, at in state[name].items()} for name in ("starts", "ends"))
        return LandedLog(
            folder=path.parent, cluster_id=state["cluster_id"], starts=starts, ends=ends, files=int(path.stem)
        )
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} is no part of a landed log, or damaged; name another folder") from error
