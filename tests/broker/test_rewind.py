"""`rewind` on a real broker, for each kind of target and of log."""

from __future__ import annotations

import base64
import csv
import io
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.broker import start_sandbox
from tests.support.broker_world import broker_world, until
from tests.support.cli import CliHere
from tests.support.versions import NEEDS_FAILED_DISKS, NEEDS_TOOL, NEEDS_TRANSACTIONS

T = 1_700_000_000_000  # 2023-11-14T22:13:20Z
KEPT = {"retention.ms": "-1"}


def at(seconds: float) -> str:
    """Return the RFC 3339 timestamp of ``T`` plus this number of seconds."""
    return f"{datetime.fromtimestamp(T / 1000 + seconds, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def records(world, topic: str, partition: int, *seconds: float) -> None:
    world.produce_in_order(topic, partition, [(f"at {each}", T + int(1000 * each)) for each in seconds])


def rewound(cli, *arguments: object) -> tuple[list[str], str]:
    """Run `rewind`. Return the offset of each partition (``""``: no offset), and stderr."""
    done = cli("rewind", *arguments, "-o", "-")
    return [row["offset"] for row in csv.DictReader(io.StringIO(done.stdout))], done.stderr


def notes(said: str) -> list[str]:
    """Return the kinds of notes about partitions that `rewind` printed, for example ``past end``, without their
    reasons.
    """
    return re.findall(r"\d  ([a-z ]+): ", said)


@pytest.fixture
def cli(bootstrap_servers, tmp_path) -> CliHere:
    """The command line in an empty folder, with the broker's address in the environment."""
    return CliHere(tmp_path, bootstrap_servers)


@pytest.fixture
def topic(world) -> str:
    """A topic whose records are one second apart: ten from ``T`` on in partition 0, none in 1, and five before ``T`` in
    2.
    """
    name = world.create_topic(3, **KEPT)
    records(world, name, 0, *range(10))
    records(world, name, 2, *range(-5, 0))
    return name


@pytest.mark.parametrize(
    ("time", "first"), [(at(3), "3"), (at(2.001), "3"), (at(-3600), "0"), (str(T + 9000), "9"), (at(9), "9")]
)
def test_rewind_to_a_time_finds_the_first_record_at_or_after_it(cli, topic, time, first):
    """``rewind --to-datetime`` finds the first record at or after the time; if there is none, it takes the log end
    offset.

    The time is an RFC 3339 timestamp or a number of milliseconds.
    """
    offsets, said = rewound(cli, "--topic", topic, "--to-datetime", time)
    before = time == at(-3600)
    assert offsets == [first, "0", "0" if before else "5"]
    assert notes(said) == (["empty"] if before else ["empty", "past end"])


def test_past_end_skips_or_refuses_a_partition(cli, topic):
    """If a time is after a partition's last record, ``--past-end skip`` gives no offset, and ``--past-end fail``
    refuses.

    Empty partitions are not refused.
    """
    by_time = ("--topic", topic, "--to-datetime", at(4))
    offsets, said = rewound(cli, *by_time, "--past-end", "skip")
    assert offsets == ["4", "0", ""]
    assert "1 skipped" in said
    refusal = cli.fails("rewind", *by_time, "--past-end", "fail", "-o", "out.csv", code=3)
    assert f"{topic}-2 (past end" in refusal
    assert f"{topic}-1" not in refusal
    assert list(cli.folder.iterdir()) == []


def test_output_shows_the_time_in_utc_and_in_the_time_zone(cli, topic):
    """If ``--to-datetime`` has no UTC offset, it is a time in the zone ``--timezone``; stderr shows it in UTC and in
    this zone.
    """
    _, said = rewound(cli, "--topic", topic, "--to-datetime", "2023-11-15T09:13:22", "--timezone", "Australia/Sydney")
    assert said.startswith("from 2023-11-14T22:13:22Z = 2023-11-15T09:13:22+11:00 (Australia/Sydney)\n")


def test_rewind_by_a_duration(cli, world):
    """``rewind --by-duration`` counts back from now: only records within the duration are read again."""
    name = world.create_topic(1, **KEPT)
    now = int(time.time())
    for minutes in (120, 60, 30):
        world.produce(name, 0, 1, timestamp=1000 * (now - 60 * minutes))
    for span, first in (("90m", "1"), ("PT45M", "2"), ("P1D", "0"), ("PT10M", "3")):
        assert rewound(cli, "--topic", name, "--by-duration", span)[0] == [first], span


