"""Files of each released version stay readable, and no name of the command line, API or JSON documents is lost.

``tests/data/released/VERSION`` has what that version wrote. ``GOLDEN=write`` writes the folder of the current version
anew, which is allowed until that version is released. Folders of released versions never change.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
import typer.main
from msgspec import structs

import migrate_groups
from migrate_groups.api import operator
from migrate_groups.cli.registry import COMMANDS, command_line
from migrate_groups.errors import InvalidInput
from migrate_groups.files import split_toml
from migrate_groups.files.parquet import read_table, write_table
from migrate_groups.files.runs import plan_json, receipt_json, stop_checkpoint_parquet
from migrate_groups.files.runs.copied_log import CopiedLog
from migrate_groups.files.runs.run_dir import RunDir
from migrate_groups.files.snapshots import any_format
from migrate_groups.planning.change import Outcome
from tests.support.connected import MIGRATE, Connected
from tests.support.documents import SCHEMAS

RELEASED = Path(__file__).parents[1] / "data" / "released"
CURRENT = RELEASED / migrate_groups.__version__
RUN = "split.toml.run"
SNAPSHOTS = ("snapshot.csv", "snapshot.parquet")


def names() -> dict[str, Any]:
    """Return the names that a release promises: of the API, of commands with options, exit codes, and of documents."""
    commands = typer.main.get_group(command_line()).commands
    return {
        "python": sorted(migrate_groups.__all__),
        "options": sorted(
            f"{name} {option}"
            for name, command in commands.items()
            for parameter in command.params
            for option in parameter.opts
            if option.startswith("-")
        ),
        "exit codes": sorted(f"{name} {code}" for name, each in COMMANDS.items() for code in each.exit_codes),
        "documents": sorted(field for path in SCHEMAS.glob("*.json") for field in fields(path)),
    }


def fields(path: Path) -> Iterator[str]:
    """Yield each field of the objects of a JSON schema, with its type, after the document's name and version."""
    schema = json.loads(path.read_text())
    for title, kind in schema["$defs"].items():
        for name, of in kind.get("properties", {}).items():
            described = {key: value for key, value in of.items() if key not in ("description", "default", "title")}
            yield f"{path.stem} {title}.{name} {json.dumps(described, sort_keys=True)}"


def write(cli: Connected, folder: Path) -> None:
    """Write what this version writes to a folder, which is made anew."""
    cli("snapshot", "old", "-o", "snapshot.csv")
    cli("snapshot", "old", "-o", "snapshot.parquet")
    cli("migrate", "split.toml", "--dry-run", "--plan-out", "plan.json")
    with mock.patch.object(operator, "_operator", return_value="alice@bastion"):
        cli(*MIGRATE, "--events", "events.jsonl")
    cli("export", f"{RUN}/split.parquet", "-o", "reset.csv")
    log = CopiedLog.load_with_starts(cli.folder / "log", "cluster", {1: 10})
    log.with_records([(1, 10, 1763610000123, "record", b"key", b"value", None)], {1: 11})
    shutil.rmtree(folder, ignore_errors=True)
    hidden = shutil.ignore_patterns(".*", "split.csv")
    shutil.copytree(cli.folder, folder, ignore=hidden)
    (folder / "names.json").write_text(json.dumps(names(), indent=1) + "\n")


@pytest.fixture(autouse=True, scope="module")
def _written(tmp_path_factory) -> None:
    if os.environ.get("GOLDEN") == "write":
        with pytest.MonkeyPatch.context() as patched:
            write(Connected(tmp_path_factory.mktemp("now"), patched), CURRENT)


@pytest.fixture(params=sorted({migrate_groups.__version__, *(each.name for each in RELEASED.glob("*"))}))
def released(request, tmp_path) -> Path:
    """A copy of the files of a released version."""
    return Path(shutil.copytree(RELEASED / request.param, tmp_path / "released"))


@pytest.mark.parametrize("name", [*SNAPSHOTS, f"{RUN}/before.parquet", f"{RUN}/baseline.parquet"])
def test_snapshots_of_each_version_are_read(released, name):
    """A snapshot has the committed offset that the version wrote, as CSV and as Parquet."""
    [row] = any_format.load(released / name).rows()
    assert (row.group, row.topic, row.partition, row.offset) == ("old", "t", 0, 5)
    assert row.log_end_offset == 10


def test_both_formats_of_each_version_have_the_same_rows(released):
    """The CSV and the Parquet file of a version have equal rows, except for the time of the reading."""
    one, other = (list(any_format.load(released / each).rows()) for each in SNAPSHOTS)
    assert [structs.replace(each, taken_at=None) for each in one] == [
        structs.replace(each, taken_at=None) for each in other
    ]
    assert None not in {each.taken_at for each in (*one, *other)}


