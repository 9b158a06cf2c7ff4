"""`export --for spark` and ``--for connect``: offsets in the formats of Spark and of Kafka Connect."""

from __future__ import annotations

import json

import pytest

from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.snapshots.snapshot import SnapshotTable
from tests.support.cli import Cli
from tests.support.rows import row

ROWS = (("orders", 0, 12), ("orders", 1, None), ("pay", 0, 7))


@pytest.fixture
def here(tmp_path):
    return Cli(tmp_path)


def write(cli, *rows):
    """Write ``before.csv``, with rows of a topic, partition, offset and, if it is not shop, group."""
    made = [
        row(topic=topic, partition=number, offset=offset, group=group[0] if group else "shop")
        for topic, number, offset, *group in rows
    ]
    tables.save(SnapshotTable.of_rows(made), cli.folder / "before.csv")


def exported(cli, *options):
    """Return the file that ``export`` writes, and what it prints on stderr."""
    done = cli("export", "before.csv", "-o", "out.json", "--force", *options)
    return json.loads((cli.folder / "out.json").read_text()), done.stderr


@pytest.mark.parametrize(("reset", "offset"), [("earliest", -2), ("latest", -1)])
def test_spark_gets_every_partition(here, reset, offset):
    """The file for Spark has each partition of the group; one without a committed offset starts where the user says.

    The output says that Spark ignores the offsets if it has a checkpoint.
    """
    write(here, *ROWS)
    found, said = exported(here, "--for", "spark", "--on-uncommitted", reset)
    assert found == {"orders": {"0": 12, "1": offset}, "pay": {"0": 7}}
    assert "3 partitions exported, 0 without a commit left out" in said
    assert "a query that has a checkpoint ignores startingOffsets" in said


def test_spark_needs_to_know_where_uncommitted_partitions_start(here):
    """Without ``--on-uncommitted`` a partition without a committed offset is refused, and nothing is written."""
    write(here, *ROWS)
    assert here.fails("export", "before.csv", "-o", "out.json", "--for", "spark", code=2) == (
        "error: 1 partition without a committed offset: orders-1; pass --on-uncommitted earliest, or latest if the "
        "group's applications have auto.offset.reset=latest"
    )
    assert not (here.folder / "out.json").exists()


def test_spark_needs_every_partition_of_a_topic(here):
    """A file that lacks a partition of a topic, as after ``filter --partition``, is refused for Spark."""
    write(here, ("orders", 0, 12), ("orders", 2, 7), ("orders", 2**31 - 1, 1))
    assert here.fails("export", "before.csv", "-o", "out.json", "--for", "spark", code=2) == (
        "error: the file lacks orders-1, and Spark needs each partition of a topic: take a snapshot of the whole group"
    )


def test_connect_gets_the_body_of_its_request(here):
    """The file for Connect is the body of ``PATCH /connectors/NAME/offsets``, without uncommitted partitions."""
    write(here, *ROWS)
    found, said = exported(here, "--for", "connect")
    assert found == {
        "offsets": [
            {"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": offset}}
            for topic, offset in (("orders", 12), ("pay", 7))
        ]
    }
    assert "2 partitions exported, 1 without a commit left out" in said
    assert "PATCH /connectors/NAME/offsets while the connector is STOPPED" in said


@pytest.mark.parametrize("state", ["Empty", "Stable", "Unknown"])
def test_a_group_that_had_not_stopped_is_said(here, state):
    """The output says if the group had not stopped when the snapshot was taken, or if nobody asked whether it had."""
    tables.save(SnapshotTable.of_rows([row(group_state=state)]), here.folder / "before.csv")
    _, said = exported(here, "--for", "spark")
    assert ("the snapshot does not show that the group had stopped" in said) == (state != "Empty")


@pytest.mark.parametrize("tool", ["spark", "connect"])
def test_offsets_of_one_group_only(here, tool):
    """Spark and Connect have one set of offsets, so a file of several groups is refused."""
    write(here, ("orders", 0, 12), ("pay", 0, 7, "other"))
    assert here.fails("export", "before.csv", "-o", "out.json", "--for", tool, code=2) == (
        f"error: offsets of groups other, shop, and {tool} takes those of one: select it with filter --group"
    )


def test_options_that_do_not_fit_the_format(here):
    """JSON goes to a .json file, CSV to a .csv file, and ``--on-uncommitted`` belongs to Spark."""
    write(here, *ROWS)
    for tool, name, wanted in (("spark", "out.csv", "JSON; name a .json"), ("connect", "out", "JSON; name a .json")):
        assert here.fails("export", "before.csv", "-o", name, "--for", tool, code=2).endswith(wanted)
    assert "takes CSV; name a .csv" in here.fails("export", "before.csv", "-o", "out.json", code=2)
    assert "--on-uncommitted" in here.fails(
        *("export", "before.csv", "-o", "out.json", "--for", "connect", "--on-uncommitted", "latest"), code=2
    )


def test_kafkas_tool_gets_no_offsets_of_a_share_group(here):
    """Start offsets for a share group are not exported for Kafka's tool, which would make a consumer group of it."""
    rows = [row(group="queue", source_group="shop", group_type="share"), row(group="plain", source_group="shop")]
    tables.save(SnapshotTable.of_rows(rows), here.folder / "split.csv")
    error = here.fails("export", "split.csv", "-o", "out.csv", code=2)
    assert "share group queue: kafka-consumer-groups would make a consumer group of it" in error
    assert not (here.folder / "out.csv").exists()


def test_offsets_without_a_group(here):
    """A file of ``kafka-consumer-groups --export`` names no group, and is exported as well, also to stdout."""
    (here.folder / "kafka.csv").write_text("orders,0,12\norders,1,5\n")
    done = here("export", "kafka.csv", "-o", "-", "--for", "spark")
    assert json.loads(done.stdout) == {"orders": {"0": 12, "1": 5}}
