"""docs/reference/files.md names exactly the columns and fields that the code writes."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest

from migrate_groups.files import translated_offsets_parquet
from migrate_groups.files.runs import copied_log, plan_json, receipt_json, stop_checkpoint_parquet, translation_json
from migrate_groups.files.runs.change_json import ChangeJson, CommittedJson
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.strict_json import Document
from migrate_groups.planning.options import WriteOptions
from migrate_groups.schema import OLDEST_UNCONSUMED, SNAPSHOT

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of docs/reference/files.md, by row, without the header."""
    below = re.split(rf"^#+ {re.escape(heading)}$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    table = re.search(r"(?:^\|.*\n)+", below, flags=re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[0].splitlines()[2:]]


def names(heading: str) -> list[str]:
    """Return the names in the first column of the first table below a heading. A cell may contain several names."""
    return [name for row in rows(heading) for name in re.findall(r"`([^`]+)`", row[0])]


def test_the_columns_of_a_snapshot_have_their_types():
    """docs/reference/files.md lists a snapshot's columns in order, each with its type and whether it may be null."""
    told = [tuple(row[:3]) for row in rows("Columns of a snapshot")]
    assert told == [
        (f"`{column.name}`", column.kind, "yes" if column.nullable else "no")
        for column in (*SNAPSHOT, OLDEST_UNCONSUMED)
    ]


@pytest.mark.parametrize(
    ("heading", "struct"),
    [
        ("Fields of both", Document),
        ("Plan", plan_json.PlanJson),
        ("Check", plan_json.CheckJson),
        ("Change", ChangeJson),
        ("Committed offset", CommittedJson),
        ("Receipt", receipt_json.ReceiptJson),
        ("Execution", receipt_json.ExecutionJson),
        ("Entry", receipt_json.EntryJson),
        ("Source", translation_json.SourceJson),
        ("Translation", translation_json.TranslatedJson),
    ],
)
def test_the_fields_of_plan_and_receipt_are_told(heading, struct):
    """Each kind of object in a plan or receipt has a table in docs/reference/files.md with exactly its fields."""
    inherited = {
        "Plan": Document.__struct_fields__,
        "Receipt": Document.__struct_fields__,
        "Entry": ChangeJson.__struct_fields__,
    }
    own = [name for name in struct.__struct_fields__ if name not in inherited.get(heading, ())]
    assert names(heading) == own


def test_the_options_of_a_write_are_told():
    """The table "Options" in docs/reference/files.md lists exactly the fields of `WriteOptions`."""
    assert sorted(names("Options")) == sorted(field.name for field in fields(WriteOptions))


def test_the_files_of_a_run_directory_are_told():
    """The table "The run directory" in docs/reference/files.md lists exactly the files of a run directory."""
    run = RunDir(Path("run"))
    properties = [getattr(run, name) for name, member in vars(RunDir).items() if isinstance(member, property)]
    files = [path.name for path in properties if isinstance(path, Path)]
    assert sorted(names("The run directory")) == sorted(files)


@pytest.mark.parametrize(
    ("heading", "schema"),
    [
        ("Stop checkpoints", stop_checkpoint_parquet.SCHEMA),
        ("The copied log", copied_log.SCHEMA),
        ("Table of compare", translated_offsets_parquet.SCHEMA),
    ],
)
def test_the_columns_of_parquet_files_have_their_types(heading, schema):
    """docs/reference/files.md lists each Parquet file's columns, each with its type and whether it may be null."""
    told = {name: (kind, null) for first, kind, null, *_ in rows(heading) for name in re.findall(r"`([^`]+)`", first)}
    assert told == {field.name: (f"`{_spelled(field.type)}`", "yes" if field.nullable else "no") for field in schema}


def _spelled(kind: pa.DataType) -> str:
    return str(kind).replace("tz=", "")
