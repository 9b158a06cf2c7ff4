"""A replay group processes again the records of an hour in which a store of telemetry lost all writes."""

from __future__ import annotations

import time

import pytest

from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.times import rfc_3339

NOW = ("--settle", "0s", "--guard", "0s")
PARTITIONS, MINUTES = 3, 180


@pytest.fixture
def race(world):
    """A topic with three hours of records, one each minute in each partition, and a live group near the log end.

    Returns the topic, the live group, and the time from which on all writes were lost (ms since 1970; an hour ago).
    """
    topic, live = world.create_topic(PARTITIONS), world.name("telemetry")
    now = int(time.time() * 1000)
    for partition in range(PARTITIONS):
        # Half a minute off the hour, because the duration is counted from the time when the command runs.
        world.produce_in_order(
            topic,
            partition,
            [
                (f"{minutes}-{topic}-{partition}-0", now - 60_000 * minutes + 30_000)
                for minutes in range(MINUTES, 0, -1)
            ],
        )
        world.commit(live, TopicPartition(topic, partition), MINUTES - partition)
    world.join(live, topic)
    return topic, live, now - 3_600_000


def values(topic: str, minutes: range) -> set[str]:
    return {f"{minute}-{topic}-{partition}-0" for minute in minutes for partition in range(PARTITIONS)}


def group_state(cli, world, group: str) -> tuple[str, dict[TopicPartition, int]]:
    """Return what describe prints about the group, and its committed offsets as another client reads them."""
    return cli("describe", group).stdout, world.committed(group)


@pytest.mark.parametrize("target", ["--by-duration", "--to-datetime"])
def test_replay_delivers_exactly_the_lost_hour(cli, world, race, target):
    """The replay group gets each record of the lost hour once, and no other record.

    The live group's state and committed offsets do not change.
    """
    topic, live, failed_at = race
    store = values(topic, range(61, MINUTES + 1))  # the last hour's writes were lost
    before = group_state(cli, world, live)
    when = "PT1H" if target == "--by-duration" else rfc_3339(failed_at)
    replay = world.name("replay")
    cli("rewind", "--group", live, target, when, "-o", "replay.csv")
    cli("apply", "replay.csv", "--to-group", replay, *NOW, "--yes")
    consumer = world.join(replay, topic)
    brought_back = world.consume(consumer, 60 * PARTITIONS)
    consumer.commit(asynchronous=False)
    cli("watch", replay, "--until", "replay.csv", "--wait", "30s")
    world.leave(consumer)
    assert "1 member" in before[0]
    assert group_state(cli, world, live) == before
    assert len(brought_back) == len(set(brought_back))
    assert store.isdisjoint(brought_back)
    assert store.union(brought_back) == values(topic, range(1, MINUTES + 1))
    cli("delete-group", replay, "--yes")
    assert group_state(cli, world, live) == before
