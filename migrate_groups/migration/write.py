"""The only code that writes offsets: send, read back with kafka-python and confluent-kafka, record each outcome."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from migrate_groups.errors import MigrateGroupsError
from migrate_groups.migration.guard import look_at_watched
from migrate_groups.migration.ports import Clients, GroupReader, GroupWriter, OffsetsReader
from migrate_groups.migration.write_requests import rounds
from migrate_groups.model.answers import Answer, WriteAnswer
from migrate_groups.model.partitions import CommittedOffset, CommittedOffsets, TopicPartition, offset_in_words
from migrate_groups.planning.change import Change, Outcome, by_group, partitions_by_group
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.run_states import Verb
from migrate_groups.text import named

_MAY_BE_THERE = (Outcome.UNKNOWN, Outcome.CONFIRMED_BY_ONE, Outcome.UNCHANGED)

Record = Callable[[Execution], None]
# By group, the committed offsets that the second client read, or the error that it got.
Seen = Mapping[str, CommittedOffsets | Exception]


def write(clients: Clients, execution: Execution, record: Record) -> Execution:
    """Write offsets, read them back, and return the record of the write with the outcome of each partition.

    record: saves the execution; called before the first request and after each step. A failed partition raises no
    error.
    """
    writer, to_watch = clients.writer, clients.of_watched(execution.verb)
    second = None if execution.options.second_client == "none" else clients.second
    # What is saved before the second client has answered.
    save = record if second is None else lambda state: record(_without_second(state))
    execution = _read_back(writer, execution)
    save(execution)
    asked: _SecondReading | None = None
    looked: Execution | None = None
    # No partition must ever lack a committed offset in all groups at once. So a rollback sets the source group's
    # offsets first, and offsets are deleted only after all offsets to be set were read back.
    turns = sorted({_turn(change, execution.verb) for change in execution.changes})
    for turn, attempt in itertools.product(turns, (1, 2)):
        if turn > turns[0] and any(
            not change.settled and _turn(change, execution.verb) < turn for change in execution.changes
        ):
            break
        todo = [
            change for change in execution.changes if _is_due(change, attempt) and _turn(change, execution.verb) == turn
        ]
        if todo:
            execution = _sent(writer, todo, attempt, execution, save)
            asked = _SecondReading(second, execution)
            if turn == turns[-1]:
                execution, looked = _read_back_and_look(writer, to_watch, execution)
            else:
                execution = _read_back(writer, execution)
            save(execution)
    asked = asked or _SecondReading(second, execution)
    looked = looked or look_at_watched(to_watch, execution)
    execution = execution.watched_as(looked)
    execution = _seen_by_second(second, asked.answers(), execution)
    record(execution)
    return execution


def _sent(writer: GroupWriter, todo: Sequence[Change], attempt: int, execution: Execution, record: Record) -> Execution:
    """Send these changes of committed offsets, and return the record of the write with the brokers' answers.

    attempt: 1, or 2 if the changes were sent before. record: saves the record of the write.
    """
    answered: list[Change] = []
    looks_first = execution.verb is Verb.ROLLBACK and _turn(todo[0], execution.verb) > 0
    try:
        for batch in rounds(todo):
            if looks_first:
                batch, others = _still_to_undo(writer, batch)
                answered += others
            if batch:
                answers = send(writer, batch)
                answered += (
                    _answered(change, answers[change.group][change.topic_partition], attempt) for change in batch
                )
    finally:
        # Saved once, because saving a receipt of many partitions takes longer than a request. If the process is killed
        # before, the receipt has ``not attempted`` for changes that were sent. So every later command treats such an
        # change as possibly written (`Change.written`).
        execution = execution.updated(answered)
        record(execution)
    return execution


def send(writer: GroupWriter, changes: Sequence[Change]) -> Mapping[str, Mapping[TopicPartition, WriteAnswer]]:
    """Send one of the lists that `rounds` yields, and return the brokers' answers by group."""
    answers: dict[str, Mapping[TopicPartition, WriteAnswer]] = {}
    for is_share in (False, True):
        of_kind = by_group([change for change in changes if change.is_share is is_share])
        wanted = {
            group: {change.topic_partition: change.after for change in of_group if change.after}
            for group, of_group in of_kind.items()
        }
        if wanted and all(wanted.values()):
            answers |= (writer.alter_share_offsets if is_share else writer.alter_offsets)(wanted)
        elif wanted:
            partitions = partitions_by_group(change for of_group in of_kind.values() for change in of_group)
            answers |= (writer.delete_share_offsets if is_share else writer.delete_offsets)(partitions)
    return answers


