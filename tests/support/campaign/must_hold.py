"""The checks after a command: the receipt agrees with the brokers, and each record is processed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.files.runs import receipt_json
from migrate_groups.planning.change import Outcome
from migrate_groups.planning.execution import Execution
from tests.support.campaign.scenario import Offsets

NOTHING_WRITTEN = (2, 3, 5)
"""The exit codes that say that a command has written nothing."""


def executions_in(receipt: Path) -> tuple[Execution, ...]:
    """Return the executions that a receipt file records; none if the file does not exist."""
    return receipt_json.load(receipt).executions if receipt.exists() else ()


@dataclass(frozen=True, kw_only=True)
class Before:
    """The state before a command: the offsets of the groups that it writes, and its receipt's number of executions."""

    offsets: Offsets
    executions: int


def receipt_problems(receipt: Path, before: Before, now: Offsets, expected: Offsets, code: int) -> Iterator[str]:
    """Yield each problem of the receipt after a command. There is no problem if all of this holds:

    - If there is no new execution, or if the exit code says that nothing was written, the offsets are as before.
    - A partition that is confirmed or unchanged has the planned offset. Any other partition has the planned offset, or
      the offset from before the execution.
    - The planned offset is the expected offset.

    now: the committed offsets. expected: the offsets that must be committed once the command has succeeded. code: the
    exit code of the command; at the end of a run 0, because the command must have succeeded.
    """
    executions = executions_in(receipt)
    if len(executions) == before.executions or code in NOTHING_WRITTEN:
        if any(now[key] != offset for key, offset in before.offsets.items()):
            yield f"exit {code}: {now} is committed, before it was {before.offsets}"
        return
    for entry in executions[-1].changes:
        change = entry
        key = change.group, change.topic_partition
        earlier, planned = (each.offset if each else None for each in (change.before, change.after))
        allowed = (planned,) if is_settled(entry.outcome) else (earlier, planned)
        if now[key] not in allowed:
            yield f"{key} is at {now[key]}, receipt: {entry}"
        if planned != expected[key]:
            yield f"{key} was to go to {planned}, not {expected[key]}"


def is_settled(outcome: Outcome) -> bool:
    """Return whether an outcome in a receipt means that the planned offset is committed."""
    return outcome in (Outcome.CONFIRMED, Outcome.CONFIRMED_BY_ONE, Outcome.UNCHANGED)


def completion_problems(receipt: Path, before: Before, now: Offsets, expected: Offsets) -> Iterator[str]:
    """Yield each problem at the end of a run: wrong committed offsets, or a receipt that is not complete.

    now: the committed offsets of all groups, also of groups that the command does not write.
    """
    if now != expected:
        yield f"{now} is committed, not {expected}"
    executions = executions_in(receipt)
    if len(executions) == before.executions:
        yield "the receipt has no execution of the command"
    elif not all(is_settled(entry.outcome) for entry in executions[-1].changes):
        yield f"exit 0, and the receipt has open entries: {executions[-1].changes}"


def ledger(wanted: Collection[str], processed: Counter[str]) -> tuple[int, int]:
    """Return how many records were skipped, and how many were processed more than once.

    wanted: the values of the records, each of which must be processed once. Any other value counts as processed twice.
    """
    skipped = len(set(wanted) - processed.keys())
    return skipped, sum(count > 1 for count in processed.values()) + len(processed.keys() - set(wanted))
