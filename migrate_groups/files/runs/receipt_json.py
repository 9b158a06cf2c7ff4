"""Receipts as JSON. A receipt records all writes of a migration; later commands such as rollback read it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec

from migrate_groups.errors import InvalidInput
from migrate_groups.files import strict_json
from migrate_groups.files.read import read_bytes
from migrate_groups.files.runs import change_json, translation_json
from migrate_groups.files.runs.change_json import ChangeJson, CommittedJson, Int32
from migrate_groups.files.runs.translation_json import SourceJson, TranslatedJson
from migrate_groups.planning.change import Change, Outcome
from migrate_groups.planning.execution import Execution
from migrate_groups.planning.outage import Outage
from migrate_groups.planning.receipt import Receipt
from migrate_groups.planning.run_states import Verb
from migrate_groups.planning.written_by import WrittenBy

SCHEMA = "migrate-groups/receipt"
SCHEMA_VERSION = 8


class ExecutionJson(strict_json.Strict, frozen=True):
    """One write to the cluster.

    number: the position of the write in the receipt, from 1; it orders the writes, because clocks jump. verb: the kind
    of the write. cluster_id, intent, content, options: those of the plan that was written. started_at: when the write
    began. topic_ids: topic ids by topic name, if brokers return them. source: the source group if it is on another
    cluster; otherwise null. moved: messages about groups that still consumed partitions although they had to stop.
    not_watched: messages about groups that brokers did not describe. added: messages about partitions that were added
    since, for which a target group has no committed offset. remarks: other messages. guard_readings: how often these
    groups were read during the guard after the write. longest_gap: the longest time in seconds between two of these
    readings; null if there was none. outage: of a hand-over, for how long no group consumed the partitions. operator:
    the user and host that wrote; version: of the tool; reference: what the user passed as ``--reference``, such as the
    number of a change ticket. Each is empty if there is none.
    """

    number: Int32
    verb: Verb
    cluster_id: str
    intent: str
    content: str
    options: strict_json.OptionsJson  # type: ignore[valid-type]  # made from WriteOptions
    started_at: Annotated[datetime, msgspec.Meta(tz=True)]
    topic_ids: dict[str, str]
    source: SourceJson | None
    moved: tuple[str, ...]
    not_watched: tuple[str, ...]
    added: tuple[str, ...]
    remarks: tuple[str, ...]
    guard_readings: Int32
    longest_gap: Annotated[float, msgspec.Meta(ge=0)] | None
    outage: Outage
    operator: str
    version: str
    reference: str


_AS_THEY_ARE = (
    *("number", "verb", "cluster_id", "intent", "content", "started_at", "moved", "not_watched", "added", "remarks"),
    *("guard_readings", "longest_gap", "outage"),
)
"""The fields of an `ExecutionJson` that are those of an `Execution`."""


class EntryJson(ChangeJson, frozen=True):
    """The change of a group's committed offset for one partition, and its outcome.

    action, source_group, group, topic, partition, before, after, source_committed, is_share: as in the plan. outcome:
    what happened to the change. attempts: how often the change was sent. error: why the change failed, or empty. own:
    further offsets that this migration wrote, or may have written, to the partition; if the group has one of them,
    no other client has committed. execution: the ``number`` of the write that the change belongs to.
    """

    outcome: Outcome
    attempts: Int32
    error: str
    own: tuple[CommittedJson | None, ...]
    execution: Int32


class TranslationJson(TranslatedJson, frozen=True):
    """An offset on the source cluster, and the offset at which a group must continue in the mirror's copy.

    execution: the ``number`` of the write in the receipt. All other fields: as in the plan.
    """

    execution: Int32


class ReceiptJson(strict_json.Document, frozen=True, kw_only=True):
    """A receipt: all writes of a migration, and the outcome for each partition.

    schema: ``migrate-groups/receipt``; schema_version: of this format; checksum: the SHA-256 of the file with an empty
    checksum. run: the id by which the claims on the cluster name the run; a copy of the file has the same one.
    executions: the writes, oldest first. entries: one for each partition of a write. translations: if the source group
    is on another cluster, the offsets at which the target groups must continue in the mirror's copies.
    """

    run: str
    executions: tuple[ExecutionJson, ...]
    entries: tuple[EntryJson, ...]
    translations: tuple[TranslationJson, ...]


def to_bytes(receipt: Receipt) -> bytes:
    """Return the bytes of the receipt's file."""
    return strict_json.encode(
        ReceiptJson(
            schema=SCHEMA,
            schema_version=SCHEMA_VERSION,
            run=receipt.run,
            executions=tuple(map(_execution, receipt.executions)),
            entries=tuple(
                _entry(change, execution.number) for execution in receipt.executions for change in execution.changes
            ),
            translations=tuple(
                TranslationJson(**msgspec.structs.asdict(line), execution=execution.number)
                for execution in receipt.executions
                for line in translation_json.lines(execution.translation)
            ),
        )
    )


def load(path: Path) -> Receipt:
    """Return the receipt in a file.

    Raises `InvalidInput` if the file can't be read, is not a receipt, or was edited.
    """
    return read(read_bytes(path), str(path))


def read(data: bytes, name: str) -> Receipt:
    """Return the receipt in ``data``, the bytes of the file ``name``.

    Raises `InvalidInput` if the data is not a receipt or was edited.
    """
    document = strict_json.decode(data, name, ReceiptJson, SCHEMA, SCHEMA_VERSION)
    numbers = [execution.number for execution in document.executions]
    of_entries = [each.execution for each in document.entries]
    of_all = {*of_entries, *(each.execution for each in document.translations)}
    if numbers != [*range(1, len(numbers) + 1)] or not of_all <= {*numbers}:
        raise InvalidInput(
            f"{name} was edited after it was written: its executions are not numbered 1 to N; restore the original file"
        )
    if any(later < earlier for earlier, later in pairwise(of_entries)):
        raise InvalidInput(
            f"{name} was edited after it was written: its entries are not in order; restore the original file"
        )
    changes: dict[int, list[Change]] = {number: [] for number in numbers}
    for entry in document.entries:
        changes[entry.execution].append(_value(entry))
    return Receipt(
        tuple(
            _of_execution(
                each,
                changes[each.number],
                [line for line in document.translations if line.execution == each.number],
                name,
            )
            for each in document.executions
        ),
        run=document.run,
    )


def _execution(execution: Execution) -> ExecutionJson:
    return ExecutionJson(
        **{name: getattr(execution, name) for name in _AS_THEY_ARE},
        options=strict_json.options_json(execution.options),
        topic_ids=dict(execution.topic_ids),
        source=translation_json.source(execution.translation),
        **asdict(execution.by),
    )


def _of_execution(
    found: ExecutionJson, changes: list[Change], translated: list[TranslationJson], name: str
) -> Execution:
    return Execution(
        **{name: getattr(found, name) for name in _AS_THEY_ARE},
        options=strict_json.options(found.options, name),
        topic_ids=found.topic_ids,
        changes=tuple(changes),
        translation=translation_json.value(found.source, translated),
        by=WrittenBy(operator=found.operator, version=found.version, reference=found.reference),
    )


def _entry(change: Change, execution: int) -> EntryJson:
    cells = change_json.cells(change)
    return EntryJson(*cells, change.outcome, change.attempts, change.error, change.own, execution)  # type: ignore[arg-type]


def _value(found: EntryJson) -> Change:
    own = tuple(map(change_json.committed, found.own))
    return msgspec.structs.replace(
        change_json.value(found), outcome=found.outcome, attempts=found.attempts, error=found.error, own=own
    )
