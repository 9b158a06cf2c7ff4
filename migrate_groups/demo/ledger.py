"""Compare the ids of the produced records with the ids of the records that the applications processed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The number of record ids that were produced, processed, skipped and processed twice.

    processed: processed at least once. skipped: produced, and never processed. twice: processed more than once.
    """

    produced: int
    processed: int
    skipped: int
    twice: int

    @property
    def clean(self) -> bool:
        """Whether no record was skipped and no record was processed twice."""
        return self.skipped == self.twice == 0


def count(produced: Path, processed: Iterable[Path]) -> Count:
    """Return how many records were produced, processed, skipped and processed twice.

    produced, processed: files of record ids, one id a line. A missing file counts as empty.
    """
    wanted = set(read(produced))
    times = Counter(each for path in processed for each in read(path))
    return Count(
        produced=len(wanted),
        processed=len(times),
        skipped=len(wanted - times.keys()),
        twice=sum(number > 1 for number in times.values()),
    )


def read(path: Path) -> list[str]:
    """Return the record ids in a file, one from each line; empty if the file does not exist.

    A last line without a line feed is left out.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()
