"""Count records by id: what was produced against what the applications processed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Records by id: produced, processed at least once, produced and never processed, processed more than once."""

    produced: int
    processed: int
    skipped: int
    twice: int

    @property
    def clean(self) -> bool:
        """Whether no record was skipped and none processed twice."""
        return self.skipped == self.twice == 0


def count(produced: Path, processed: Iterable[Path]) -> Count:
    """Compare the ledger of the producer with those of the applications; an absent ledger is an empty one."""
    wanted = set(read(produced))
    times = Counter(each for path in processed for each in read(path))
    return Count(
        produced=len(wanted),
        processed=len(times),
        skipped=len(wanted - times.keys()),
        twice=sum(number > 1 for number in times.values()),
    )


def read(path: Path) -> list[str]:
    """Return the ids in a ledger, in order; a line that is being written is not there yet."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()
