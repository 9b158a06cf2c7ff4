"""The checks before a write, with groups and members as real brokers describe them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext

import confluent_kafka
import pytest

from migrate_groups.errors import ShareGroupStarted
from migrate_groups.migration.make_plan import make_plan
from migrate_groups.migration.reading.requests import describe_group
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from migrate_groups.planning.check import Verdict
from migrate_groups.planning.options import WriteOptions
from tests.support.broker_world import until
from tests.support.planning import check, connected, handed_over, old_group, plan_of, refusing
from tests.support.raw_member import raw_member, subscription
from tests.support.versions import CONSUMER, NEEDS_KIP_848, NEEDS_SHARE_GROUPS, is_at_least


@pytest.fixture
def writer(bootstrap_servers):
    """The tool's own client, with which it writes offsets."""
    with connected(bootstrap_servers) as client:
        yield client


# The check `kind`.


def test_groups_of_plain_consumers_pass(world, writer):
    """The plan of a hand-over between two groups of ordinary consumers passes the check ``kind`` and all
    other checks.
    """
    _, old = old_group(world)
    plan = plan_of(writer, old, f"{old}-new")
    assert check(plan, "kind").verdict is Verdict.PASS
    assert plan.verdict is Verdict.PASS


def test_group_of_connect_workers_is_refused(cli, world, writer):
    """`verify` and the plan refuse a group of Connect workers. With ``any_kind``, the plan accepts it once it
    is Empty.
    """
    partition, workers = old_group(world)
    _, old = old_group(world)
    with raw_member(world.bootstrap_servers, workers, protocol_type="connect", protocol="sessioned"):
        assert "not a consumer group: its type is classic connect" in cli.fails(
            "verify", workers, "--wait", "0s", "--settle", "0s", code=3
        )
        as_source = plan_of(writer, workers, f"{workers}-new")
        assert check(as_source, "kind").reason.startswith(
            f"{workers} is not a consumer group: its type is classic connect (workers of Kafka Connect); such a group "
            "can't be moved: pass --any"
        )
        assert refusing(as_source) == ["kind", "stopped"]
        assert refusing(plan_of(writer, old, workers)) == ["kind", "targets"]
        assert refusing(plan_of(writer, workers, f"{workers}-new", any_kind=True)) == ["stopped"]
    overruled = plan_of(writer, workers, f"{workers}-new", any_kind=True)
    assert check(overruled, "kind").verdict is Verdict.WARN
    assert refusing(overruled) == []
    assert [change.topic_partition for change in overruled.changes] == [partition]


def test_streams_application_without_internal_topics_may_move(world, writer):
    """The check ``kind`` only warns of a Kafka Streams application without internal topics, which it knows by its
    assignor.

    While the application runs, the check ``stopped`` refuses the hand-over.
    """
    partition, old = old_group(world)
    with raw_member(world.bootstrap_servers, old, protocol="stream", metadata=subscription(partition.topic)):
        plan = plan_of(writer, old, f"{old}-new")
    found = check(plan, "kind")
    assert found.verdict is Verdict.WARN
    assert found.reason.startswith(f"group {old} of Kafka Streams without internal topics")
    assert refusing(plan) == ["stopped"]


@pytest.mark.parametrize("live", [True, False], ids=["live", "stopped"])
def test_streams_application_with_internal_topics_is_refused(world, writer, live):
    """The group of a Streams application with internal topics is refused as source, even if it has stopped.

    If it has stopped, it is also refused as target, and accepted as source with ``any_kind``.
    """
    partition, old = old_group(world)
    topics = [world.create_topic(topic=f"{old}-{internal}") for internal in ("by-key-repartition", "store-changelog")]
    member = raw_member(world.bootstrap_servers, old, protocol="stream", metadata=subscription(partition.topic))
    with member if live else nullcontext():
        as_source = plan_of(writer, old, "new")
    reason = f"{old} belongs to a Kafka Streams application with state: it has topics {topics[0]}, {topics[1]}"
    assert check(as_source, "kind").reason.startswith(reason)
    assert refusing(as_source) == (["kind", "stopped"] if live else ["kind"])
    if not live:
        _, other = old_group(world)
        assert refusing(plan_of(writer, other, old, on_existing="overwrite")) == ["kind"]
        overruled = plan_of(writer, old, "new", any_kind=True)
        assert check(overruled, "kind").verdict is Verdict.WARN
        assert refusing(overruled) == []


