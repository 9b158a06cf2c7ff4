"""Unusual names, metadata and offsets that Kafka allows are kept unchanged in every file that the tool writes."""

from __future__ import annotations

import json
import unicodedata

import pytest

from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.model.partitions import TopicPartition
from tests.support.cli import CliHere
from tests.support.raw_member import raw_member

NOW = ("--settle", "0s", "--guard", "0s", "--yes")
METADATA = ('"quoted", and\nlines\t' + "\x01binary\x7f " + "é漢😀" * 500).encode()[:4090].decode(errors="ignore")


@pytest.fixture
def cli(here: CliHere, bootstrap_servers: str, monkeypatch: pytest.MonkeyPatch) -> CliHere:
    """The command line in this process, connected to the broker."""
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_BOOTSTRAP_SERVER", bootstrap_servers)
    return here


@pytest.mark.parametrize(
    "unusual",
    [
        "with spaces  and / slashes \\ and ../..",
        "\"double\" 'single' `back` $HOME $(x) {y} [bold]z[/bold] %s",
        "größe-群-😀-\u202eevil",
        "control \n\r\t\x1b[31m\x07\x7f",
        "=HYPERLINK(1)",
        "-o",
        "g" * 4000,
    ],
    ids=["slashes", "quotes", "non-ASCII", "control characters", "formula", "option", "long"],
)
def test_groups_with_unusual_names_are_migrated(cli, world, unusual):
    """Groups with unusual names are migrated with offsets and metadata, and the output contains no control
    characters.
    """
    prefix = world.name("")
    topic = world.create_topic(2, topic=f"a.b_{'t' * (245 - len(prefix))}{prefix}"[:249])
    old, new = f"{unusual}{world.name('-old')}", f"{unusual}{world.name('-new')}"
    partitions = [TopicPartition(topic, number) for number in (0, 1)]
    for partition in partitions:
        world.produce(topic, partition.partition, 10)
        world.commit(old, partition, 4 + partition.partition, metadata=METADATA)
    source, target = (json.dumps(each, ensure_ascii=False).replace("\x7f", "\\u007f") for each in (old, new))
    spec = f'source = {source}\n[[target]]\ngroup = {target}\ntopics = ["a.b_*"]\n'
    (cli.folder / "split.toml").write_text(spec, encoding="utf-8")
    for said in (
        cli("describe", "--group", old).stdout,
        cli("snapshot", "--group", old, "-o", "s.csv").stderr,
        cli("apply", "s.csv", "--to-group", new, "--dry-run", "--settle", "0s").stdout,
        cli("migrate", "split.toml", *NOW).stdout,
    ):
        assert not [each for each in said if unicodedata.category(each) in ("Cc", "Cf") and each != "\n"]
    assert world.committed(new) == {partitions[0]: 4, partitions[1]: 5}
    assert [(row.group, row.metadata) for row in tables.load(cli.folder / "s.csv").rows()] == [(old, METADATA)] * 2
    receipt = json.loads((cli.folder / "split.toml.run" / "receipt.json").read_text())
    assert [(entry["group"], entry["after"]["metadata"]) for entry in receipt["entries"]] == [(new, METADATA)] * 2
    assert {path.name for path in cli.folder.iterdir()} == {"split.toml", "split.toml.run", "s.csv"}
    cli("rollback", "split.toml.run", "--yes")
    assert world.committed(new) == {}


def test_largest_offset_is_read_exactly_and_not_handed_over(cli, world):
    """A committed offset of 2^63 - 1 is read, saved and shown exactly; `apply` refuses it, because it is beyond the log
    end.
    """
    partition, group, largest = TopicPartition(world.create_topic(), 0), world.name("far"), 2**63 - 1
    world.commit(group, partition, largest)
    assert f" {largest} " in cli("describe", group).stdout
    cli("snapshot", group, "-o", "s.csv")
    cli("snapshot", group, "-o", "s.parquet")
    for file in ("s.csv", "s.parquet"):
        assert [row.offset for row in tables.load(cli.folder / file).rows()] == [largest]
        refusal = cli.fails("apply", file, "--to-group", f"{group}-new", *NOW, code=3)
        assert f"{partition} at {largest}" in refusal
    assert world.committed(f"{group}-new") == {}


def test_member_with_malformed_metadata_is_an_error(cli, world):
    """If a member of protocol type ``consumer`` sends malformed metadata, `describe`, `verify` and `snapshot` fail.

    The error names the group and the member.
    """
    partition, group = TopicPartition(world.create_topic(), 0), world.name("garbled")
    world.commit(group, partition, 0)
    with raw_member(world.bootstrap_servers, group, metadata=b"\0") as member_id:
        for command in (("describe",), ("verify", "--wait", "0s", "--settle", "0s"), ("snapshot", "-o", "s.csv")):
            refusal = cli.fails(command[0], group, *command[1:], code=3)
            assert f"group {group!r}" in refusal
            assert f"member {member_id} (raw-app at " in refusal
    cli("describe", group)
