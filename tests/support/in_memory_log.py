"""The log of one partition of the cluster in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrate_groups.model.partitions import OffsetAndTimestamp


@dataclass
class Log:
    """Timestamps by offset; ``unseen`` are those of markers and aborted records. ``epoch`` counts its leaders.

    open_from: the first record of the transaction that is open; None where none is.
    """

    start: int = 0
    end: int = 0
    timestamps: dict[int, int] = field(default_factory=dict)
    unseen: set[int] = field(default_factory=set)
    has_leader: bool = True
    epoch: int = 0
    open_from: int | None = None

    @property
    def stable_end(self) -> int:
        """How far a ``read_committed`` consumer gets."""
        return self.end if self.open_from is None else self.open_from

    def append(self, records: int, timestamp: int) -> None:
        """Append records of one timestamp, in milliseconds since 1970."""
        self.timestamps |= dict.fromkeys(range(self.end, self.end + records), timestamp)
        self.end += records

    def keep(self, span: range) -> None:
        """Drop what is outside of a span: what was deleted before it, or lost behind it."""
        self.start, self.end = max(self.start, span.start), min(self.end, span.stop)
        self.timestamps = {offset: timestamp for offset, timestamp in self.timestamps.items() if offset in span}
        self.unseen &= self.timestamps.keys()

    def first_in(self, span: range) -> OffsetAndTimestamp | None:
        """Return the first record in a span that a consumer is handed."""
        offset = min((offset for offset in self.timestamps.keys() - self.unseen if offset in span), default=None)
        return None if offset is None else OffsetAndTimestamp(offset=offset, timestamp=self.timestamps[offset])

    def first_since(self, timestamp: int) -> OffsetAndTimestamp | None:
        """Return the first record, by offset, of this timestamp or a later one, handed to anybody or not."""
        offset = min((offset for offset, stamp in self.timestamps.items() if stamp >= timestamp), default=None)
        return None if offset is None else OffsetAndTimestamp(offset=offset, timestamp=self.timestamps[offset])