def _still_to_undo(reader: OffsetsReader, changes: Sequence[Change]) -> tuple[list[Change], list[Change]]:
    """Return the changes that a rollback may write, and the changes that it must not write.

    It must not write a change if another client committed the current offset, or if that offset can't be read.
    """
    still: list[Change] = []
    others: list[Change] = []
    # Without this check, a rollback could delete an offset that a consumer without membership has just committed.
    for change, now in _found(reader, changes):
        if isinstance(now, MigrateGroupsError):
            # The outcome stays as it was, so that the same rollback can be run again.
            others.append(replace(change, error=f"not rolled back, because the committed offset can't be read: {now}"))
        elif now in (change.before, change.after, *change.own):
            still.append(change)
        else:
            others.append(
                change.refused(
                    f"another client committed {offset_in_words(now)} during the rollback: stop the group's consumers"
                )
            )
    return still, others


def _found(
    reader: OffsetsReader, changes: Sequence[Change]
) -> Iterator[tuple[Change, CommittedOffset | MigrateGroupsError | None]]:
    """Yield each change with its group's committed offset now (None: no offset), or with the error of reading it."""
    found = reader.committed(partitions_by_group(changes))
    for group, of_group in by_group(changes).items():
        answer = found[group]
        for change in of_group:
            yield change, answer if isinstance(answer, MigrateGroupsError) else answer[change.topic_partition]


def _turn(change: Change, verb: Verb) -> int:
    """Return the step of the write to which a change belongs. A step begins when all earlier steps have succeeded.

    - 0: every offset that is set, except those of step 1
    - 1: in a rollback, the offsets that are set for target groups
    - 2: the offsets that are deleted
    """
    if change.after is None:
        return 2
    return int(verb is Verb.ROLLBACK and change.source_group is None)


def _is_due(change: Change, attempt: int) -> bool:
    # Only unknown outcomes are tried again: setting the same offset twice is harmless, and a refusal is final.
    return change.outcome is (Outcome.NOT_ATTEMPTED if attempt == 1 else Outcome.UNKNOWN)


def _answered(change: Change, answer: WriteAnswer, attempt: int) -> Change:
    sent = replace(change, outcome=Outcome.UNKNOWN, attempts=attempt, error=answer.error)
    if answer.answer is Answer.REFUSED:
        # The outcome of the first attempt is unknown, so its offset may be in place although the second was refused.
        return sent.refused(answer.error, sent=attempt > 1)
    return sent  # still unknown if the broker accepted it, because only the read back confirms


def _read_back(reader: OffsetsReader, execution: Execution) -> Execution:
    unsettled = [change for change in execution.changes if change.outcome is Outcome.UNKNOWN]
    return execution.updated(
        replace(change, error=str(now)) if isinstance(now, MigrateGroupsError) else _as_found(change, now)
        for change, now in _found(reader, unsettled)
    )


def _read_back_and_look(
    writer: GroupWriter, to_watch: GroupReader, execution: Execution
) -> tuple[Execution, Execution | None]:
    """Return the record of a write as `_read_back` returns it, and at the same time the one of `look_at_watched`.

    Both begin after the brokers' answers to the write; neither proves the other. The second is None if the groups that
    must no longer consume can't be read: the caller then looks again, after it has recorded what was read back.
    """

    def look() -> Execution | None:
        try:
            return look_at_watched(to_watch, execution)
        except MigrateGroupsError:
            return None

    read, looked = writer.at_once(lambda: _read_back(writer, execution), look)
    return read, looked


def _as_found(change: Change, now: CommittedOffset | None) -> Change:
    if now == change.after:
        # Only `_seen_by_second` makes it `confirmed`: a killed process must not leave a word for what it has not read.
        return replace(change, outcome=Outcome.CONFIRMED_BY_ONE, error="")
    if now in (change.before, *change.own):
        return replace(change, error=change.error or f"read back as {offset_in_words(now)}")
    # The offset is neither the previous nor the new one: writing again would overwrite another client's commit.
    return change.refused(
        f"read back as {offset_in_words(now)}, which another client committed: stop the group's consumers", sent=True
    )


