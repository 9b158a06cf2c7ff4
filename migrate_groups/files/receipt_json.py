"""Receipts as JSON: what a rollback, a resumed run and a person who asks what happened start from."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from migrate_groups.files import change_json, strict_json
from migrate_groups.files.change_json import ChangeJson, CommittedJson, Int32
from migrate_groups.files.read import read_bytes
from migrate_groups.plan.receipt import Deed, Entry, Outcome, Purpose, Receipt

SCHEMA = "migrate-groups/receipt"
SCHEMA_VERSION = 2


class _Entry(ChangeJson, frozen=True):
    outcome: Outcome
    attempts: Int32
    error: str
    own: tuple[CommittedJson | None, ...]


class _Receipt(strict_json.Document, frozen=True, kw_only=True):
    deed: Deed
    answers: Annotated[datetime, msgspec.Meta(tz=True)] | None
    cluster_id: str
    intent: str
    content: str
    options: dict[str, Any]
    started_at: Annotated[datetime, msgspec.Meta(tz=True)]
    source_moved: tuple[str, ...]
    remarks: tuple[str, ...]
    entries: tuple[_Entry, ...]


def to_bytes(receipt: Receipt) -> bytes:
    """Return the bytes of the receipt's file."""
    return strict_json.encode(
        _Receipt(
            schema=SCHEMA,
            schema_version=SCHEMA_VERSION,
            deed=receipt.purpose.deed,
            answers=receipt.purpose.answers,
            cluster_id=receipt.cluster_id,
            intent=receipt.intent,
            content=receipt.content,
            options=asdict(receipt.options),
            started_at=receipt.started_at,
            source_moved=receipt.source_moved,
            remarks=receipt.remarks,
            entries=tuple(map(_entry, receipt.entries)),
        )
    )


def load(path: Path) -> Receipt:
    """Return the receipt in a file. Raises `InvalidInput` for anything that `to_bytes` did not write."""
    return read(read_bytes(path), str(path))


def read(data: bytes, name: str) -> Receipt:
    """Return the receipt in these bytes of the file ``name``. Raises as `load`."""
    document = strict_json.decode(data, name, _Receipt, SCHEMA, SCHEMA_VERSION)
    return Receipt(
        purpose=Purpose(deed=document.deed, answers=document.answers),
        cluster_id=document.cluster_id,
        intent=document.intent,
        content=document.content,
        options=strict_json.options(document.options, name),
        started_at=document.started_at,
        source_moved=document.source_moved,
        remarks=document.remarks,
        entries=tuple(map(_value, document.entries)),
    )


def _entry(entry: Entry) -> _Entry:
    return _Entry(*change_json.cells(entry.change), entry.outcome, entry.attempts, entry.error, entry.own)  # type: ignore[arg-type]


def _value(found: _Entry) -> Entry:
    change = change_json.value(found)
    own = tuple(map(change_json.committed, found.own))
    return Entry(change=change, outcome=found.outcome, attempts=found.attempts, error=found.error, own=own)
