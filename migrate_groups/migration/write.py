"""The one write path: carry out an execution, read it back with both clients, say what became of every partition."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.guard import look_at_watched
from migrate_groups.migration.ports import GroupWriter, OffsetsReader
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.partitions import CommittedOffset, CommittedOffsets, TopicPartition
from migrate_groups.planning.execution import Entry, Execution, Outcome
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import some

# One __consumer_offsets batch holds 1 MB: 14,000 partitions passed, 15,000 failed
# (docs/kafka-behaviour.md#altering-offsets). Half of it is safe.
_MOST_BYTES = 500_000
_BYTES_A_PARTITION = 44

_MAY_BE_THERE = (Outcome.UNKNOWN, Outcome.CONFIRMED, Outcome.UNCHANGED)

Record = Callable[[Execution], None]
# What the second client sees of each group, or why it sees nothing.
Seen = Mapping[str, CommittedOffsets | Exception]


def write(writer: GroupWriter, second: OffsetsReader | None, execution: Execution, record: Record) -> Execution:
    """Carry out an execution, read it back with both clients, and return it with what became of each partition.

    ``record`` gets it before the first request, after every answer, and when all was read back. ``second`` None does
    without the second client, which is asked while the first one reads back. A rollback sets the source group's offsets
    first, and no offset is deleted before every one that is set was read back: otherwise a partition could be in no
    group at all. Never raises for a partition.
    """
    execution = _read_back(writer, execution)
    record(execution)
    asked: _SecondReading | None = None
    for turn, attempt in itertools.product(range(3), (1, 2)):
        if any(_turn(entry, execution.verb) < turn and not entry.settled for entry in execution.entries):
            break
        todo = [
            entry for entry in execution.entries if _is_due(entry, attempt) and _turn(entry, execution.verb) == turn
        ]
        for batch in rounds(todo):
            if execution.verb is Verb.ROLLBACK and turn:
                batch, moved = _unmoved(writer, batch)
                execution = execution.updated(moved)
            if batch:
                answers = _send(writer, batch)
                execution = execution.updated(
                    _answered(entry, answers[entry.change.group][entry.change.topic_partition], attempt)
                    for entry in batch
                )
            record(execution)
        if todo:
            asked = _SecondReading(second, execution)
            execution = _read_back(writer, execution)
            record(execution)
    asked = asked or _SecondReading(second, execution)
    execution = look_at_watched(writer, execution)
    execution = _seen_by_second(asked.answers(), execution)
    record(execution)
    return execution


def rounds(entries: Sequence[Entry], most_bytes: int = _MOST_BYTES) -> Iterator[list[Entry]]:
    """Yield entries that are sent at once: offsets to set in any number of groups, or ones to delete in one group.

    Those of a group fit one request, counted in the bytes that they take on the broker.
    """
    to_set: dict[str, list[list[Entry]]] = defaultdict(list)
    to_delete: list[list[Entry]] = []
    for group, of_group in _by_group(entries).items():
        for deletes, of_kind in itertools.groupby(of_group, lambda entry: entry.change.after is None):
            (to_delete if deletes else to_set[group]).extend(_requests(of_kind, most_bytes))
    for requests in itertools.zip_longest(*to_set.values(), fillvalue=()):
        yield [*itertools.chain.from_iterable(requests)]
    yield from to_delete


def _requests(entries: Iterable[Entry], most_bytes: int) -> Iterator[list[Entry]]:
    request: list[Entry] = []
    size = 0
    for entry in entries:
        change = entry.change
        metadata = change.after.metadata if change.after else ""
        more = len(change.group.encode()) + len(change.topic) + len(metadata.encode()) + _BYTES_A_PARTITION
        if request and size + more > most_bytes:
            yield request
            request, size = [], 0
        request.append(entry)
        size += more
    if request:
        yield request


def _send(writer: GroupWriter, entries: Sequence[Entry]) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
    wanted = {
        group: {entry.change.topic_partition: entry.change.after for entry in of_group if entry.change.after}
        for group, of_group in _by_group(entries).items()
    }
    if all(wanted.values()):
        return writer.alter_offsets_by_group(wanted)
    return {
        group: writer.delete_offsets(group, [entry.change.topic_partition for entry in of_group])
        for group, of_group in _by_group(entries).items()
    }


def _unmoved(reader: OffsetsReader, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return the entries whose committed offset is still the one that was read, and the others, refused.

    Without this look a rollback would delete what a consumer without membership has just committed, unseen.
    """
    still: list[Entry] = []
    moved: list[Entry] = []
    for entry, now in _found(reader, entries):
        expected = (entry.change.before, entry.change.after, *entry.own)
        if isinstance(now, MigrateGroupsError) or now in expected:  # what can't be read is asked for again
            still.append(entry)
        else:
            moved.append(entry.refused(f"committed {_offset(now)} during the rollback: stop its consumers"))
    return still, moved


