"""The one write path: write a plan, read it back with both clients, and say what became of every partition."""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from migrate_groups.clock import Clock
from migrate_groups.cluster.ports import (
    Answer,
    CommittedOffset,
    GroupWriter,
    OffsetsReader,
    TopicPartition,
    WriteAnswer,
)
from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.migration.guard import look_at_sources
from migrate_groups.plan.options import WriteOptions
from migrate_groups.plan.plan import Change, Plan
from migrate_groups.plan.receipt import HAND_OVER, Entry, Outcome, Purpose, Receipt

# One __consumer_offsets batch holds 1 MB: 14,000 partitions passed, 15,000 failed (measured). Half of it is safe.
_MOST_BYTES = 500_000
_BYTES_A_PARTITION = 44

_MAY_BE_THERE = (Outcome.UNKNOWN, Outcome.CONFIRMED, Outcome.UNCHANGED)

Record = Callable[[Receipt], None]
# What the second client sees of each group, or why it sees nothing.
Seen = dict[str, Mapping[TopicPartition, CommittedOffset | None] | Exception]


def apply_plan(
    writer: GroupWriter,
    witness: OffsetsReader | None,
    plan: Plan,
    clock: Clock,
    record: Record,
    earlier: Receipt | None = None,
    purpose: Purpose = HAND_OVER,
) -> Receipt:
    """Write a plan, read it back with both clients, and return the receipt.

    ``record`` gets the receipt before the first request, after every answer, and when all was read back. ``witness``
    None does without the second client, which is asked while the first one reads back. ``earlier`` is the receipt of a
    run of the same intent that this one resumes. Never raises for a partition: the receipt says what became of each.
    """
    receipt = Receipt.of(plan, clock.now(), purpose)
    if earlier is not None:
        receipt = _read_back(writer, receipt.resuming(earlier))
    record(receipt)
    asked: _Asked | None = None
    for attempt in (1, 2):
        todo = [entry for entry in receipt.entries if _to_attempt(entry, attempt)]
        for group, batch in batches(todo):
            answers = _send(writer, group, [entry.change for entry in batch])
            receipt = receipt.updated(
                _answered(entry, answers[entry.change.topic_partition], attempt) for entry in batch
            )
            record(receipt)
        if todo or attempt == 1:
            asked = _Asked(witness, receipt) if witness else None
            receipt = _read_back(writer, receipt)
            record(receipt)
    receipt = look_at_sources(writer, receipt)
    if asked:
        receipt = _witnessed(asked.answers(), receipt, plan.options)
    record(receipt)
    return receipt


def batches(entries: Sequence[Entry], most_bytes: int = _MOST_BYTES) -> Iterator[tuple[str, list[Entry]]]:
    """Yield a group and entries of it that fit one request, counted in the bytes that they take on the broker.

    Offsets that are set and ones that are deleted take different requests.
    """
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        change = entry.change
        metadata = change.after.metadata if change.after else ""
        more = len(change.group.encode()) + len(change.topic) + len(metadata.encode()) + _BYTES_A_PARTITION
        if batch and (_request(batch[0].change) != _request(change) or size + more > most_bytes):
            yield batch[0].change.group, batch
            batch, size = [], 0
        batch.append(entry)
        size += more
    if batch:
        yield batch[0].change.group, batch


def _request(change: Change) -> tuple[str, bool]:
    return change.group, change.after is None


def _send(writer: GroupWriter, group: str, batch: Sequence[Change]) -> Mapping[TopicPartition, WriteAnswer]:
    wanted = {change.topic_partition: change.after for change in batch if change.after is not None}
    if wanted:
        return writer.alter_offsets(group, wanted)
    return writer.delete_offsets(group, [change.topic_partition for change in batch])


def _to_attempt(entry: Entry, attempt: int) -> bool:
    # A second time only where nobody knows: the same alter twice is harmless, a refusal stays one.
    return entry.outcome is (Outcome.NOT_ATTEMPTED if attempt == 1 else Outcome.UNKNOWN)