@pytest.fixture
def group(world, topic) -> str:
    """A group with committed offset 8 in partition 0 of the topic, none in partition 1, and 2 in partition 2."""
    name = world.name("orders")
    for partition, offset in ((0, 8), (2, 2)):
        world.commit(name, TopicPartition(topic, partition), offset, metadata="of the old group")
    return name


@pytest.mark.parametrize(
    ("target", "expected", "noted"),
    [
        (["--to-earliest"], ["0", "0", "0"], []),
        (["--to-latest"], ["10", "0", "5"], []),
        (["--to-current"], ["8", "", "2"], ["no commit"]),
        (["--shift-by", "-2"], ["6", "", "0"], ["no commit"]),
        (["--shift-by", "-3"], ["5", "", "0"], ["no commit", "clamped"]),
        (["--shift-by", "+3"], ["10", "", "5"], ["clamped", "no commit"]),
        (["--to-offset", "6"], ["6", "0", "5"], ["clamped", "clamped"]),
    ],
    ids=" ".join,
)
def test_rewind_to_targets_other_than_a_time(cli, topic, group, target, expected, noted):
    """If a target offset is outside the log, `rewind` takes the log start or log end offset instead, and notes
    ``clamped``.

    If a target needs a committed offset, and there is none, `rewind` gives no offset, and notes ``no commit``.
    """
    offsets, said = rewound(cli, "--group", group, *target)
    assert offsets == expected
    assert notes(said) == noted


def test_strict_refuses_a_target_outside_the_log(cli, group):
    """If a target offset is outside the log, ``rewind --strict`` ends with exit code 3, and writes no file."""
    refusal = cli.fails("rewind", "--group", group, "--shift-by", "+3", "--strict", "-o", "out.csv", code=3)
    assert "clamped: 11 requested, but the log ends at 10" in refusal
    assert list(cli.folder.iterdir()) == []


@NEEDS_TOOL
def test_rewind_and_kafkas_tool_give_the_same_offsets(cli, kafka_tool, topic, group):
    """`rewind` and Kafka's tool find the same offsets for the same options, also for a time after the last record."""
    for target in (["--to-datetime", at(4)], ["--to-datetime", at(60)], ["--to-earliest"], ["--to-offset", "6"]):
        done = kafka_tool("--group", group, "--reset-offsets", "--topic", topic, *target, "--dry-run")
        kafkas = dict(re.findall(rf"^{group} +{topic} +(\d+) +(\d+)", done.stdout, re.MULTILINE))
        assert rewound(cli, "--topic", topic, *target)[0] == [kafkas[number] for number in "012"], target


def test_rewind_to_a_time_before_the_log_start(cli, world, topic):
    """If records after the target time are deleted, `rewind` takes the log start, and shows how many seconds of records
    are missing.

    ``--strict`` ends with exit code 3.
    """
    world.delete_records(topic, 0, 4)
    by_time = ("--topic", topic, "--partition", "0", "--to-datetime", at(1))
    offsets, said = rewound(cli, *by_time)
    assert offsets == ["4"]
    assert "gone: up to 3 s of records deleted: the log starts at 4, with a record of 2023-11-14T22:13:24Z" in said
    assert "gone: up to 3 s" in cli.fails("rewind", *by_time, "--strict", "-o", "out.csv", code=3)
    assert notes(rewound(cli, "--topic", topic, "--partition", "0", "--to-datetime", at(5))[1]) == []


def test_rewind_of_a_partition_without_records(cli, world, topic):
    """If a partition has no records left, `rewind` takes its log end offset, and says that it is empty."""
    world.delete_records(topic, 2, 5)
    offsets, said = rewound(cli, "--topic", topic, "--partition", "2", "--to-datetime", at(-4))
    assert offsets == ["5"]
    assert "empty: no records are left: the log starts at 5" in said


def test_rewind_of_a_compacted_topic(cli, world):
    """In a compacted topic, ``rewind --to-datetime`` finds the first remaining record at or after the time."""
    name = world.create_topic(
        1, **{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "1"}
    )
    for seconds in range(5):
        world.produce(name, 0, 1, timestamp=T + 1000 * seconds, key="same")
    world.produce(name, 0, 1, timestamp=T + 60_000, key="last")

    def values() -> list[str]:
        consumer = world.consumer(world.name("reader"))
        return [str(message.offset()) for message in world.read_to_end(consumer, name, 0)]

    until(lambda: values() == ["4", "5"], seconds=60)
    assert rewound(cli, "--topic", name, "--to-datetime", at(1))[0] == ["4"]
    assert rewound(cli, "--topic", name, "--to-datetime", at(5))[0] == ["5"]
    assert rewound(cli, "--topic", name, "--to-earliest")[0] == ["0"]


