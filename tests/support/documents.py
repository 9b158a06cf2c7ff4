"""Parse the JSON documents that commands print, and check them with the schemas in docs/schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

DOCS = Path(__file__).parents[2] / "docs"
SCHEMAS = DOCS / "schemas"


def parsed(printed: str | bytes) -> dict[str, Any]:
    """Return the document that a command printed. Fail if it printed several, or if the schema rejects the document."""
    document = json.loads(printed)
    jsonschema.validate(
        document,
        json.loads((SCHEMAS / f"{name_of(document)}.json").read_text()),
        cls=jsonschema.Draft202012Validator,
    )
    return document


def name_of(document: dict[str, Any]) -> str:
    """Return the name of a document's schema."""
    return document.get("schema", "error").removeprefix("migrate-groups/")
