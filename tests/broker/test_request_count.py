"""The number of requests that a hand-over sends between the stop of the source group and the start of the target
groups, and for its claims, and which of them go out side by side.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing

import pytest
from kafka.net.manager import KafkaConnectionManager

from migrate_groups.clock import Clock
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.writer import KafkaPythonWriter
from migrate_groups.migration.ports import Clients
from migrate_groups.migration.write import write
from migrate_groups.model.offsets_topic import journal_group
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.planning.options import WriteOptions
from migrate_groups.planning.receipt import NOTHING_WRITTEN
from migrate_groups.planning.run_states import Verb
from migrate_groups.sandbox.broker import start_sandbox
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.broker_world import wait_for_coordinators
from tests.support.clock import FakeClock
from tests.support.planning import cut_over, prepare
from tests.support.three_brokers import ThreeBrokers

TOPICS = 12


def cut_over_to(targets: int, world, writer, sent, clock: Clock) -> Counter[str]:
    """Hand a stopped group over to ``targets`` groups. Return the number of requests sent after the stop, by request
    name.
    """
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
    shown = prepare(writer, spec, WriteOptions(settle=0.0, second_client="none"), clock)
    sent.clear()
    final = cut_over(writer, shown, clock)
    execution = write(
        Clients(writer, writer), NOTHING_WRITTEN.begun(Verb.HAND_OVER, final.plan, clock.now()), lambda _: None
    )
    assert execution.is_whole
    return Counter(sent)


def test_only_offset_commit_takes_a_request_for_each_target_group(world, bootstrap_servers, sent):
    """With more target groups, a hand-over sends more OffsetCommit requests, but no more requests of any other kind."""
    config = ClientConfig(bootstrap_servers=bootstrap_servers, timeout=20)
    with closing(KafkaPythonWriter(config)) as writer:
        one, twelve = (cut_over_to(targets, world, writer, sent, FakeClock()) for targets in (1, TOPICS))
    assert (one.pop("OffsetCommit"), twelve.pop("OffsetCommit")) == (1, TOPICS)
    assert one == twelve
    assert {"DescribeGroups", "OffsetFetch"} <= one.keys()


@pytest.fixture
def of_journals(monkeypatch) -> Counter[str]:
    """How many requests for the journals of groups kafka-python has sent, by the request's name."""
    counts: Counter[str] = Counter()
    send = KafkaConnectionManager.send

    def counting(manager, request, *arguments, **named):
        if _JOURNALS in f"{request}":
            counts[type(request).__name__.removesuffix("Request")] += 1
        return send(manager, request, *arguments, **named)

    monkeypatch.setattr(KafkaConnectionManager, "send", counting)
    return counts


@pytest.mark.parametrize("topics", [2, TOPICS])
def test_claims_take_the_same_requests_for_many_topics_as_for_few(
    here, world, of_journals, bootstrap_servers, monkeypatch, topics
):
    """A hand-over to two groups claims its topics with one commit to the journal of each group, however many they are.

    After START, one more for each target group says that it has arrived. The journals are left once. They are read with
    one request for the plan, and with one after the joins. With ``--copy`` a run sends none of these requests.
    """
    monkeypatch.setitem(here.environment, "MIGRATE_GROUPS_BOOTSTRAP_SERVER", bootstrap_servers)
    old, new = world.name("old"), world.name("new")
    names = [world.create_topic() for _ in range(topics)]
    for topic in names:
        world.commit(old, TopicPartition(topic, 0), 0)
    targets = "".join(
        f'[[target]]\ngroup = "{new}-{number}"\ntopics = {json.dumps(names[number::2])}\n' for number in range(2)
    )
    (here.folder / "split.toml").write_text(f'source = "{old}"\n{targets}[options]\nsettle = "0s"\nguard = "0s"\n')
    here("migrate", "split.toml", "--yes", "--copy")
    assert not of_journals
    here("rollback", "split.toml.run", "--yes")
    here("migrate", "split.toml", "--yes")
    # How many requests find the coordinators and the members depends on how soon brokers answer.
    assert {name: of_journals[name] for name in ("OffsetFetch", "OffsetCommit", "LeaveGroup")} == {
        "OffsetFetch": 2,
        "OffsetCommit": 3 + 2,
        "LeaveGroup": 3,
    }
    assert of_journals.keys() <= {
        *("OffsetFetch", "OffsetCommit", "LeaveGroup", "JoinGroup", "SyncGroup", "Heartbeat"),
        *("FindCoordinator", "DescribeGroups"),
    }


_JOURNALS = journal_group("")


def test_all_brokers_are_asked_for_their_groups_at_once(java, kafka_jars, most):
    """ListGroups goes to all three brokers before the first of them answers."""
    with start_sandbox(kafka_jars, java=java, brokers=3, timeout=120) as sandbox:
        wait_for_coordinators(sandbox.bootstrap_servers)
        brokers = ThreeBrokers(sandbox)
        with closing(KafkaPythonWriter(ClientConfig(bootstrap_servers=sandbox.bootstrap_servers))) as reader:
            topic = brokers.create_topic("topic")
            groups = {brokers.name("group") for _ in range(6)}
            for group in groups:
                brokers.commit(group, {TopicPartition(topic, 0): 1})
            assert groups <= {each.group for each in reader.list_groups()}
    assert most["ListGroups"] == 3
