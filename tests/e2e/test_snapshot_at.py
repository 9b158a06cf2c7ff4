"""``snapshot --log`` on the command line: offsets of the past, from a real broker's offsets topic."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import confluent_kafka
import pyarrow.parquet as pq

from migrate_groups.files.snapshots import any_format as tables
from migrate_groups.model.partitions import TopicPartition
from tests.support.broker_world import until
from tests.support.documents import parsed
from tests.support.versions import NEEDS_TOPIC_IDS, NEEDS_TRANSACTIONS


def moment() -> str:
    """Return a time after all that was committed until now, and before all that is committed later."""
    begun = datetime.now(UTC) + timedelta(milliseconds=1)
    until(lambda: datetime.now(UTC) > begun + timedelta(milliseconds=1))
    return begun.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def offsets(path) -> dict[TopicPartition, int | None]:
    return {row.topic_partition: row.offset for row in tables.load(path).rows()}


def consumed(world, group, topic, records) -> dict[TopicPartition, set[int]]:
    """Consume this many records in the group, commit, and return the offsets of the records: a ledger."""
    application, ledger = world.join(group, topic), defaultdict(set)
    for value in world.consume(application, records):
        partition, offset = map(int, value.split("-")[-2:])
        ledger[TopicPartition(topic, partition)].add(offset)
    application.commit(asynchronous=False)
    world.leave(application)
    return ledger


def test_a_replay_from_a_past_moment_is_exact_by_ledger(tmp_path, world, here):
    """A snapshot at a moment before a reset has the offsets of that moment, and a replay from there is exact.

    ``rewind`` and ``reconcile`` take the snapshot, too.
    """
    topic, group, replay = world.create_topic(2), world.name("group"), world.name("replay")
    for partition in (0, 1):
        world.produce(topic, partition, 20)
    before = consumed(world, group, topic, 30)
    then = moment()
    after = consumed(world, group, topic, 10)
    for each in before:
        world.commit(group, each, 0)  # the reset by a bad deployment
    here("snapshot", group, "--log", "log", "--at", then, "-o", "then.csv")
    known = offsets(tmp_path / "then.csv")
    assert known == {partition: max(places) + 1 for partition, places in before.items()}

    plan = here("apply", "then.csv", "--to-group", replay, "--yes")
    assert f"{len(known)} offsets from the log of __consumer_offsets as of {then}" in plan.stdout
    replayed = consumed(world, replay, topic, 10)
    assert replayed == after
    here("rewind", "then.csv", "--shift-by", "-1", "-o", "earlier.csv")
    assert offsets(tmp_path / "earlier.csv") == {partition: max(places) for partition, places in before.items()}
    here("snapshot", group, "--log", "log", "-o", "last.csv")
    assert set(offsets(tmp_path / "last.csv").values()) == {0}
    found = parsed(here("reconcile", "then.csv", "last.csv", "--format", "json", code=6).stdout)
    assert found["totals"]["counts"]["behind"] == len(known)


@NEEDS_TRANSACTIONS
def test_offsets_that_are_not_known_are_refused_or_left_out(tmp_path, world, here):
    """A partition with an open transaction at the moment is refused, or left out and listed; afterwards it is known.

    A deletion is known as "no commit". A group without any commit is refused by name; nothing is written then.
    """
    topic, group = world.create_topic(2), world.name("group")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for partition in (first, second):
        world.produce(topic, partition.partition, 9)
        world.commit(group, partition, 3)
    producer = world.transactional_producer()
    producer.begin_transaction()
    metadata = world.consumer(group).consumer_group_metadata()
    producer.send_offsets_to_transaction([confluent_kafka.TopicPartition(*first, 7)], metadata, 30)
    opened = moment()
    producer.commit_transaction(30)
    until(lambda: world.committed(group)[first] == 7)
    ended = moment()
    world.delete_offsets(group, second)

    take = ("snapshot", group, "--log", "log")
    refused = here(*take, "--at", opened, "-o", "open.csv", code=7)
    why = f"{group} {first} (a transaction with a later offset was open)"
    assert f"not known for 1 of 2 partitions: {why}" in refused.stderr
    assert not (tmp_path / "open.csv").exists()
    shown = parsed(here(*take, "--at", opened, "--known-only", "-o", "open.csv", "--format", "json").stdout)
    assert [(each["partition"], each["evidence"]) for each in shown["not_known"]] == [(0, "pending")]
    assert offsets(tmp_path / "open.csv") == {second: 3}
    here(*take, "--at", ended, "-o", "ended.csv")
    assert offsets(tmp_path / "ended.csv") == {first: 7, second: 3}
    here(*take, "-o", "last.csv")
    assert offsets(tmp_path / "last.csv") == {first: 7, second: None}
    absent = here("snapshot", world.name("never"), "--log", "log", "-o", "never.csv", code=7)
    assert "the log has no commit of group never-" in absent.stderr
    assert not (tmp_path / "never.csv").exists()
    assert pq.read_table(tmp_path / "log").num_rows > 0


@NEEDS_TOPIC_IDS
def test_offsets_of_a_topic_that_was_created_again_are_said_to_be_of_other_records(tmp_path, world, here):
    """If a topic was created again since the moment, the snapshot says so, and ``apply`` refuses its offsets."""
    topic, group = world.create_topic(1), world.name("group")
    world.produce(topic, 0, 5)
    world.commit(group, TopicPartition(topic, 0), 3)
    then = moment()
    world.delete_topic(topic)
    world.create_topic(1, topic=topic)
    world.produce(topic, 0, 5)
    shown = here("snapshot", group, "--log", "log", "--at", then, "-o", "then.csv")
    assert f"topic {topic} deleted or created again since: these offsets are of other records" in shown.stderr
    assert offsets(tmp_path / "then.csv") == {TopicPartition(topic, 0): 3}
    refused = here("apply", "then.csv", "--to-group", world.name("new"), "--yes", code=3)
    assert "created again" in refused.stdout + refused.stderr
