"""The one write path: carry out a deed, read it back with both clients, and say what became of every partition."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from migrate_groups.cluster.ports import (
    Answer,
    CommittedOffset,
    GroupWriter,
    OffsetsReader,
    TopicPartition,
    WriteAnswer,
)
from migrate_groups.errors import ClusterUnavailable, Refused
from migrate_groups.migration.guard import look_at_watched
from migrate_groups.plan.plan import Change
from migrate_groups.plan.receipt import Deed, Entry, Outcome
from migrate_groups.plan.run_states import Verb

# One __consumer_offsets batch holds 1 MB: 14,000 partitions passed, 15,000 failed (measured). Half of it is safe.
_MOST_BYTES = 500_000
_BYTES_A_PARTITION = 44

_MAY_BE_THERE = (Outcome.UNKNOWN, Outcome.CONFIRMED, Outcome.UNCHANGED)

Record = Callable[[Deed], None]
# What the second client sees of each group, or why it sees nothing.
Seen = dict[str, Mapping[TopicPartition, CommittedOffset | None] | Exception]


def write(writer: GroupWriter, witness: OffsetsReader | None, deed: Deed, record: Record) -> Deed:
    """Carry out a deed, read it back with both clients, and return it with what became of each partition.

    ``record`` gets the deed before the first request, after every answer, and when all was read back. ``witness`` None
    does without the second client, which is asked while the first one reads back. A rollback sets the source group's
    offsets first, and no offset is deleted before every one that the deed sets was read back: otherwise a partition
    could be in no group at all. Never raises for a partition.
    """
    deed = _read_back(writer, deed)
    record(deed)
    asked: _Asked | None = None
    for turn, attempt in itertools.product(range(3), (1, 2)):
        if any(_turn(entry, deed.verb) < turn and not entry.settled for entry in deed.entries):
            break
        todo = [entry for entry in deed.entries if _is_due(entry, attempt) and _turn(entry, deed.verb) == turn]
        for group, batch in batches(todo):
            if deed.verb is Verb.ROLLBACK and turn:
                batch, moved = _unmoved(writer, group, batch)
                deed = deed.updated(moved)
            if batch:
                answers = _send(writer, group, [entry.change for entry in batch])
                deed = deed.updated(_answered(entry, answers[entry.change.topic_partition], attempt) for entry in batch)
            record(deed)
        if todo:
            asked = _Asked(witness, deed)
            deed = _read_back(writer, deed)
            record(deed)
    asked = asked or _Asked(witness, deed)
    deed = look_at_watched(writer, deed)
    deed = _witnessed(asked.answers(), deed)
    record(deed)
    return deed


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


def _unmoved(reader: OffsetsReader, group: str, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the entries whose committed offset is still the one that was read, and the others, refused.

    Without this look a rollback would delete what a consumer without membership has just committed, unseen.
    """
    try:
        found = reader.committed(group, [entry.change.topic_partition for entry in entries])
    except (ClusterUnavailable, Refused):
        return [*entries], []  # the read-back asks again
    still: list[Entry] = []
    moved: list[Entry] = []
    for entry in entries:
        now = found[entry.change.topic_partition]
        if now in (entry.change.before, entry.change.after, *entry.own):
            still.append(entry)
        else:
            moved.append(entry.refused(f"committed {_offset(now)} during the rollback: stop its consumers"))
    return still, moved


def _turn(entry: Entry, verb: Verb) -> int:
    """Return when an entry is written: what a rollback sets in the source group first, what is deleted last."""
    if entry.change.after is None:
        return 2
    return int(verb is Verb.ROLLBACK and entry.change.source_group is None)


def _is_due(entry: Entry, attempt: int) -> bool:
    # A second time only where nobody knows: the same alter twice is harmless, a refusal stays one.
    return entry.outcome is (Outcome.NOT_ATTEMPTED if attempt == 1 else Outcome.UNKNOWN)


def _answered(entry: Entry, answer: WriteAnswer, attempt: int) -> Entry:
    sent = Entry(change=entry.change, outcome=Outcome.UNKNOWN, attempts=attempt, error=answer.error, own=entry.own)
    if answer.answer is Answer.REFUSED:
        # An earlier attempt that was not answered may have been applied all the same.
        return sent.refused(answer.error, sent=attempt > 1)
    return sent  # what the broker took is still unknown: only the read-back confirms


def _read_back(reader: OffsetsReader, deed: Deed) -> Deed:
    unsettled = [entry for entry in deed.entries if entry.outcome is Outcome.UNKNOWN]
    entries: list[Entry] = []
    for group, of_group in _by_group(unsettled).items():
        try:
            found = reader.committed(group, [entry.change.topic_partition for entry in of_group])
        except (ClusterUnavailable, Refused) as error:
            entries += [replace(entry, error=str(error)) for entry in of_group]
        else:
            entries += [_as_found(entry, found[entry.change.topic_partition]) for entry in of_group]
    return deed.updated(entries)


def _as_found(entry: Entry, now: CommittedOffset | None) -> Entry:
    if now == entry.change.after:
        return Entry(change=entry.change, outcome=Outcome.CONFIRMED, attempts=entry.attempts, own=entry.own)
    if now in (entry.change.before, *entry.own):
        return replace(entry, error=entry.error or f"read back as {_offset(now)}")
    # Neither what was there nor what was asked for: to write again would overwrite somebody else's commit.
    return entry.refused(f"read back as {_offset(now)}: somebody else has committed", sent=True)


class _Asked:
    """The second client, asked in the background for what it sees of everything that may have been written.

    None in its place is asked nothing: then what the first client read back stands.
    """

    def __init__(self, witness: OffsetsReader | None, deed: Deed) -> None:
        self._answers: queue.SimpleQueue[Seen | None] = queue.SimpleQueue()
        if witness is None:
            self._answers.put(None)
            return
        groups = _by_group([entry for entry in deed.entries if entry.outcome in _MAY_BE_THERE])
        threading.Thread(target=self._ask, args=(witness, groups), daemon=True).start()

    def answers(self) -> Seen | None:
        """Wait, and return what it sees of each group, or why it does not; None where it was not asked."""
        return self._answers.get()

    def _ask(self, witness: OffsetsReader, groups: Mapping[str, list[Entry]]) -> None:
        seen: Seen = {}
        for group, entries in groups.items():
            try:
                seen[group] = witness.committed(group, [entry.change.topic_partition for entry in entries])
            except Exception as error:  # noqa: BLE001  whatever it is, the write is done, and somebody waits here
                seen[group] = error
        self._answers.put(seen)


def _witnessed(seen: Seen | None, deed: Deed) -> Deed:
    if seen is None:
        return deed
    entries: list[Entry] = []
    for group, of_group in _by_group([entry for entry in deed.entries if entry.settled]).items():
        found = seen.get(group, {})
        if isinstance(found, Exception):
            remark = f"group {group!r} was confirmed by one client only: {found}"
            deed = deed.remarked(remark)
            if deed.options.witness == "required":
                entries += [replace(entry, outcome=Outcome.UNKNOWN, error=remark) for entry in of_group]
            continue
        for entry in of_group:
            witnessed = found.get(entry.change.topic_partition)
            if _comparable(witnessed) != _comparable(entry.change.after):
                difference = f"kafka-python reads {_offset(entry.change.after)}, confluent-kafka {_offset(witnessed)}"
                entries.append(entry.refused(difference, sent=True))  # the group may have started meanwhile
    return deed.updated(entries)


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
