"""The ledger of a story (a random sequence of commands): which groups processed each record, and when.

It also keeps the reasons why records may be skipped or processed twice. Most of them come from `exceptions`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from migrate_groups.model.partitions import TopicPartition


@dataclass(slots=True)
class Processing:
    """One group's processing of one record.

    - seen: when the brokers first showed the consumer, because it joined or committed; None: not yet.
    - entitled: whether the tool had told the operator that the partition belongs to this group.
    - held_out: whether a hold (``--hold``) of the group has refused the commit of this processing.
    """

    group: str
    at: float
    entitled: bool
    seen: float | None = None
    held_out: bool = False

    def __str__(self) -> str:
        seen = "not seen" if self.seen is None else f"seen from {self.seen:.1f} s on"
        return f"{self.group} ({seen}{'' if self.entitled else ', a straggler'})"


@dataclass
class Ledger:
    """All records from the source group's first committed offset on, and which groups processed them.

    skippable, repeatable: by offset, the reason why a record may be skipped, or may be processed again.
    """

    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    processed: dict[TopicPartition, dict[int, list[Processing]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    skippable: dict[TopicPartition, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    repeatable: dict[TopicPartition, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))

    def unprocessed(self, partition: TopicPartition, before: int) -> list[int]:
        """Return the offsets below ``before`` whose records no group has processed."""
        done = self.processed[partition]
        return [offset for offset in range(self.starts[partition], before) if offset not in done]

    def reached(self, group: str, partition: TopicPartition) -> int:
        """Return the offset after the last record that a group has processed; 0 if it has processed none."""
        done = (
            offset for offset, every in self.processed[partition].items() if group in {each.group for each in every}
        )
        return max(done, default=-1) + 1

    def may_skip(self, partition: TopicPartition, offsets: Iterable[int], why: str) -> None:
        """Allow that these records are never processed. why: the reason."""
        for offset in offsets:
            self.skippable[partition].setdefault(offset, why)

    def may_repeat(self, partition: TopicPartition, offsets: Iterable[int], why: str) -> None:
        """Allow that these records are processed again. why: the reason."""
        for offset in offsets:
            self.repeatable[partition].setdefault(offset, why)

    def may_do_both(self, partition: TopicPartition, why: str) -> None:
        """Allow that any record so far is never processed, or processed again. why: the reason."""
        every = range(self.starts[partition], self.ends[partition])
        self.may_skip(partition, every, why)
        self.may_repeat(partition, every, why)

    def __str__(self) -> str:
        return "\n".join(self._lines()) or "nothing was processed"

    def _lines(self) -> Iterable[str]:
        for partition, end in sorted(self.ends.items()):
            yield f"{partition}: records {self.starts[partition]} to {end - 1}"
            for what, offsets in groupby(range(self.starts[partition], end), partial(self._of, partition)):
                yield f"    {_span(list(offsets))}: {what}"

    def _of(self, partition: TopicPartition, offset: int) -> str:
        found = ", then ".join(map(str, self.processed[partition].get(offset, []))) or "not processed"
        excuses = (self.skippable[partition].get(offset), self.repeatable[partition].get(offset))
        return found + "".join(f" [{why}]" for why in dict.fromkeys(excuses) if why)


def _span(offsets: list[int]) -> str:
    return f"{offsets[0]}" if len(offsets) == 1 else f"{offsets[0]} to {offsets[-1]}"
