"""How `verify` and the checks of `apply` find out, on a real broker, whether a group has stopped."""

from __future__ import annotations

import json
import threading
from contextlib import closing

import confluent_kafka
import pytest
from kafka.protocol.admin import DescribeGroupsResponse

from migrate_groups.errors import Refused
from migrate_groups.kafka.client_config import ClientConfig
from migrate_groups.kafka.reader import KafkaPythonReader
from migrate_groups.migration.reading.requests import describe_group, read_all_committed, read_committed
from migrate_groups.migration.reading.take import observe
from migrate_groups.model.partitions import CommittedOffset, TopicPartition
from tests.support.broker_world import until
from tests.support.documents import parsed
from tests.support.old_group import Old
from tests.support.planning import connected
from tests.support.versions import CONSUMER, NEEDS_KIP_848, NEEDS_NEW_PARTITIONS, NEEDS_TRANSACTIONS

NOW = ("--settle", "0s", "--guard", "0s")


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_verify_refuses_a_live_group(cli, world, protocol):
    """`verify` fails for a group with members, and names their client ids and hosts. For a group without members it
    succeeds.
    """
    topic, group = world.create_topic(), world.name("live")
    consumer = world.join(group, topic, **{"group.protocol": protocol})
    refusal = cli.fails("verify", group, "--wait", "0s", "--settle", "0s", code=3)
    assert "not stopped" in refusal
    assert "test-app at 127.0.0.1" in refusal
    world.leave(consumer)
    assert cli("verify", group, "--settle", "0s").stdout.startswith(f"stopped: {group}")


def test_verify_waits_for_the_last_member(cli, world):
    """With ``--wait``, `verify` names the remaining members, and waits until the last one has left."""
    topic, group = world.create_topic(), world.name("live")
    world.commit(group, TopicPartition(topic, 0), 0)  # otherwise the group would disappear with its last member
    consumer = world.join(group, topic)
    waiting = cli.start("verify", group, "--wait", "30s", "--settle", "0s")
    assert "test-app" in waiting.stderr.readline()
    world.leave(consumer)
    out, err = waiting.communicate(timeout=30)
    assert waiting.returncode == 0, err
    assert out.startswith("stopped: ")


def test_verify_is_exit_3_if_the_wait_times_out(cli, world):
    """If a group does not stop within ``--wait``, `verify` ends with exit code 3."""
    topic, group = world.create_topic(), world.name("live")
    world.join(group, topic)
    assert "after 1 s" in cli.fails("verify", group, "--wait", "1s", "--settle", "0s", code=3)


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_verify_by_topic_passes_for_a_group_with_other_topics(cli, world, protocol):
    """``verify --topic`` succeeds for a live group if no member is assigned or subscribed to the topic."""
    kept, moved = world.create_topic(), world.create_topic()
    group = world.name("live")
    world.commit(group, TopicPartition(moved, 0), 0)
    world.join(group, kept, **{"group.protocol": protocol})
    cli("verify", group, "--topic", moved, "--settle", "200ms")
    assert kept in cli.fails("verify", group, "--topic", kept, "--wait", "0s", "--settle", "0s", code=3)
    assert "no topic matches nope" in cli.fails(
        "verify", group, "--topic", "nope", "--wait", "0s", "--settle", "0s", code=2
    )


@NEEDS_KIP_848
def test_kip_848_member_that_is_assigned_nothing_is_refused_by_name(cli, world):
    """If a KIP-848 member subscribes to a topic but has no partition, ``verify --topic`` fails, and names the member.

    Kafka could assign a partition of the topic to the member at any time. The error shows its regular expression.
    """
    topic, group = world.create_topic(), world.name("live")
    world.commit(group, TopicPartition(topic, 0), 0)

    def join(client_id: str, subscription: str) -> confluent_kafka.Consumer:
        return world.consumer(group, subscription, **{"group.protocol": "consumer", "client.id": client_id})

    def assigned(client_id: str | None = None) -> dict[str, list[object]]:
        """Return members' partitions by client id; {} if the group is not Stable or ``client_id`` has no partition."""
        (found,) = parsed(cli("describe", group, "--format", "json").stdout)["groups"]
        members = {member["client_id"]: member["assignment"] for member in found["members"]}
        return members if found["state"] == "Stable" and (not client_id or members.get(client_id)) else {}

    busy = join("busy", topic)
    until(lambda: assigned("busy"))
    rest = [join("by-name", topic), join("by-regex", f"^{topic[:-1]}.*")]
    members = until(lambda: len(found := assigned()) == 3 and found)
    assert [members["by-name"], members["by-regex"]] == [[], []]
    refusal = cli.fails("verify", group, "--topic", topic, "--wait", "0s", "--settle", "0s", code=3)
    assert f"has 3 members assigned or subscribed to {topic} (busy at 127.0.0.1 on {topic}, " in refusal
    assert f"by-name at 127.0.0.1 on {topic}, by-regex at 127.0.0.1 subscribed to regex (^{topic[:-1]}.*); " in refusal
    for each in (busy, *rest):
        world.leave(each)
    cli("verify", group, "--topic", topic, "--settle", "0s", "--wait", "30s")


