"""Write the JSON Schema of each document that commands print to docs/schemas.

A schema is made from the class of its document, and changes only with the class.
"""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from migrate_groups.files.runs.plan_json import PlanJson
from migrate_groups.files.runs.receipt_json import ReceiptJson
from migrate_groups.show import (  # noqa: F401  each module declares documents
    advice,
    after_split,
    audit,
    comparison,
    costs,
    doctor,
    event,
    fleet,
    groups,
    history,
    offset_files,
    reconciliation,
    run_status,
    short_results,
)
from migrate_groups.show.documents import Document, ErrorDocument

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"


def documents() -> Mapping[str, type[msgspec.Struct]]:
    """Return the class of each document, by the name of its schema."""
    tagged = {str(kind.__struct_config__.tag).rpartition("/")[2]: kind for kind in Document.__subclasses__()}
    return {"error": ErrorDocument, "plan": PlanJson, "receipt": ReceiptJson, **tagged}


def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a document. Every field is required, because every field is always printed."""
    made = msgspec.json.schema(kind, schema_hook=_hook)
    for each in made["$defs"].values():
        if "properties" in each:
            each["required"] = [*each["properties"]]
            for field in each["properties"].values():
                field.pop("default", None)
        if "description" in each:
            each["description"] = inspect.cleandoc(each["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def files() -> dict[str, str]:
    """Return the content of each file in docs/schemas, by its name."""
    return {f"{name}.json": json.dumps(schema(kind), indent=1) + "\n" for name, kind in documents().items()}


def _hook(kind: type) -> dict[str, str]:
    if kind is not Path:
        raise NotImplementedError(kind)
    return {"type": "string"}


def main() -> None:
    """Write the files, and delete the schemas of documents that no longer exist."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    FOLDER.mkdir(exist_ok=True)
    made = files()
    for path in FOLDER.glob("*.json"):
        if path.name not in made:
            path.unlink()
    for name, content in made.items():
        (FOLDER / name).write_text(content)


if __name__ == "__main__":
    main()