def test_a_reset_file_and_a_spec_of_each_version_are_read(released):
    """A reset file has its offset, and a spec its groups and options."""
    [row] = any_format.load(released / "reset.csv").rows()
    assert (row.topic, row.partition, row.offset) == ("t", 0, 5)
    file = split_toml.load(released / "split.toml")
    assert ([each.group for each in file.spec.targets], file.options.guard) == (["new"], 0.001)


@pytest.mark.parametrize("name", ["plan.json", f"{RUN}/plan.json"])
def test_plans_of_each_version_are_read(released, name):
    """A plan has its changes and its hashes. The reader computes the hashes again, and compares them."""
    [change] = plan_json.load(released / name).plan.changes
    assert change.after is not None
    assert (change.source_group, change.group, change.after.offset) == ("old", "new", 5)


def test_the_run_of_each_version_is_read(released):
    """A run directory has its receipt with the outcome, and the stop checkpoints of its plan."""
    receipt = receipt_json.load(released / RUN / "receipt.json")
    [execution] = receipt.executions
    assert [change.outcome for change in execution.changes] == [Outcome.CONFIRMED]
    assert execution.by.operator == "alice@bastion"
    assert execution.content == plan_json.load(released / RUN / "plan.json").plan.content
    [checkpoint] = RunDir(released / RUN).checkpoints(execution.content)
    assert len(checkpoint.ends) == 50


def test_the_run_of_each_version_can_be_rolled_back(released, tmp_path, monkeypatch):
    """`status` and `rollback` take the run of a version, whose offsets the cluster still has."""
    (tmp_path / "here").mkdir()
    cli = Connected(tmp_path / "here", monkeypatch)
    cli(*MIGRATE)
    shutil.rmtree(cli.folder / RUN)
    shutil.copytree(released / RUN, cli.folder / RUN)
    assert json.loads(cli("status", RUN, "--format", "json").stdout)["commands"]
    cli("rollback", RUN, "--yes")
    assert (cli.offset("old"), cli.offset("new")) == (5, None)


def test_the_copied_log_of_each_version_is_continued(released):
    """A copied log has the offsets that it covers, and is continued after them."""
    log = CopiedLog.load(released / "log", "cluster")
    assert (log.starts, log.ends, log.files) == ({1: 10}, {1: 11}, 1)
    log.with_records([(1, 11, 1763610000124, "record", b"key", None, None)], {1: 12})
    assert CopiedLog.load(released / "log", "cluster").ends == {1: 12}


def test_no_name_of_a_version_is_lost(released):
    """Every option, exit code, name of the API and field of a JSON document of a version is still there.

    Before 1.0 a minor version may remove one. Then the CHANGELOG says so, and the older ``names.json`` loses its line.
    """
    told, now = json.loads((released / "names.json").read_text()), names()
    assert [f"{kind}: {name}" for kind, of in told.items() for name in of if name not in now[kind]] == []


def test_events_of_each_version_have_the_fields_of_today(released):
    """Each line of the events file has fields that the schema of today has."""
    known = {line.split()[1].partition(".")[2] for line in names()["documents"] if line.startswith("event ")}
    lines = [json.loads(line) for line in (released / "events.jsonl").read_text().splitlines()]
    assert lines
    assert {field for line in lines for field in line} <= known


@pytest.mark.parametrize("name", ["snapshot.parquet", f"{RUN}/stop_checkpoints.parquet"])
def test_a_later_parquet_file_is_refused_by_its_name(tmp_path, name):
    """A file with a column that a later version added is refused in one line, with what to do."""
    path = tmp_path / Path(name).name
    table = read_table((CURRENT / name).read_bytes(), name)
    with path.open("wb") as file:
        write_table(table.append_column("later", pa.array(["x"] * table.num_rows)), file)
    load = stop_checkpoint_parquet.load if RUN in name else any_format.load
    with pytest.raises(InvalidInput, match=r"install the version that wrote") as raised:
        load(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_later_csv_file_is_refused_by_its_name(tmp_path):
    """A CSV snapshot with a column that a later version added is refused in one line, with what to do."""
    path = tmp_path / "s.csv"
    lines = (CURRENT / "snapshot.csv").read_text().splitlines()
    path.write_text("".join(f"{line},{more}\n" for line, more in zip(lines, ("later", "x"), strict=True)))
    with pytest.raises(InvalidInput, match=r"s.csv, line 1: unknown column later; .* install the version that wrote"):
        any_format.load(path)