def test_consumer_without_membership_is_found_by_moving_offsets(cli, world):
    """If a consumer without membership commits within the seconds of ``--settle``, `verify` fails, and names the
    partition.
    """
    topic, group = world.create_topic(), world.name("simple")
    partition = TopicPartition(topic, 0)
    world.produce(topic, 0, 1000)
    world.commit(group, partition, 0)
    done = threading.Event()

    def commit_on() -> None:
        offset = 1
        while not done.wait(0.05):
            world.commit(group, partition, offset)
            offset += 1

    thread = threading.Thread(target=commit_on)
    thread.start()
    try:
        until(lambda: world.committed(group)[partition] > 0)
        refusal = cli.fails("verify", group, "--wait", "0s", "--settle", "1s", code=3)
    finally:
        done.set()
        thread.join()
    assert "moved without a member" in refusal
    assert str(partition) in refusal


def test_missing_group_is_refused(cli):
    """If the group does not exist, `verify`, `describe` and `snapshot` end with exit code 3, and write no file."""
    for command in (["verify", "--settle", "0s"], ["describe"], ["snapshot", "-o", "out.csv"]):
        assert "'no-such-group' does not exist" in cli.fails(*command, "no-such-group", code=3)
    assert list(cli.folder.iterdir()) == []


def group_with_a_snapshot(cli, world):
    """Return a partition of ten records, and a group that has committed offset 4 in it. Save its snapshot as s.csv."""
    topic, group = world.create_topic(), world.name("old")
    world.produce(topic, 0, 10)
    world.commit(group, TopicPartition(topic, 0), 4)
    cli("snapshot", group, "-o", "s.csv")
    return TopicPartition(topic, 0), group


def test_dry_run_with_a_live_source_is_pending_and_the_write_refused(cli, world):
    """While the source group is live, ``apply --dry-run`` shows the check ``stopped`` as pending, and the write is
    refused.
    """
    partition, group = group_with_a_snapshot(cli, world)
    world.join(group, partition.topic)
    dry = cli("apply", "s.csv", "--to-group", f"{group}-new", "--dry-run").stdout
    assert "pending" in dry
    refusal = cli.fails("apply", "s.csv", "--to-group", f"{group}-new", *NOW, "--yes", code=3)
    assert "stopped: " in refusal
    assert world.committed(f"{group}-new") == {}
    assert [path.name for path in cli.folder.iterdir()] == ["s.csv"]


def test_source_that_moved_since_the_snapshot_is_refused(cli, world):
    """If the source group has committed after the snapshot, `apply` is refused, and shows partition and offsets."""
    partition, group = group_with_a_snapshot(cli, world)
    world.commit(group, partition, 7)
    refusal = cli.fails("apply", "s.csv", "--to-group", f"{group}-new", *NOW, "--yes", code=3)
    assert f"{partition} 4 → 7 (+3)" in refusal
    assert world.committed(f"{group}-new") == {}


def test_live_target_is_refused(cli, world):
    """If a target group has members, `apply` is refused, and the error names them."""
    partition, group = group_with_a_snapshot(cli, world)
    world.join(f"{group}-new", partition.topic)
    refusal = cli.fails("apply", "s.csv", "--to-group", f"{group}-new", *NOW, "--yes", code=3)
    assert "targets: " in refusal
    assert "test-app" in refusal


def test_topic_recreated_since_the_snapshot_is_refused(cli, world):
    """If a topic was deleted and created again after the snapshot, `apply` is refused, because the topic has other
    records.
    """
    partition, group = group_with_a_snapshot(cli, world)
    world.delete_topic(partition.topic)
    world.create_topic(topic=partition.topic)
    world.produce(partition.topic, 0, 10)
    world.commit(group, partition, 4)
    refusal = cli.fails("apply", "s.csv", "--to-group", f"{group}-new", *NOW, "--yes", code=3)
    assert "deleted and created again" in refusal


@pytest.mark.parametrize(
    ("offset", "complaint"),
    [(2, "3 records deleted already"), (11, "the log end offset is 10")],
    ids=["below", "beyond"],
)
def test_offset_outside_the_log_is_refused(cli, world, offset, complaint):
    """An offset below the log start or beyond the log end is refused by `apply`, although the broker would store it."""
    topic, group = world.create_topic(), world.name("group")
    world.produce(topic, 0, 10)
    world.delete_records(topic, 0, 5)
    (cli.folder / "o.csv").write_text(f"{topic},0,{offset}\n")
    assert complaint in cli.fails("apply", "o.csv", "--no-source-group", "--to-group", group, *NOW, "--yes", code=3)
    assert world.committed(group) == {}


