"""Plans and receipts as JSON with a schema version: the same input gives the same bytes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from migrate_groups.plan.plan import Change, Plan
from migrate_groups.plan.receipt import Receipt

SCHEMA_VERSION = 1


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values."""
    return {
        "schema": "migrate-groups/plan",
        "schema_version": SCHEMA_VERSION,
        "cluster_id": plan.cluster_id,
        "intent": plan.intent,
        "content": plan.content,
        "verdict": plan.verdict,
        "options": asdict(plan.options),
        "checks": [asdict(check) for check in plan.checks],
        "changes": [_change(change) for change in plan.changes],
    }


def receipt_document(receipt: Receipt) -> dict[str, Any]:
    """Return a receipt as JSON values."""
    return {
        "schema": "migrate-groups/receipt",
        "schema_version": SCHEMA_VERSION,
        "cluster_id": receipt.cluster_id,
        "intent": receipt.intent,
        "content": receipt.content,
        "started_at": receipt.started_at.isoformat().replace("+00:00", "Z"),
        "source_moved": list(receipt.source_moved),
        "remarks": list(receipt.remarks),
        "entries": [
            {"outcome": entry.outcome, "attempts": entry.attempts, "error": entry.error, **_change(entry.change)}
            for entry in receipt.entries
        ],
    }


def to_bytes(document: dict[str, Any]) -> bytes:
    """Return a document as the bytes of a file."""
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def _change(change: Change) -> dict[str, Any]:
    return {"action": change.action, **asdict(change)}
