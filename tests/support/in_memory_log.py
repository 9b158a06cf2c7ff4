"""The log of one partition of the cluster in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrate_groups.model.partitions import OffsetAndTimestamp


@dataclass
class Log:
    """The records of a partition, each by its offset and timestamp, without contents.

    unseen: offsets of transaction markers and aborted records. epoch: the leader epoch. open_from: the first offset of
    the open transaction; None if there is none. epoch_starts: the first offset of each leader epoch.
    """

    start: int = 0
    end: int = 0
    timestamps: dict[int, int] = field(default_factory=dict)
    unseen: set[int] = field(default_factory=set)
    has_leader: bool = True
    epoch: int = 0
    open_from: int | None = None
    epoch_starts: dict[int, int] = field(default_factory=lambda: {0: 0})

    @property
    def last_stable_offset(self) -> int:
        """Return the last stable offset: a ``read_committed`` consumer reads up to it."""
        return self.end if self.open_from is None else self.open_from

    def append(self, records: int, timestamp: int) -> None:
        """Append records with one timestamp, in milliseconds since 1970."""
        self.timestamps |= dict.fromkeys(range(self.end, self.end + records), timestamp)
        self.end += records

    def keep(self, span: range) -> None:
        """Drop records outside of a span: those before it as deleted, those after it as lost."""
        self.start, self.end = max(self.start, span.start), min(self.end, span.stop)
        self.timestamps = {offset: timestamp for offset, timestamp in self.timestamps.items() if offset in span}
        self.unseen &= self.timestamps.keys()

    def elect(self, end: int) -> None:
        """Begin a leader epoch, whose leader has the records before ``end``."""
        self.keep(range(self.start, end))
        self.epoch += 1
        self.epoch_starts = {epoch: start for epoch, start in self.epoch_starts.items() if start < self.end}
        self.epoch_starts[self.epoch] = self.end

    def end_of(self, epoch: int) -> int | None:
        """Return the offset at which the next later leader epoch starts; None: there is no later epoch."""
        return min((start for later, start in self.epoch_starts.items() if later > epoch), default=None)

    def first_in(self, span: range) -> OffsetAndTimestamp | None:
        """Return the first record in a span that a ``read_committed`` consumer gets."""
        offset = min((offset for offset in self.timestamps.keys() - self.unseen if offset in span), default=None)
        return None if offset is None else OffsetAndTimestamp(offset=offset, timestamp=self.timestamps[offset])

    def first_since(self, timestamp: int) -> OffsetAndTimestamp | None:
        """Return the first record, by offset, with this timestamp or a later one. Consumers may not get this record."""
        offset = min((offset for offset, stamp in self.timestamps.items() if stamp >= timestamp), default=None)
        return None if offset is None else OffsetAndTimestamp(offset=offset, timestamp=self.timestamps[offset])