def test_existing_offsets_are_refused_forwarded_or_overwritten(cli, world):
    """If a target group has other committed offsets, `apply` is refused.

    ``--on-existing overwrite`` replaces them; ``--on-existing forward`` only raises them.
    """
    topic, group = world.create_topic(2), world.name("group")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for partition in (first, second):
        world.produce(topic, partition.partition, 10)
        world.commit(group, partition, 5)
    (cli.folder / "o.csv").write_text(f"{topic},0,2\n{topic},1,8\n")
    arguments = ("apply", "o.csv", "--no-source-group", "--to-group", group, *NOW, "--yes")
    assert "is at 5, not 2" in cli.fails(*arguments, code=3)
    assert world.committed(group) == {first: 5, second: 5}
    cli(*arguments, "--on-existing", "forward", "--receipt", "forward.json")
    assert world.committed(group) == {first: 5, second: 8}
    cli(*arguments, "--on-existing", "overwrite", "--receipt", "overwrite.json")
    assert world.committed(group) == {first: 2, second: 8}


def test_partition_without_a_committed_offset_needs_uncommitted(cli, world):
    """If a partition has no committed offset, `apply` is refused without ``--on-uncommitted``.

    ``leave`` writes no offset for it, and ``earliest`` writes the log start offset.
    """
    topic, group = world.create_topic(2), world.name("old")
    world.produce(topic, 1, 10)
    world.delete_records(topic, 1, 3)
    world.commit(group, TopicPartition(topic, 0), 0)
    cli("snapshot", group, "-o", "s.csv")
    arguments = ("apply", "s.csv", *NOW, "--yes", "--to-group")
    assert f"without a committed offset: {topic}-1" in cli.fails(*arguments, f"{group}-a", code=3)
    cli(*arguments, f"{group}-b", "--on-uncommitted", "leave")
    assert world.committed(f"{group}-b") == {TopicPartition(topic, 0): 0}
    cli(*arguments, f"{group}-c", "--on-uncommitted", "earliest", "--copy")
    assert world.committed(f"{group}-c") == {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 3}


@NEEDS_NEW_PARTITIONS
def test_partition_added_since_the_snapshot_needs_uncommitted(cli, world):
    """If a partition was added after the snapshot, `apply` is refused; with ``--on-uncommitted earliest`` it writes the
    log start.
    """
    partition, group = group_with_a_snapshot(cli, world)
    world.add_partitions(partition.topic, 2)
    arguments = ("apply", "s.csv", "--to-group", f"{group}-new", *NOW, "--yes")
    assert f"{partition.topic}-1" in cli.fails(*arguments, code=3)
    cli(*arguments, "--on-uncommitted", "earliest")
    assert world.committed(f"{group}-new") == {partition: 4, TopicPartition(partition.topic, 1): 0}


def test_snapshot_of_another_cluster_is_refused(cli, world):
    """`apply` refuses a snapshot of another cluster, because its offsets belong to other records."""
    group_with_a_snapshot(cli, world)
    text = (cli.folder / "s.csv").read_text()
    cluster = text.splitlines()[1].split(",")[0]
    (cli.folder / "other.csv").write_text(text.replace(cluster, "another-cluster"))
    assert "from cluster another-cluster" in cli.fails("apply", "other.csv", "--to-group", "x", *NOW, "--yes", code=3)


def test_commit_of_the_source_group_during_the_guard_is_exit_4(cli, world):
    """If the source group commits while `apply` watches after the write (``--guard``), the exit code is 4.

    Stderr names the partition, and the receipt records the commit.
    """
    partition, group = group_with_a_snapshot(cli, world)
    applying = cli.start("apply", "s.csv", "--to-group", f"{group}-new", "--settle", "0s", "--guard", "30s", "--yes")
    until(lambda: world.committed(f"{group}-new"))
    world.commit(group, partition, 6)
    _, err = applying.communicate(timeout=60)
    assert applying.returncode == 4, err
    assert f"{partition} 4 → 6 (2 records)" in err
    receipt = json.loads((cli.folder / f"s.csv.{group}-new.receipt.json").read_text())
    assert receipt["entries"][0]["outcome"] == "confirmed"
    assert len(receipt["executions"][0]["moved"]) == 1