def test_records_out_of_time_order(cli, world):
    """If timestamps are out of order, ``rewind --to-datetime`` skips no record after the time.

    Records before the time may be read again.
    """
    name = world.create_topic(1, **KEPT)
    records(world, name, 0, 5, 3, 9, 1, 7)
    for seconds, first in ((1, "0"), (4, "0"), (6, "2"), (8, "2"), (10, "5")):
        assert rewound(cli, "--topic", name, "--to-datetime", at(seconds))[0] == [first], seconds


def test_rewind_uses_the_append_time_of_a_log_append_time_topic(cli, world):
    """In a topic with LogAppendTime, ``rewind --to-datetime`` uses the broker's append time, not the producer's
    timestamp.
    """
    name = world.create_topic(1, **{"message.timestamp.type": "LogAppendTime"})
    world.produce(name, 0, 2, timestamp=T)
    time.sleep(0.01)  # otherwise both appends could have the same millisecond
    between = int(time.time() * 1000)
    world.produce(name, 0, 3, timestamp=T)
    assert rewound(cli, "--topic", name, "--to-datetime", between)[0] == ["2"]
    assert rewound(cli, "--topic", name, "--to-datetime", at(1))[0] == ["0"]


@NEEDS_TRANSACTIONS
def test_transaction_markers_and_aborted_records(cli, world):
    """``rewind --to-datetime`` may find the offset of a transaction marker, but skips no record at or after
    the time.
    """
    name = world.create_topic(1, **KEPT)
    world.transact(name, 0, 2, timestamp=T)
    world.transact(name, 0, 2, timestamp=T + 1000, commit=False)
    records(world, name, 0, 4)
    assert rewound(cli, "--topic", name, "--to-datetime", at(0))[0] == ["0"]
    assert rewound(cli, "--topic", name, "--to-datetime", at(3))[0] == ["2"]  # the first marker
    assert rewound(cli, "--topic", name, "--to-latest")[0] == ["7"]


@NEEDS_TRANSACTIONS
def test_records_of_an_open_transaction(cli, world):
    """`rewind` also finds records of an open transaction; otherwise they would be skipped if the transaction is
    committed.
    """
    name = world.create_topic(1, **KEPT)
    records(world, name, 0, 0)
    producer = world.transactional_producer()
    producer.begin_transaction()
    producer.produce(name, value="open", partition=0, timestamp=T + 5000)
    assert producer.flush(30) == 0
    assert rewound(cli, "--topic", name, "--to-datetime", at(5))[0] == ["1"]
    assert rewound(cli, "--topic", name, "--to-latest")[0] == ["2"]
    producer.abort_transaction(30)


def mentions(disk: Path) -> int:
    """Return how often the id of a disk occurs in the controller's log. Each replica on the disk adds one."""
    properties = dict(line.split("=", 1) for line in (disk / "meta.properties").read_text().splitlines() if "=" in line)
    disk_id = base64.urlsafe_b64decode(properties["directory.id"].replace("\\", "") + "==")
    return (disk.parent / "data" / "__cluster_metadata-0" / f"{0:020}.log").read_bytes().count(disk_id)


@NEEDS_FAILED_DISKS
def test_partition_without_a_leader_is_refused(java, kafka_jars, tmp_path):
    """If a partition has no leader, because its disk has failed, `rewind` names it and writes no file.

    The other partition can be rewound with ``--partition``.
    """
    settings = {"log.dirs": "data,broken", "replica.high.watermark.checkpoint.interval.ms": "200"}
    with (
        start_sandbox(kafka_jars, java=java, settings=settings) as sandbox,
        broker_world(sandbox.bootstrap_servers) as world,
    ):
        disk = sandbox.node.folder / "broken"
        before = mentions(disk)
        name = world.create_topic(2)
        # If the disk fails before the controller knows its replicas, the partition keeps its leader (KIP-858).
        until(lambda: mentions(disk) > before)
        (lost,) = [path.name for path in disk.glob(f"{name}-*")]
        disk.rename(disk.with_name("unplugged"))
        number = int(lost.rpartition("-")[2])
        until(lambda: world.leader(name, number) == -1)
        cli = CliHere(tmp_path, sandbox.bootstrap_servers)
        refusal = cli.fails("rewind", "--topic", name, "--to-earliest", "-o", "out.csv", code=3)
        assert f"1 partition without a leader: {lost}" in refusal
        assert list(tmp_path.iterdir()) == []
        offsets, _ = rewound(cli, "--topic", name, "--partition", 1 - number, "--to-datetime", at(0))
        assert offsets == ["0"]