def _found(
    reader: OffsetsReader, entries: Sequence[Entry]
) -> Iterator[tuple[Entry, CommittedOffset | MigrateGroupsError | None]]:
    """Yield each entry with what its group has committed there now, or why that can't be read."""
    groups = _by_group(entries)
    found = reader.committed_by_group(
        {group: [entry.change.topic_partition for entry in of_group] for group, of_group in groups.items()}
    )
    for group, of_group in groups.items():
        answer = found[group]
        for entry in of_group:
            yield entry, answer if isinstance(answer, MigrateGroupsError) else answer[entry.change.topic_partition]


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


def _read_back(reader: OffsetsReader, execution: Execution) -> Execution:
    unsettled = [entry for entry in execution.entries if entry.outcome is Outcome.UNKNOWN]
    return execution.updated(
        replace(entry, error=str(now)) if isinstance(now, MigrateGroupsError) else _as_found(entry, now)
        for entry, now in _found(reader, unsettled)
    )


def _as_found(entry: Entry, now: CommittedOffset | None) -> Entry:
    if now == entry.change.after:
        return Entry(change=entry.change, outcome=Outcome.CONFIRMED, attempts=entry.attempts, own=entry.own)
    if now in (entry.change.before, *entry.own):
        return replace(entry, error=entry.error or f"read back as {_offset(now)}")
    # Neither what was there nor what was asked for: to write again would overwrite somebody else's commit.
    return entry.refused(f"read back as {_offset(now)}: somebody else has committed", sent=True)


class _SecondReading:
    """The second client, asked in the background for what it sees of everything that may have been written.

    None in its place is asked nothing: then what the first client read back stands.
    """

    def __init__(self, second: OffsetsReader | None, execution: Execution) -> None:
        self._answers: queue.SimpleQueue[Seen | None] = queue.SimpleQueue()
        if second is None:
            self._answers.put(None)
            return
        groups = {
            group: [entry.change.topic_partition for entry in of_group]
            for group, of_group in _by_group([e for e in execution.entries if e.outcome in _MAY_BE_THERE]).items()
        }
        threading.Thread(target=self._ask, args=(second, groups), daemon=True).start()

    def answers(self) -> Seen | None:
        """Wait, and return what it sees of each group, or why it does not; None where it was not asked."""
        return self._answers.get()

    def _ask(self, second: OffsetsReader, groups: Mapping[str, list[TopicPartition]]) -> None:
        try:
            seen: Seen = second.committed_by_group(groups)
        except Exception as error:  # noqa: BLE001  whatever it is, the write is done, and somebody waits here
            seen = dict.fromkeys(groups, error)
        self._answers.put(seen)


def _seen_by_second(seen: Seen | None, execution: Execution) -> Execution:
    if seen is None:
        return execution
    entries: list[Entry] = []
    unseen: dict[str, list[Entry]] = defaultdict(list)
    for group, of_group in _by_group([entry for entry in execution.entries if entry.settled]).items():
        found = seen.get(group, {})
        if isinstance(found, Exception):
            unseen[str(found)] += of_group
            continue
        for entry in of_group:
            seen_there = found.get(entry.change.topic_partition)
            if _comparable(seen_there) != _comparable(entry.change.after):
                difference = f"kafka-python reads {_offset(entry.change.after)}, confluent-kafka {_offset(seen_there)}"
                entries.append(entry.refused(difference, sent=True))  # the group may have started meanwhile
    for reason, of_groups in unseen.items():
        groups = {repr(entry.change.group) for entry in of_groups}
        remark = f"group {some(groups)} was confirmed by one client only: {reason}"
        execution = execution.remarked(remark)
        if execution.options.second_client == "required":
            entries += [replace(entry, outcome=Outcome.UNKNOWN, error=remark) for entry in of_groups]
    return execution.updated(entries)


def _by_group(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.change.group].append(entry)
    return groups


def _comparable(committed: CommittedOffset | None) -> tuple[int, int | None] | None:
    # Not the metadata: confluent-kafka reads it wrongly (docs/kafka-behaviour.md#confluent-kafka).
    return None if committed is None else (committed.offset, committed.leader_epoch)


def _offset(committed: CommittedOffset | None) -> str:
    return "nothing" if committed is None else str(committed.offset)