@NEEDS_TRANSACTIONS
def test_pending_transactional_commits_are_not_in_all_committed(world, bootstrap_servers):
    """While a transactional commit is pending for a partition, `read_all_committed` returns None for it.

    It leaves the partition out if it had no committed offset before, unless the partition is read by name.
    `read_committed` is refused for these partitions until the transaction ends.
    """
    topic, group = world.create_topic(4), world.name("old")
    known, again, first, never = (TopicPartition(topic, number) for number in range(4))
    world.commit(group, known, 4)
    world.commit(group, again, 4)
    producer = world.transactional_producer()
    producer.begin_transaction()
    pending = [confluent_kafka.TopicPartition(*partition, 6) for partition in (again, first)]
    producer.send_offsets_to_transaction(pending, world.consumer(group).consumer_group_metadata())
    with connected(bootstrap_servers, timeout=1) as client:
        committed = CommittedOffset(offset=4, leader_epoch=0)
        assert read_all_committed(client, [group])[group] == {known: committed, again: None}
        by_name = client.committed({group: [known, again, first, never]}, wait=False)[group]
        assert by_name == {known: committed, again: None, first: None}
        for partition in (again, first):
            with pytest.raises(Refused, match=f"pending transactional commits on {partition};"):
                read_committed(client, {group: [partition]})
        producer.commit_transaction()
        observed = observe(client, describe_group(client, group), frozenset)
    assert {partition.partition: each and each.offset for partition, each in observed.committed.items()} == {
        0: 4,
        1: 6,
        2: 6,
        3: None,
    }


@NEEDS_TRANSACTIONS
def test_pending_transactional_commits_are_waited_for(cli, world):
    """While a transactional commit is pending, `verify` fails, and `snapshot` waits for the new offset."""
    partition, group = group_with_a_snapshot(cli, world)
    producer = world.transactional_producer()
    producer.begin_transaction()
    pending = confluent_kafka.TopicPartition(*partition, 6)
    group_metadata = world.consumer(group).consumer_group_metadata()
    producer.send_offsets_to_transaction([pending], group_metadata)
    refusal = cli.fails("verify", group, "--wait", "0s", "--settle", "0s", "--timeout", "2s", code=3)
    assert "pending transactional commits" in refusal
    assert str(partition) in refusal
    waiting = cli.start("snapshot", group, "-o", "later.csv")
    producer.commit_transaction()
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert f"{partition.topic}," in (cli.folder / "later.csv").read_text()
    cli("apply", "later.csv", "--to-group", f"{group}-new", *NOW, "--yes")
    assert world.committed(f"{group}-new") == {partition: 6}


def test_dead_group_with_committed_offsets_counts_as_empty(world, bootstrap_servers, monkeypatch):
    """A Dead group with committed offsets is treated as an Empty one, because Azure Event Hubs calls a stopped group
    Dead.
    """
    group, partition = world.name("hub"), TopicPartition(world.create_topic(), 0)
    world.commit(group, partition, 0)

    def dead(**_):
        async def ask(client, groups, into):
            for group in groups:
                into.found[group] = DescribeGroupsResponse.DescribedGroup(
                    group_id=group, group_state="Dead", members=[]
                )

        return ask

    async def nothing(client):
        return {}

    monkeypatch.setattr("migrate_groups.kafka.group_requests.describe", dead)
    monkeypatch.setattr("migrate_groups.kafka.wire.list_groups", nothing)
    with closing(KafkaPythonReader(ClientConfig(bootstrap_servers=bootstrap_servers))) as reader:
        assert describe_group(reader, group).stopped
        assert describe_group(reader, group).is_consumer_group
        assert not describe_group(reader, world.name("never")).exists


@NEEDS_TRANSACTIONS
def test_pending_commits_on_topics_that_stay_do_not_hold_up_the_others(cli, world):
    """A pending transactional commit on topics that stay in the source group does not delay the hand-over of other
    topics.
    """
    old = Old(cli, world, stay=True)
    producer = world.transactional_producer()
    producer.begin_transaction()
    pending = [confluent_kafka.TopicPartition(old.find, number, 9) for number in (0, 1)]
    producer.send_offsets_to_transaction(pending, world.consumer(old.group).consumer_group_metadata())
    cli("migrate", "split.toml", "--dry-run", "--timeout", "2s")
    cli("migrate", "split.toml", "--yes", "--timeout", "2s")
    assert world.committed(old.pay_group) == {TopicPartition(old.pay, 0): 4, TopicPartition(old.pay, 1): 5}
    remark = f"a transactional commit is pending for {old.find}-0, {old.find}-1"
    assert remark in " ".join(cli("describe", old.group, "--timeout", "2s").stdout.split())
    producer.commit_transaction()
    until(lambda: old.offsets(old.find) == {TopicPartition(old.find, 0): 9, TopicPartition(old.find, 1): 9})
