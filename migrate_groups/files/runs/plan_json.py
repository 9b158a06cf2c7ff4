"""A plan as JSON: the offsets to write, the verdicts of checks, and the snapshot rows that the plan was made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from migrate_groups.errors import InvalidInput
from migrate_groups.files import strict_json
from migrate_groups.files.read import read_bytes
from migrate_groups.files.runs import change_json, translation_json
from migrate_groups.files.runs.change_json import ChangeJson, Int32, Int64, Metadata, Name, Topic
from migrate_groups.files.runs.translation_json import SourceJson, TranslatedJson
from migrate_groups.planning.check import Check, Verdict
from migrate_groups.planning.plan import Plan
from migrate_groups.schema import SNAPSHOT, Kind
from migrate_groups.snapshots.row import Row
from migrate_groups.snapshots.snapshot import COLUMNS, SnapshotTable

SCHEMA = "migrate-groups/plan"
SCHEMA_VERSION = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A saved plan, and the snapshot rows that it was made from. In each row, ``group`` is the target group."""

    plan: Plan
    rows: SnapshotTable


def _row_type() -> type[msgspec.Struct]:
    """Return the type of a row in a plan file. It has the columns of a snapshot, and its ``group`` is never null."""
    kinds: dict[Kind, Any] = {
        Kind.NAME: Name,
        Kind.TOPIC: Topic,
        Kind.TEXT: Metadata,
        Kind.INT32: Int32,
        Kind.INT64: Int64,
        Kind.TIMESTAMP: Annotated[datetime, msgspec.Meta(tz=True)],
    }
    fields = [
        (column.name, kinds[column.kind] | None if column.nullable and column.name != "group" else kinds[column.kind])
        for column in SNAPSHOT
    ]
    return msgspec.defstruct("RowJson", fields, bases=(strict_json.Strict,), frozen=True)


RowJson = _row_type()


class PlanJson(strict_json.Document, frozen=True, kw_only=True):
    """A plan: the change of each partition, the verdict of every check, and the snapshot rows that it was made from.

    schema: ``migrate-groups/plan``; schema_version: of this format; checksum: the SHA-256 of the file with an empty
    checksum. cluster_id: the cluster of the target groups. source: the source group if it is on another cluster;
    otherwise null. intent: the hash of what a reviewer approves, which ``--approved`` compares: clusters, groups,
    topics, partitions and options, without ``settle``, ``guard`` and ``second_client``. content: the hash of the same
    values and the offsets. verdict: the worst verdict of all checks. options: of the write. checks: in their order.
    changes: one for each partition, sorted by group, topic and partition. translations: each offset on the source
    cluster, with the corresponding offset in the mirror's copy; empty if ``source`` is null. rows: the snapshot rows
    that the plan was made from; in each, ``group`` is the target group.
    """

    cluster_id: str
    source: SourceJson | None
    intent: str
    content: str
    verdict: Verdict
    options: strict_json.OptionsJson  # type: ignore[valid-type]  # made from WriteOptions
    checks: tuple[Check, ...]
    changes: tuple[ChangeJson, ...]
    translations: tuple[TranslatedJson, ...]
    rows: tuple[RowJson, ...]  # type: ignore[valid-type]  # made from the schema


def to_bytes(plan: Plan, rows: Iterable[Row]) -> bytes:
    """Return the plan as the bytes of its JSON file.

    rows: the snapshot rows that the plan was made from, with the target group in ``group``.
    """
    return strict_json.encode(
        PlanJson(
            schema=SCHEMA,
            schema_version=SCHEMA_VERSION,
            cluster_id=plan.cluster_id,
            source=translation_json.source(plan.translation),
            intent=plan.intent,
            content=plan.content,
            verdict=plan.verdict,
            options=strict_json.options_json(plan.options),
            checks=plan.checks,
            changes=tuple(ChangeJson(*change_json.cells(change)) for change in plan.changes),
            translations=translation_json.lines(plan.translation),
            rows=tuple(RowJson(*msgspec.structs.astuple(row)[: len(COLUMNS)]) for row in rows),
        )
    )


def load(path: Path) -> PlanFile:
    """Return the plan in a file, and the snapshot rows that the plan was made from.

    Raises `InvalidInput` if the file can't be read, is not a plan, or was edited.
    """
    return read(read_bytes(path), str(path))


def read(data: bytes, name: str) -> PlanFile:
    """Return the plan in ``data``, the bytes of the file ``name``, and the snapshot rows that the plan was made from.

    Raises `InvalidInput` if the data is not a plan or was edited.
    """
    document = strict_json.decode(data, name, PlanJson, SCHEMA, SCHEMA_VERSION)
    plan = Plan(
        cluster_id=document.cluster_id,
        options=strict_json.options(document.options, name),
        changes=tuple(map(change_json.value, document.changes)),
        translation=translation_json.value(document.source, document.translations),
        checks=document.checks,
    )
    if (plan.intent, plan.content, plan.verdict) != (document.intent, document.content, document.verdict):
        raise InvalidInput(f"{name} was edited after it was written: its hashes differ; restore the original file")
    try:
        rows = SnapshotTable.of_rows(Row(*msgspec.structs.astuple(row)) for row in document.rows).at_one_moment()
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error
    return PlanFile(plan=plan, rows=rows)
