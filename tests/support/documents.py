"""Parse the JSON documents that commands print, and check them with the schemas in docs/schemas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

DOCS = Path(__file__).parents[2] / "docs"
SCHEMAS = DOCS / "schemas"


def parsed(printed: str | bytes) -> dict[str, Any]:
    """Return the document that a command printed. Fail if it printed several, or if the schema rejects the document."""
    document = json.loads(printed)
    _validator(name_of(document)).validate(document)
    return document


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def name_of(document: dict[str, Any]) -> str:
    """Return the name of a document's schema."""
    return document.get("schema", "error").removeprefix("migrate-groups/")
