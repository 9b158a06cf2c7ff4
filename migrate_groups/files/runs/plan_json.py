"""Plans as JSON: the plan that a reviewer approves, and the snapshot rows from which it can be made again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from migrate_groups.errors import InvalidInput
from migrate_groups.files import strict_json
from migrate_groups.files.read import read_bytes
from migrate_groups.files.runs import change_json
from migrate_groups.files.runs.change_json import ChangeJson, Int32, Int64, Name, Topic
from migrate_groups.planning.plan import Check, Plan, Verdict
from migrate_groups.schema import SNAPSHOT, Kind
from migrate_groups.snapshots.snapshot import COLUMNS, Row, Snapshot

SCHEMA = "migrate-groups/plan"
SCHEMA_VERSION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A saved plan, and the snapshot rows that it was made from; in each row ``group`` is the target group."""

    plan: Plan
    rows: Snapshot


class _Check(strict_json.Strict, frozen=True):
    name: Name
    verdict: Verdict
    reason: str


def _row_type() -> type[msgspec.Struct]:
    """Return the type of a row in a plan file: an object with the columns of a snapshot; ``group`` is never null."""
    kinds: dict[Kind, Any] = {
        Kind.NAME: Name,
        Kind.TOPIC: Topic,
        Kind.TEXT: str,
        Kind.INT32: Int32,
        Kind.INT64: Int64,
        Kind.TIMESTAMP: Annotated[datetime, msgspec.Meta(tz=True)],
    }
    fields = [
        (column.name, kinds[column.kind] | None if column.nullable and column.name != "group" else kinds[column.kind])
        for column in SNAPSHOT
    ]
    return msgspec.defstruct("_Row", fields, bases=(strict_json.Strict,), frozen=True)


_Row = _row_type()


class _Plan(strict_json.Document, frozen=True, kw_only=True):
    cluster_id: str
    intent: str
    content: str
    verdict: Verdict
    options: dict[str, Any]
    checks: tuple[_Check, ...]
    changes: tuple[ChangeJson, ...]
    rows: tuple[_Row, ...]  # type: ignore[valid-type]  # made from the schema


def to_bytes(plan: Plan, rows: Iterable[Row]) -> bytes:
    """Return the bytes of the plan's file; ``rows`` are the snapshot rows that the plan was made from."""
    return strict_json.encode(
        _Plan(
            schema=SCHEMA,
            schema_version=SCHEMA_VERSION,
            cluster_id=plan.cluster_id,
            intent=plan.intent,
            content=plan.content,
            verdict=plan.verdict,
            options=asdict(plan.options),
            checks=tuple(_Check(check.name, check.verdict, check.reason) for check in plan.checks),
            changes=tuple(ChangeJson(*change_json.cells(change)) for change in plan.changes),
            rows=tuple(_Row(*msgspec.structs.astuple(row)[: len(COLUMNS)]) for row in rows),
        )
    )


def load(path: Path) -> PlanFile:
    """Return the plan in a file. Raises `InvalidInput` for any content that `to_bytes` did not write."""
    return read(read_bytes(path), str(path))


def read(data: bytes, name: str) -> PlanFile:
    """Return the plan in ``data``, the bytes of the file ``name``. Raises as `load`."""
    document = strict_json.decode(data, name, _Plan, SCHEMA, SCHEMA_VERSION)
    plan = Plan(
        cluster_id=document.cluster_id,
        options=strict_json.options(document.options, name),
        changes=tuple(map(change_json.value, document.changes)),
        checks=tuple(Check(name=check.name, verdict=check.verdict, reason=check.reason) for check in document.checks),
    )
    if (plan.intent, plan.content, plan.verdict) != (document.intent, document.content, document.verdict):
        raise InvalidInput(f"{name} was edited after it was written: its hashes differ; make it anew")
    try:
        rows = Snapshot.of_rows(Row(*msgspec.structs.astuple(row)) for row in document.rows).at_one_moment()
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error
    return PlanFile(plan=plan, rows=rows)