def test_rewind_does_not_change_a_live_group(cli, world, topic):
    """``rewind --group`` of a live group changes neither its offsets nor its members; `apply` gives the offsets to
    another group.
    """
    live, replay = world.name("live"), world.name("replay")
    world.commit(live, TopicPartition(topic, 0), 10)
    member = world.join(live, topic)
    before = world.committed(live)
    cli("rewind", "--group", live, "--to-datetime", at(7), "-o", "replay.csv")
    done = cli("apply", "replay.csv", "--to-group", replay, "--yes")
    assert "so no old group is checked" in done.stdout
    assert world.committed(replay) == {TopicPartition(topic, number): offset for number, offset in enumerate((7, 0, 5))}
    assert world.committed(live) == before
    assert "1 member" in cli("describe", live).stdout
    assert member.assignment()


def test_output_of_rewind_is_filtered_split_exported_and_applied(cli, world, topic):
    """The output of `rewind` is a snapshot: `filter`, `split`, `export`, `apply` and `rewind` read it, from a file or a
    pipe.
    """
    other, prefix = world.create_topic(1), world.name("replay")
    records(world, other, 0, 1, 2)
    cli("rewind", "--topic", topic, "--topic", other, "--to-datetime", at(2), "-o", "replay.parquet")
    kept = cli("filter", "replay.parquet", "--topic", other, "-o", "-").stdout
    assert cli("export", "-", "-o", "-", stdin=kept).stdout == f"{other},0,1\n"
    cli("split", "replay.parquet", "--to", f"{prefix}-a={topic}", "--to", f"{prefix}-b={other}", "-o", "split.csv")
    cli("apply", "split.csv", "--yes")
    assert world.committed(f"{prefix}-a")[TopicPartition(topic, 0)] == 2
    assert world.committed(f"{prefix}-b") == {TopicPartition(other, 0): 1}
    piped = cli("rewind", "-", "--to-earliest", "-o", "-", stdin=kept).stdout
    cli("apply", "-", "--to-group", f"{prefix}-c", "--receipt", "r.json", "--yes", stdin=piped)
    assert world.committed(f"{prefix}-c") == {TopicPartition(other, 0): 0}


def test_partitions_missing_in_the_file_are_named(cli, world, topic):
    """If a snapshot lacks a partition of a topic, `rewind` of this file names it, unless ``--partition``
    excludes it.
    """
    cli("rewind", "--topic", topic, "--to-earliest", "-o", "all.csv")
    cli("filter", "all.csv", "--partition", "0-1", "-o", "two.csv")
    offsets, said = rewound(cli, "two.csv", "--to-earliest")
    assert offsets == ["0", "0"]
    assert f"left out: 1 partition of these topics: {topic}-2" in said
    assert "left out" not in rewound(cli, "all.csv", "--partition", "0", "--to-earliest")[1]


def test_unknown_topics_and_groups_are_refused(cli, world, topic, group):
    """If a topic or a group is unknown, `rewind` prints a one-line error, ends with exit code 2 or 3, and writes no
    file.
    """
    never = world.name("never")
    assert "does not exist" in cli.fails("rewind", "--group", never, "--to-earliest", "-o", "out.csv", code=3)
    for source in (["--topic", "no-such-topic"], ["--group", group, "--topic", "no-such-topic"]):
        refusal = cli.fails("rewind", *source, "--to-earliest", "-o", "out.csv", code=2)
        assert "no topic matches no-such-topic" in refusal
    (cli.folder / "gone.csv").write_text("no-such-topic,0,5\n")
    assert "topic no-such-topic not found" in cli.fails(
        "rewind", "gone.csv", "--shift-by", "-1", "-o", "out.csv", code=3
    )
    assert [path.name for path in cli.folder.iterdir()] == ["gone.csv"]