def test_connect_sinks_are_recognised_by_their_tasks_not_by_name(world, writer):
    """The check ``kind`` only warns of a Connect sink, with the request that stops it. It knows a sink by the client
    ids of its tasks. The name of a group without them is only a hint. While a task is a member, ``stopped`` refuses.
    """
    partition, old = old_group(world)
    rule = (
        "; a sink must be STOPPED before the write, because a PAUSED one stays a member; create a new one with "
        '"initial_state": "STOPPED"'
    )
    by_name = plan_of(writer, old, world.name("connect-sink"))
    sink = by_name.changes[0].group
    name = sink.removeprefix("connect-")
    found = check(by_name, "kind")
    assert found.reason == f"{sink} may be the group of Connect sink {name} (PUT /connectors/{name}/stop){rule}"
    assert (found.verdict, refusing(by_name)) == (Verdict.WARN, [])
    client_id, metadata = "connector-consumer-sink-0", subscription(partition.topic)
    with raw_member(world.bootstrap_servers, old, client_id=client_id, metadata=metadata):
        by_client = plan_of(writer, old, f"{old}-new")
    found = check(by_client, "kind")
    assert found.reason == f"{old} belongs to Connect sink sink (PUT /connectors/sink/stop){rule}"
    assert (found.verdict, refusing(by_client)) == (Verdict.WARN, ["stopped"])
    assert check(plan_of(writer, old, f"{old}-new"), "kind").verdict is Verdict.PASS


@NEEDS_SHARE_GROUPS
def test_share_group_is_refused_also_with_any_kind(cli, world, writer, sandbox):
    """A share group that has had members is refused as target, even with ``any_kind``. `verify` refuses it too."""
    partition, old = old_group(world)
    shared = world.name("shared")
    upgraded = sandbox.run_tool("org.apache.kafka.tools.FeatureCommand", "upgrade", "--feature", "share.version=1")
    assert upgraded.returncode == 0, upgraded.stdout
    consume = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    arguments = ["--bootstrap-server", world.bootstrap_servers, "--topic", partition.topic, "--group", shared]
    with subprocess.Popen([*sandbox.tool_command, consume, *arguments], stdout=subprocess.DEVNULL) as process:
        try:
            until(lambda: describe_group(writer, shared).state == "Stable")
            assert "not a consumer group: its type is share" in cli.fails(
                "verify", shared, "--wait", "0s", "--settle", "0s", code=3
            )
        finally:
            process.terminate()  # so that it leaves: the members of a live share group can't be read by tests of list
    with pytest.raises(ShareGroupStarted, match=f"share group '{shared}' has had members"):
        plan_of(writer, old, shared, any_kind=True)
    (answer,) = writer.alter_offsets({shared: {partition: CommittedOffset(offset=4)}})[shared].values()
    assert answer.error == "GROUP_ID_NOT_FOUND"


# The check `stopped`.


LIVE_APP = """
import sys, confluent_kafka
consumer = confluent_kafka.Consumer(
    {
        "bootstrap.servers": sys.argv[1],
        "group.id": sys.argv[2],
        "client.id": "doomed-app",
        "group.protocol": sys.argv[4],
    }
)
consumer.subscribe([sys.argv[3]])
while not consumer.assignment():
    consumer.poll(0.05)
print("assigned", flush=True)
while True:
    consumer.poll(0.05)
"""


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_killed_member_stays_until_its_session_timeout(cli, world, protocol):
    """A killed member stays in its group until its session timeout, so `verify` fails, and names the member and the
    timeout.
    """
    partition, group = old_group(world)
    command = [sys.executable, "-c", LIVE_APP, world.bootstrap_servers, group, partition.topic, protocol]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "assigned\n"
        finally:
            os.kill(process.pid, signal.SIGKILL)
    refusal = cli.fails("verify", group, "--wait", "0s", "--settle", "0s", code=3)
    assert f"1 member (doomed-app at 127.0.0.1 on {partition.topic}; a killed member" in refusal
    assert "session timeout, 45 s by default" in refusal


