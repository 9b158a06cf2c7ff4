"""docs/reference/files.md and the schemas name exactly the columns and fields that the code writes."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from migrate_groups.files import translated_offsets_parquet
from migrate_groups.files.runs import copied_log, plan_json, receipt_json, stop_checkpoint_parquet, translation_json
from migrate_groups.files.runs.change_json import ChangeJson, CommittedJson
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.strict_json import OptionsJson
from migrate_groups.planning.check import Check
from migrate_groups.planning.outage import FirstSign, Outage
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
    "struct",
    [
        plan_json.PlanJson,
        Check,
        ChangeJson,
        CommittedJson,
        OptionsJson,
        receipt_json.ReceiptJson,
        receipt_json.ExecutionJson,
        Outage,
        FirstSign,
        receipt_json.EntryJson,
        translation_json.SourceJson,
        translation_json.TranslatedJson,
        receipt_json.TranslationJson,
    ],
)
def test_the_schemas_of_plan_and_receipt_describe_each_field(struct):
    """The docstring of each kind of object in a plan or receipt names each field. It is in docs/schemas."""
    described = " ".join(kind.__doc__ or "" for kind in struct.__mro__ if kind is not msgspec.Struct)
    unnamed = {name for name in struct.__struct_fields__ if not re.search(rf"\b{name}\b", described)}
    assert unnamed == set()


def test_the_fields_that_the_page_explains_exist():
    """The table "Plans and receipts" in docs/reference/files.md has only fields of a plan or a receipt."""
    kinds = (plan_json.PlanJson, receipt_json.ReceiptJson, receipt_json.ExecutionJson, receipt_json.EntryJson)
    assert {*names("Plans and receipts")} <= {name for kind in kinds for name in kind.__struct_fields__}


def test_the_page_has_the_schema_versions():
    """docs/reference/files.md names the schema versions of a plan and of a receipt."""
    plan, receipt = plan_json.SCHEMA_VERSION, receipt_json.SCHEMA_VERSION
    assert f"`schema_version` is {plan} in a plan and {receipt} in a receipt" in PAGE.read_text(encoding="utf-8")


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
