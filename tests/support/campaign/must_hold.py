"""What must hold after a command: the receipt states what the brokers have, and each record is processed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate_groups.files.runs import receipt_json
from migrate_groups.planning.execution import Execution, Outcome
from tests.support.campaign.scenario import Offsets

NOTHING_WRITTEN = (2, 3, 5)
"""The exit codes that say that a command has written nothing."""


def executions_in(receipt: Path) -> tuple[Execution, ...]:
    """Return the executions of a receipt; none if the file does not exist."""
    return receipt_json.load(receipt).executions if receipt.exists() else ()


@dataclass(frozen=True, kw_only=True)
class Before:
    """The state before the command: offsets of the groups that it writes, and the executions in its receipt."""

    offsets: Offsets
    executions: int


def receipt_problems(receipt: Path, before: Before, now: Offsets, expected: Offsets, code: int) -> Iterator[str]:
    """Yield what is wrong with a receipt after a command.

    now: what the brokers have. expected: what they must have once the command has succeeded. code: the exit code of
    the command if it was the first of its run, else 0.

    - If there is no new execution, or if the exit code says that nothing was written, the offsets are as before.
    - A partition that is confirmed or unchanged has the offset that the receipt states. Any other has the offset from
      before the execution, or the planned one. The planned offset is the expected one.
    """
    executions = executions_in(receipt)
    if len(executions) == before.executions or code in NOTHING_WRITTEN:
        if any(now[key] != offset for key, offset in before.offsets.items()):
            yield f"exit {code}: {now} is committed, before it was {before.offsets}"
        return
    for entry in executions[-1].entries:
        change = entry.change
        key = change.group, change.topic_partition
        earlier, planned = (each.offset if each else None for each in (change.before, change.after))
        allowed = (planned,) if is_settled(entry.outcome) else (earlier, planned)
        if now[key] not in allowed:
            yield f"{key} is at {now[key]}, receipt: {entry}"
        if planned != expected[key]:
            yield f"{key} was to go to {planned}, not {expected[key]}"


def is_settled(outcome: Outcome) -> bool:
    """Return whether the receipt says that the offset is in place."""
    return outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED)


def completion_problems(receipt: Path, before: Before, now: Offsets, expected: Offsets) -> Iterator[str]:
    """Yield what is wrong after the last command of a run, which has succeeded.

    now: what the brokers have for all groups, including those that the command does not write.
    """
    if now != expected:
        yield f"{now} is committed, not {expected}"
    executions = executions_in(receipt)
    if len(executions) == before.executions:
        yield "the receipt has no execution of the command"
    elif not all(is_settled(entry.outcome) for entry in executions[-1].entries):
        yield f"exit 0, and the receipt has open entries: {executions[-1].entries}"


def ledger(wanted: Collection[str], processed: Counter[str]) -> tuple[int, int]:
    """Return how many records were skipped, and how many were processed more than once.

    wanted: the values that must be processed once. A value that was never produced counts as processed twice.
    """
    skipped = len(set(wanted) - processed.keys())
    return skipped, sum(count > 1 for count in processed.values()) + len(processed.keys() - set(wanted))