def _answered(entry: Entry, answer: WriteAnswer, attempt: int) -> Entry:
    # What the broker took is still unknown here: only the read-back confirms.
    outcome = Outcome.REFUSED if answer.answer is Answer.REFUSED else Outcome.UNKNOWN
    return Entry(change=entry.change, outcome=outcome, attempts=attempt, error=answer.error, own=entry.own)


def _read_back(reader: OffsetsReader, receipt: Receipt) -> Receipt:
    unsettled = [entry for entry in receipt.entries if entry.outcome is Outcome.UNKNOWN]
    entries: list[Entry] = []
    for group, of_group in _by_group(unsettled).items():
        try:
            found = reader.committed(group, [entry.change.topic_partition for entry in of_group])
        except (ClusterUnavailable, Refused) as error:
            entries += [replace(entry, error=str(error)) for entry in of_group]
        else:
            entries += [_as_found(entry, found[entry.change.topic_partition]) for entry in of_group]
    return receipt.updated(entries)


def _as_found(entry: Entry, now: CommittedOffset | None) -> Entry:
    if now == entry.change.after:
        return Entry(change=entry.change, outcome=Outcome.CONFIRMED, attempts=entry.attempts, own=entry.own)
    if now in (entry.change.before, *entry.own):
        return replace(entry, error=entry.error or f"read back as {_offset(now)}")
    # Not what was there and not what was asked for: to write again would overwrite somebody else's commit.
    return replace(entry, outcome=Outcome.REFUSED, error=f"read back as {_offset(now)}: somebody else has committed")


class _Asked:
    """The second client, asked in the background for what it sees of everything that may have been written."""

    def __init__(self, witness: OffsetsReader, receipt: Receipt) -> None:
        self._answers: queue.SimpleQueue[Seen] = queue.SimpleQueue()
        groups = _by_group([entry for entry in receipt.entries if entry.outcome in _MAY_BE_THERE])
        threading.Thread(target=self._ask, args=(witness, groups), daemon=True).start()

    def answers(self) -> Seen:
        """Wait, and return what it sees of each group, or why it does not."""
        return self._answers.get()

    def _ask(self, witness: OffsetsReader, groups: Mapping[str, list[Entry]]) -> None:
        seen: Seen = {}
        for group, entries in groups.items():
            try:
                seen[group] = witness.committed(group, [entry.change.topic_partition for entry in entries])
            except Exception as error:  # noqa: BLE001  whatever it is, the write is done, and somebody waits here
                seen[group] = error
        self._answers.put(seen)


def _witnessed(seen: Seen, receipt: Receipt, options: WriteOptions) -> Receipt:
    settled = [entry for entry in receipt.entries if entry.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED)]
    entries: list[Entry] = []
    for group, of_group in _by_group(settled).items():
        found = seen.get(group, {})
        if isinstance(found, Exception):
            remark = f"group {group!r} was confirmed by one client only: {found}"
            receipt = receipt.remarked(remark)
            if options.witness == "required":
                entries += [replace(entry, outcome=Outcome.UNKNOWN, error=remark) for entry in of_group]
            continue
        for entry in of_group:
            witnessed = found.get(entry.change.topic_partition)
            if _comparable(witnessed) != _comparable(entry.change.after):
                difference = f"kafka-python reads {_offset(entry.change.after)}, confluent-kafka {_offset(witnessed)}"
                entries.append(replace(entry, outcome=Outcome.UNKNOWN, error=difference))
    return receipt.updated(entries)


def _by_group(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.change.group].append(entry)
    return groups


def _comparable(committed: CommittedOffset | None) -> tuple[int, int | None] | None:
    # Not the metadata: confluent-kafka reads it wrongly (measured).
    return None if committed is None else (committed.offset, committed.leader_epoch)


def _offset(committed: CommittedOffset | None) -> str:
    return "nothing" if committed is None else str(committed.offset)
