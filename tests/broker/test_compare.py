"""``compare`` on two real clusters: it finds by content the offset on the target that corresponds to the committed
offset.

This offset is called the translated offset. A consumer on the target cluster checks it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.sandbox.jars import KafkaJars, fetch_mirror_jars
from migrate_groups.sandbox.java import Java
from migrate_groups.sandbox.mirror_maker import MirrorMaker, mirror_maker
from tests.support.broker_world import until
from tests.support.cli import Cli
from tests.support.mirror import Change, records, unchanged, write
from tests.support.specs import split_spec

# In milliseconds since 1970: old records would be deleted by the retention, or share no order with those produced now.
NOW = int(time.time() * 1000) - 60_000


class Two:
    """A topic on two clusters, a group that has committed on the source cluster, and a simple mirror of the topic."""

    def __init__(self, source: Any, target: Any, cli: Cli) -> None:
        self.source, self.target = source, target
        self.cli = cli
        self.topic, self.group = source.name("orders"), source.name("group")

    def create(self, *, on_target: dict[str, str] | None = None, **config: str) -> None:
        """Create the topic on both clusters."""
        self.source.create_topic(1, topic=self.topic, **config)
        self.target.create_topic(1, topic=self.topic, **(on_target or config))

    def mirror(self, first: int = 0, last: int | None = None, change: Change = unchanged) -> None:
        """Copy the records from index ``first`` up to ``last`` (exclusive) to the target cluster."""
        found = records(self.source.bootstrap_servers, self.topic, 0)
        write(self.target.bootstrap_servers, self.topic, found[first:last], change)

    def commit(self, offset: int, there: int | None = None) -> None:
        """Commit ``offset`` on the source cluster and, if ``there`` is given, ``there`` on the target cluster."""
        self.source.commit(self.group, TopicPartition(self.topic, 0), offset)
        if there is not None:
            self.target.commit(self.group, TopicPartition(self.topic, 0), there)

    def compare(self, *options: str, code: int) -> dict[str, Any]:
        """Run ``compare --format json``, and return what it prints about the partition."""
        done = self.cli("compare", self.group, "--format", "json", *options, code=code)
        (partition,) = json.loads(done.stdout)["partitions"]
        return dict(partition)

    def translated(self, *options: str, code: int) -> tuple[str, int | None]:
        """Run ``compare``. Return the partition's status, and the corresponding offset on the target (None:
        not found).
        """
        found = self.compare(*options, code=code)
        return found["status"], found["translated_offset"]


@pytest.fixture
def two(world, elsewhere, cli) -> Two:
    """A topic and a group on the shared cluster (the source) and on a second cluster (the target)."""
    return Two(world, elsewhere, cli)


def test_records_read_again_and_skipped_are_those_of_a_consumer(two):
    """If the group has an offset on the target too, ``compare`` counts the records that a consumer reads again or skips
    there.
    """
    two.create()
    two.source.produce_in_order(two.topic, 0, [(str(number), NOW + number // 7) for number in range(60)])
    two.commit(40, there=33)
    two.mirror()
    found = two.compare(code=6)
    assert (found["status"], found["translated_offset"], found["read_again"], found["skipped"]) == ("exact", 40, 7, 0)
    two.commit(40, there=45)
    assert two.compare(code=6)["skipped"] == 5
    two.commit(40, there=40)
    assert two.compare(code=0)["read_again"] == 0
    header, line, totals = two.cli("compare", two.group).stdout.splitlines()
    assert header.split()[-2:] == ["COPIES", "STATUS"]
    assert line.split() == [two.group, two.topic, "0", "40", two.topic, "40", "60", "40", "0", "0", "0", "exact"]
    assert totals == "1 partition: 1 exact; from the committed offsets on the target 0 records read again, 0 skipped"


def test_copies_after_a_restart_of_the_mirror(two):
    """If a restarted mirror copied records twice, the target offset is after the last copy of the last processed
    record.

    A consumer reads all later records from there.
    """
    two.create()
    two.source.produce_in_order(two.topic, 0, [(str(number % 9), NOW + number // 20) for number in range(50)])
    two.commit(30)
    two.mirror(0, 45)
    two.mirror(10)
    found = two.compare("-o", "there.csv", "--report", "told", code=6)
    assert (found["status"], found["copies"], found["method"], found["mirrored_to"]) == ("exact", 35, "walk", 85)
    assert sorted(path.name for path in (two.cli.folder / "told").iterdir()) == [
        "report.html",
        "translated_offsets.parquet",
    ]
    rest = records(two.target.bootstrap_servers, two.topic, 0)[found["translated_offset"] :]
    assert [each.value() for each in rest] == [str(number % 9).encode() for number in range(30, 50)]
    two.cli.environment["MIGRATE_GROUPS_BOOTSTRAP_SERVER"] = two.target.bootstrap_servers
    two.cli("apply", "there.csv", "--yes", "--receipt", "r.json")
    assert two.target.committed(two.group) == {TopicPartition(two.topic, 0): found["translated_offset"]}


def test_aborted_records_are_counted(two):
    """If a mirror with ``read_uncommitted`` also copied aborted records, ``compare`` shows how many."""
    two.create()
    two.source.produce(two.topic, 0, 5)
    two.source.transact(two.topic, 0, 3, commit=False)
    two.source.produce(two.topic, 0, 5)
    two.commit(5, there=5)
    two.mirror()
    found = two.compare(code=0)
    assert (found["status"], found["translated_offset"], found["aborted"]) == ("exact", 5, 3)


def test_a_mirror_that_filters_records_has_no_translated_offset(two):
    """If a mirror left out a record, ``compare`` gives no target offset, and ends with exit code 7."""
    two.create()
    two.source.produce(two.topic, 0, 20)
    two.commit(10, there=10)
    two.mirror(change=lambda each: None if each.offset() == 12 else unchanged(each))
    assert two.translated(code=7) == ("different", None)
    shown = two.cli("compare", two.group, code=7).stdout
    assert "different, 1 partition: the target's records do not follow each other as on the source\n" in shown


def test_a_mirror_that_lags_and_a_log_that_was_deleted(two):
    """``compare`` gives no exact offset before the mirror has copied the records, or after the target has deleted
    them.

    If the source has deleted records that the group has not read, it gives none either.
    """
    two.create()
    two.source.produce(two.topic, 0, 20)
    two.commit(10)
    two.mirror(0, 6)
    assert two.translated(code=7) == ("not mirrored yet", 6)
    two.mirror(6)
    assert two.translated(code=6) == ("exact", 10)
    two.target.delete_records(two.topic, 0, 15)
    assert two.translated(code=7) == ("gone", None)
    two.source.delete_records(two.topic, 0, 18)
    found = two.compare(code=7)
    assert (found["status"], found["reason"]) == ("gone", "the source's log starts 8 offsets later")


def test_timestamps_of_the_target_are_no_evidence(two):
    """If the target's topic uses LogAppendTime, ``compare`` finds no target offset, and the reason names
    LogAppendTime.
    """
    two.create(on_target={"message.timestamp.type": "LogAppendTime"})
    two.source.produce_in_order(two.topic, 0, [(str(number), NOW) for number in range(10)])
    two.commit(5)
    two.mirror()
    found = two.compare(code=7)
    assert found["status"] == "undetermined"
    assert "LogAppendTime" in found["reason"]


def test_identical_records_around_the_commit(two):
    """If the mirror copied one of several identical records twice, several target offsets are possible.

    ``compare -o`` writes an offset only with ``--accept-reread`` and the number of records that may be read again.
    """
    two.create()
    two.source.produce_in_order(two.topic, 0, [("a", NOW), *[("x", 1001)] * 4, ("b", 1002)])
    two.commit(3)
    two.mirror(0, 4)
    two.mirror(3)
    found = two.compare("-o", "there.csv", code=7)
    assert (found["status"], found["reread_at_most"]) == ("ambiguous", 1)
    assert len((two.cli.folder / "there.csv").read_text().splitlines()) == 1
    two.compare("-o", "there.csv", "--force", "--accept-reread", "1", code=7)
    assert len((two.cli.folder / "there.csv").read_text().splitlines()) == 2


def test_a_partition_with_too_many_records_is_not_read(two):
    """If a partition has more records than ``--max-records`` allows, ``compare`` does not read it, and names the
    option.
    """
    two.create()
    two.source.produce(two.topic, 0, 50)
    two.commit(5)
    two.mirror()
    assert "--max-records" in two.compare("--max-records", "20", code=7)["reason"]


def test_mistakes_are_told_in_one_line(two):
    """If ``compare`` fails, it prints a one-line error.

    Tested are a missing group, the same cluster twice, an unreachable cluster, and ``--accept-reread`` without ``-o``.
    """
    two.create()
    line = two.cli.fails("compare", two.group, code=3)
    assert line.startswith(f"error: group {two.group!r} does not exist on this cluster: ")
    two.source.produce(two.topic, 0, 1)
    two.commit(1)
    servers = two.source.bootstrap_servers
    line = two.cli.fails("compare", two.group, "--to-bootstrap-server", servers, code=2)
    assert line == "error: both clusters are the same: check --to-bootstrap-server and --to-command-config"
    line = two.cli.fails("compare", two.group, "--to-bootstrap-server", "127.0.0.1:1", code=5)
    assert line.startswith("error: no bootstrap server of the target cluster can be reached")
    assert line.endswith("; check --to-bootstrap-server")
    line = two.cli.fails("compare", two.group, "--accept-reread", "3", code=2)
    assert line == "error: --accept-reread says what -o writes: pass -o, too"


POLICIES = {
    "DefaultReplicationPolicy": "source.",
    "IdentityReplicationPolicy": "",
}


@pytest.fixture
def maker(request: pytest.FixtureRequest, java: Java, kafka_jars: KafkaJars, two: Two) -> Iterator[MirrorMaker]:
    """A running MirrorMaker 2 that copies the topic and translates the group's offsets.

    Parameter: the replication policy and offset.lag.max.
    """
    from migrate_groups.sandbox.jars import user_cache

    policy, lag = request.param
    two.source.create_topic(4, topic=two.topic)
    settings = {
        "replication.policy.class": f"org.apache.kafka.connect.mirror.{policy}",
        "source->target.topics": two.topic,
        "source->target.groups": two.group,
        "source->target.offset.lag.max": str(lag),
        "source->target.sync.group.offsets.enabled": "true",
    }
    jars = fetch_mirror_jars(java=java, cache=user_cache(), version=kafka_jars.version)
    servers = two.source.bootstrap_servers, two.target.bootstrap_servers
    with mirror_maker(jars, *servers, java=java, settings=settings) as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("maker", [(policy, lag) for policy in POLICIES for lag in (0, 100)], indirect=True, ids=str)
def test_mirrormaker_is_judged_as_a_consumer_judges_it(two, maker, request):
    """``compare`` counts correctly what a consumer at MirrorMaker's translated offset reads again and skips.

    It does so before and after a kill and a restart of MirrorMaker.
    """
    for partition in range(4):
        two.source.produce_in_order(two.topic, partition, [(str(n % 50), NOW + n // 40) for n in range(500)])
        two.source.commit(two.group, TopicPartition(two.topic, partition), (10, 250, 499, 500)[partition])
    name = POLICIES[request.node.callspec.params["maker"][0]] + two.topic
    until(lambda: _mirrored(two, name) >= 500 * 4, seconds=120)
    until(lambda: two.target.committed(two.group), seconds=120)
    _judge(two, name)
    maker.kill()
    for partition in range(4):
        two.source.produce(two.topic, partition, 50)
    maker.start()
    until(lambda: _lasts(two, name) == _lasts(two, two.topic, of_source=True), seconds=120)
    _judge(two, name)


def _lasts(two: Two, topic: str, *, of_source: bool = False) -> list[Any]:
    servers = (two.source if of_source else two.target).bootstrap_servers
    found = [records(servers, topic, partition) for partition in range(4)]
    return [(each[-1].timestamp(), each[-1].value()) if each else ((0, 0), b"") for each in found]


def _mirrored(two: Two, topic: str) -> int:
    there = two.target.topics()
    return (
        sum(len(records(two.target.bootstrap_servers, topic, number)) for number in range(4)) if topic in there else 0
    )


def _judge(two: Two, topic: str) -> None:
    """Run ``compare``, and assert from the records on both clusters that each target offset that it finds is right.

    Also assert how many records a consumer at MirrorMaker's translated offset reads again, and that it skips none.
    """
    done = two.cli("compare", two.group, "--format", "json", code=6)
    for each in json.loads(done.stdout)["partitions"]:
        assert each["status"] == "exact", each
        here = records(two.source.bootstrap_servers, two.topic, each["partition"])
        there = records(two.target.bootstrap_servers, topic, each["partition"])
        left = _ledger(here[each["committed_offset"] :])
        assert _ledger(message for message in there if message.offset() >= each["translated_offset"]) == left
        if each["target_committed_offset"] is None:  # MirrorMaker translates not every offset
            assert (each["read_again"], each["skipped"]) == (None, None)
            continue
        from_there = _ledger(message for message in there if message.offset() >= each["target_committed_offset"])
        assert (from_there - left).total() == each["read_again"]
        assert (left - from_there).total() == each["skipped"] == 0


def _ledger(read: Any) -> Counter[tuple[int, bytes | None]]:
    return Counter((message.timestamp()[1], message.value()) for message in read)


def test_offsets_are_kept_for_a_lost_cluster(two):
    """``compare -o kept.json`` keeps the translated offsets; the exit code says whether each partition has one.

    It is 0 although the mirror is not as far as the group. A file with an offset for a partition is not replaced by one
    without. `migrate --from` starts the group there, and asks only the target cluster; each record that is read again
    was read since the file was written, or delivered since.
    """
    two.create()
    two.source.produce_in_order(two.topic, 0, [(str(number), NOW + number) for number in range(50)])
    two.commit(30)
    two.mirror(0, 25)
    assert two.translated("-o", "kept.json", code=0) == ("not mirrored yet", 25)
    two.mirror(25, 40)
    assert two.translated("-o", "kept.json", "--force", code=0) == ("exact", 30)
    kept = (two.cli.folder / "kept.json").read_bytes()
    two.compare("-o", "kept.json", "--force", "--max-records", "1", code=7)
    assert (two.cli.folder / "kept.json").read_bytes() == kept
    (two.cli.folder / "move.toml").write_text(split_spec(two.group, {two.group: two.topic}))
    fails = two.cli("migrate", "move.toml", "--from", "kept.json", "--yes", "--hold", code=2)
    assert "--from asks nothing of the old group's cluster: leave out --hold" in fails.stderr
    two.cli.environment["MIGRATE_GROUPS_BOOTSTRAP_SERVER"] = two.target.bootstrap_servers
    del two.cli.environment["MIGRATE_GROUPS_TO_BOOTSTRAP_SERVER"]
    done = two.cli("migrate", "move.toml", "--from", "kept.json", "--yes")
    assert "no record of the copies is skipped, at most 10 are read again" in done.stdout
    assert two.target.committed(two.group) == {TopicPartition(two.topic, 0): 30}
    two.cli("rollback", "move.toml.run", "--yes")
    assert two.target.committed(two.group) == {}


def test_a_mirror_that_keeps_offsets(two):
    """If the copy has the same records at the same offsets, with transaction markers, the offset is the same.

    The records prove it. The leader epoch of the source is not taken over. Cluster Linking and Redpanda's shadowing
    keep offsets in this way.
    """
    two.create()
    two.source.produce_in_order(two.topic, 0, [(str(number), NOW + number) for number in range(5)])
    two.mirror()
    two.source.transact(two.topic, 0, 3, timestamp=NOW + 10, commit=False)
    two.target.transact(two.topic, 0, 3, timestamp=NOW + 10, commit=False)
    two.source.commit(two.group, TopicPartition(two.topic, 0), 9, epoch=7)
    assert two.translated(code=6) == ("exact", 9)
    two.source.produce_in_order(two.topic, 0, [(str(number), NOW + number) for number in range(20, 25)])
    two.mirror(8)
    found = two.compare(code=6)
    assert (found["status"], found["translated_offset"], found["compared"]) == ("exact", 9, 10)
    (two.cli.folder / "move.toml").write_text(split_spec(two.group, {two.group: two.topic}))
    two.cli("migrate", "move.toml", "--yes")
    document = json.loads((two.cli.folder / "move.toml.run" / "receipt.json").read_text())
    (entry,) = document["entries"]
    assert (entry["after"]["offset"], entry["after"]["leader_epoch"]) == (9, None)
