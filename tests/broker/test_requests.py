"""The number of requests between the stop of the source group and the start of the target groups."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.metadata import MetadataRequest

from migrate_groups.clock import Clock
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.hand_over.cut_over import prepare
from migrate_groups.migration.write import write
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import NOTHING_WRITTEN
from migrate_groups.planning.run_states import Verb
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.planning import cut_over

TOPICS = 12


@pytest.fixture
def sent(monkeypatch) -> Counter[str]:
    """The number of requests that kafka-python sends, by name, except metadata, which it also requests on its own."""
    counts: Counter[str] = Counter()
    send = KafkaConnectionManager.send

    def counting(manager, request, *arguments, **named):
        if not isinstance(request, MetadataRequest):
            counts[type(request).__name__.removesuffix("Request")] += 1
        return send(manager, request, *arguments, **named)

    monkeypatch.setattr(KafkaConnectionManager, "send", counting)
    return counts


def cut_over_to(targets: int, world, writer, sent, clock: Clock) -> Counter[str]:
    """Hand a stopped group over to this many targets; return the requests from the stop to the read-back."""
    topics = [world.create_topic() for _ in range(TOPICS)]
    old, new = world.name("old"), world.name("new")
    for topic in topics:
        world.commit(old, TopicPartition(topic, 0), 0)
    spec = SplitSpec(
        source=old,
        targets=tuple(
            SplitTarget(group=f"{new}-{number}", topics=tuple(map(TopicPattern, topics[number::targets])))
            for number in range(targets)
        ),
        stay=(),
    )
    shown = prepare(writer, spec, WriteOptions(settle=0.0), clock)
    sent.clear()
    final = cut_over(writer, shown, clock)
    deed = write(writer, None, NOTHING_WRITTEN.begun(Verb.HAND_OVER, final.plan, clock.now()), lambda _: None)
    assert deed.is_whole
    return Counter(sent)


def test_requests_grow_with_targets_where_the_protocol_has_it_so(world, bootstrap_servers, sent):
    """OffsetCommit takes one request for each group; other requests are as many for twelve targets as for one."""
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)
    with closing(KafkaPythonWriter(config)) as writer:
        one, twelve = (cut_over_to(targets, world, writer, sent, FakeClock()) for targets in (1, TOPICS))
    assert (one.pop("OffsetCommit"), twelve.pop("OffsetCommit")) == (1, TOPICS)
    assert one == twelve
    assert {"DescribeGroups", "OffsetFetch"} <= one.keys()
