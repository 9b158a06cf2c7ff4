"""The log of one partition of the in-memory cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field

from migrate_groups.model.partitions import OffsetAndTimestamp
from migrate_groups.model.records import NULL_KEY, Records


@dataclass
class Log:
    """The records of a partition: for each offset a timestamp, a fingerprint and the hash of the key.

    tombstones: the offsets of records with a null value. unseen: the offsets of control records and aborted records.
    markers: the offsets of control records. epoch: the leader epoch. open_from: the first offset of the open
    transaction; None: there is none. epoch_starts: the first offset of each leader epoch.
    """

    start: int = 0
    end: int = 0
    timestamps: dict[int, int] = field(default_factory=dict)
    prints: dict[int, bytes] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict)
    tombstones: set[int] = field(default_factory=set)
    unseen: set[int] = field(default_factory=set)
    markers: set[int] = field(default_factory=set)
    has_leader: bool = True
    epoch: int = 0
    open_from: int | None = None
    epoch_starts: dict[int, int] = field(default_factory=lambda: {0: 0})

    @property
    def last_stable_offset(self) -> int:
        """Return the last stable offset: a ``read_committed`` consumer reads up to it."""
        return self.end if self.open_from is None else self.open_from

    def append(self, records: int, timestamp: int) -> None:
        """Append records with the same timestamp, in milliseconds since 1970, null keys, and different fingerprints."""
        for number in range(records):
            fingerprint = hashlib.blake2b(f"{timestamp} {number}".encode(), digest_size=16).digest()
            self.put(self.end, timestamp, fingerprint, NULL_KEY)

    def append_copies(self, copied: Records) -> None:
        """Append copies of records, as a mirror does."""
        content = copied.timestamps, copied.prints, copied.keys, copied.tombstones
        for timestamp, fingerprint, key, is_tombstone in zip(*content, strict=True):
            self.put(self.end, timestamp, fingerprint, key, is_tombstone=bool(is_tombstone))

    def put(self, offset: int, timestamp: int, fingerprint: bytes, key: bytes, *, is_tombstone: bool = False) -> None:
        """Put a record at an offset. The log then ends behind it, unless it ended later before."""
        self.timestamps[offset], self.prints[offset], self.keys[offset] = timestamp, fingerprint, key
        if is_tombstone:
            self.tombstones.add(offset)
        self.end = max(self.end, offset + 1)

    def remove(self, offsets: Collection[int]) -> None:
        """Remove records, and leave their offsets empty, as compaction does."""
        for offset in offsets:
            del self.timestamps[offset]

    def records(self, span: range, *, committed_only: bool) -> Records:
        """Return the records in a span of offsets that a consumer gets.

        committed_only: whether the consumer's isolation level is ``read_committed``, and not ``read_uncommitted``.
        """
        hidden = self.unseen if committed_only else self.markers
        end = self.last_stable_offset if committed_only else self.end
        offsets = [each for each in sorted(self.timestamps.keys() - hidden) if each in span and each < end]
        return Records(
            offsets=offsets,
            timestamps=[self.timestamps[each] for each in offsets],
            prints=[self.prints[each] for each in offsets],
            keys=[self.keys[each] for each in offsets],
            tombstones=[each in self.tombstones for each in offsets],
        )

    def keep(self, span: range) -> None:
        """Drop the records outside of a span of offsets: earlier records are deleted, later records are lost."""
        self.start, self.end = max(self.start, span.start), min(self.end, span.stop)
        self.timestamps = {offset: timestamp for offset, timestamp in self.timestamps.items() if offset in span}
        self.unseen &= self.timestamps.keys()

    def elect(self, end: int) -> None:
        """Begin a leader epoch. The new leader has only the records before ``end``."""
        self.keep(range(self.start, end))
        self.epoch += 1
        self.has_leader = True
        self.epoch_starts = {epoch: start for epoch, start in self.epoch_starts.items() if start < self.end}
        self.epoch_starts[self.epoch] = self.end

    def end_of(self, epoch: int) -> int | None:
        """Return the offset at which the next leader epoch starts; None: there is no later epoch."""
        return min((start for later, start in self.epoch_starts.items() if later > epoch), default=None)

    def first_in(self, span: range) -> OffsetAndTimestamp | None:
        """Return the first record in a span of offsets that a ``read_committed`` consumer gets."""
        offset = min((offset for offset in self.timestamps.keys() - self.unseen if offset in span), default=None)
        return None if offset is None else OffsetAndTimestamp(offset=offset, timestamp=self.timestamps[offset])

    def first_since(self, timestamp: int) -> OffsetAndTimestamp | None:
        """Return the first record, by offset, at or after a timestamp; it may be a control or aborted record."""
        offset = min((offset for offset, stamp in self.timestamps.items() if stamp >= timestamp), default=None)
        return None if offset is None else OffsetAndTimestamp(offset=offset, timestamp=self.timestamps[offset])