def _without_second(execution: Execution) -> Execution:
    """Return the record of a write as it must be saved before the second client has answered.

    A killed process must not leave an offset as read back by one client, because then the same command would not read
    it with the other one. Usually this is the record that was saved after the brokers' answers.
    """
    return execution.updated(
        change.unknown("") for change in execution.changes if change.outcome is Outcome.CONFIRMED_BY_ONE
    )


class _SecondReading:
    """Uses a second client to read back, in a background thread, all offsets that may have been written.

    second: None if there is no second client.
    """

    def __init__(self, second: OffsetsReader | None, execution: Execution) -> None:
        self._answers: queue.SimpleQueue[Seen | None] = queue.SimpleQueue()
        if second is None:
            self._answers.put(None)
            return
        groups = partitions_by_group(each for each in _of_both(execution) if each.outcome in _MAY_BE_THERE)
        threading.Thread(target=self._ask, args=(second, groups), daemon=True).start()

    def answers(self) -> Seen | None:
        """Wait for the second client, and return, by group, the offsets that it read or its error.

        None: there is no second client.
        """
        return self._answers.get()

    def _ask(self, second: OffsetsReader, groups: Mapping[str, list[TopicPartition]]) -> None:
        try:
            seen: Seen = second.committed(groups)
        except Exception as error:  # noqa: BLE001  the write is done, and `answers` waits for a result
            seen = dict.fromkeys(groups, error)
        self._answers.put(seen)


def _of_both(execution: Execution) -> list[Change]:
    """Return the changes that both clients can read: confluent-kafka reads no start offsets of share groups."""
    return [change for change in execution.changes if not change.is_share]


def _differences(seen: Seen, execution: Execution) -> Iterator[tuple[Change, CommittedOffset | None]]:
    """Yield each change that the second client reads differently, with the offset that it reads (None: no offset)."""
    for change in _of_both(execution):
        found = seen.get(change.group, {})
        # What both clients have confirmed before, in a write that this one resumes, is not read again.
        if change.settled and change.outcome is not Outcome.CONFIRMED and not isinstance(found, Exception):
            seen_there = found.get(change.topic_partition)
            if not _agree(seen_there, change.after):
                yield change, seen_there


def _seen_by_second(second: OffsetsReader | None, seen: Seen | None, execution: Execution) -> Execution:
    """Return the record of a write with what the second client reads; where it differs from the first one, reads now.

    seen: the second client's answers, or None if there is no second client.
    """
    if seen is None:
        return execution
    differences = [*_differences(seen, execution)]
    if differences:
        # A reading counts only if it began after the broker's answer to the write. If the broker did not answer, it may
        # have applied the write after the second client's reading, and before that of the first.
        again = _SecondReading(second, execution).answers() or {}
        seen = {**seen, **{group: found for group, found in again.items() if not isinstance(found, Exception)}}
        differences = [*_differences(seen, execution)]
    changes: list[Change] = []
    for change, seen_there in differences:
        difference = (
            f"kafka-python reads {offset_in_words(change.after)}, confluent-kafka reads {offset_in_words(seen_there)}"
        )
        # ``sent`` is True, because the first client found the offset in place. The group may have committed since.
        changes.append(change.refused(difference, sent=True))
    differing = {change.order for change in changes}
    unseen: dict[str, list[Change]] = defaultdict(list)
    for group, of_group in by_group([change for change in _of_both(execution) if change.settled]).items():
        if isinstance(found := seen.get(group), Exception):
            unseen[str(found)] += of_group
            continue
        changes += [
            replace(change, outcome=Outcome.CONFIRMED)
            for change in of_group
            if change.outcome is Outcome.CONFIRMED_BY_ONE and change.order not in differing
        ]
    for reason, of_groups in unseen.items():
        groups = {repr(change.group) for change in of_groups}
        remark = f"{named('group', groups)} confirmed by one client only: {reason}"
        execution = execution.remarked(remark)
        if execution.options.second_client == "required":
            changes += [change.unknown(remark) for change in of_groups]
    return execution.updated(changes)


def _agree(one: CommittedOffset | None, other: CommittedOffset | None) -> bool:
    if one is None or other is None:
        return one is other
    # Metadata is not compared, because confluent-kafka reads it wrongly (docs/kafka-behaviour.md#confluent-kafka).
    return one.offset == other.offset and one.leader_epoch == other.leader_epoch