def test_closed_static_member_stays_until_its_session_timeout(cli, world):
    """A closed static member stays until its session timeout, so `verify` fails, and names its group.instance.id."""
    partition, group = old_group(world)
    world.leave(world.join(group, partition.topic, **{"group.instance.id": "node-7"}))
    refusal = cli.fails("verify", group, "--wait", "0s", "--settle", "0s", code=3)
    assert "1 member (test-app at 127.0.0.1, static node-7" in refusal
    assert "or a closed static one, stays until its session timeout" in refusal


@NEEDS_KIP_848
def test_reconciling_group_has_not_stopped(cli, world, writer, kafka_jars):
    """A group in state Reconciling is not taken for stopped, even if no member shows the topic to be moved any longer.

    Before Kafka 4.3 a member does not show the topics that it still revokes.
    """
    moved, old = old_group(world)
    kept = world.create_topic()
    revoking, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def slow_revoke(consumer: confluent_kafka.Consumer, partitions: object) -> None:
        revoking.set()
        go_on.wait(60)

    consumer = world.join(old, moved.topic, kept, **{"group.protocol": "consumer"})
    until(lambda: (consumer.poll(0.05), len(consumer.assignment()) == 2)[1])

    def live_on() -> None:
        consumer.subscribe([kept], on_revoke=slow_revoke)
        while not over.wait(0.02):
            consumer.poll(0.05)

    thread = threading.Thread(target=live_on)
    thread.start()
    try:
        assert revoking.wait(30)
        until(lambda: describe_group(writer, old).state == "Reconciling")
        (member,) = describe_group(writer, old).members
        assert (moved.topic in member.topics) is is_at_least(kafka_jars.version, "4.3.0")
        assert "is Reconciling with 1 member" in cli.fails(
            "verify", old, "--topic", moved.topic, "--wait", "0s", "--settle", "0s", code=3
        )
        plan = plan_of(writer, old, f"{old}-new")
        assert check(plan, "stopped").verdict is Verdict.PENDING
        go_on.set()
        cli("verify", old, "--topic", moved.topic, "--settle", "0s", "--wait", "30s")
    finally:
        go_on.set()
        over.set()
        thread.join()


# The check `removed`.


def test_missing_committed_offset_is_refused_or_restored(world, writer):
    """If a committed offset was deleted after the snapshot, the check ``removed`` refuses the write.

    With ``on_removed = restore``, the check warns, and the offset of the snapshot is written.
    """
    partition, old = old_group(world)
    named = handed_over(writer, old, f"{old}-new")
    writer.delete_offsets({old: [partition]})
    world.commit(old, TopicPartition(world.create_topic(), 0), 0)  # otherwise the group would be deleted too
    plan = make_plan(writer, named, WriteOptions())
    assert (
        f"1 committed offset expired or deleted since the snapshot: {partition} at 4" in check(plan, "removed").reason
    )
    assert refusing(plan) == ["removed"]
    restored = make_plan(writer, named, WriteOptions(on_removed="restore"))
    assert check(restored, "removed").verdict is Verdict.WARN
    assert refusing(restored) == []
    (change,) = restored.changes
    assert change.after == CommittedOffset(offset=4, leader_epoch=0)


# The check `retention`.


def test_check_states_when_offsets_of_an_empty_group_expire(world, writer):
    """The check ``retention`` says after how many days the offsets of a new target group without members expire."""
    _, old = old_group(world)
    found = check(plan_of(writer, old, f"{old}-new"), "retention")
    assert (found.verdict, found.reason) == (
        Verdict.PASS,
        "the new offsets expire in 7 days, unless a consumer joins the group before",
    )


@pytest.mark.parametrize(
    ("protocol", "verdict"), [("classic", Verdict.WARN), pytest.param("consumer", Verdict.PASS, marks=NEEDS_KIP_848)]
)
def test_check_warns_of_expiry_in_a_classic_target_that_had_members(world, writer, protocol, verdict):
    """If a classic target group once had members, the check ``retention`` warns that its new offsets may expire early.

    The reason is that a write does not restart its retention time. An Empty KIP-848 group passes.
    """
    partition, old = old_group(world)
    new = f"{old}-new"
    world.leave(world.join(new, partition.topic, **{"group.protocol": protocol}))
    plan = plan_of(writer, old, new)
    assert check(plan, "retention").verdict is verdict
    assert ("after the group's last member left" in check(plan, "retention").reason) is (verdict is Verdict.WARN)
    assert refusing(plan) == []
