"""The behaviour of every `GroupWriter` and second client, on the in-memory cluster and on a real broker."""

from __future__ import annotations

from datetime import timedelta

import pytest

from migrate_groups.errors import Refused
from migrate_groups.migration.reading.requests import describe_group, read_all_committed, read_committed
from migrate_groups.migration.reading.stop_checkpoint import partitions_of_offsets_topic
from migrate_groups.model.answers import Answer
from migrate_groups.model.groups import GroupDescription, GroupWithOffsets
from migrate_groups.model.partitions import CommittedOffset, LeaderEpoch, LogRange, TopicPartition
from migrate_groups.model.permissions import Acls, Operation, Resource, ResourceType
from migrate_groups.snapshots.selection import TopicPattern
from tests.support.broker_world import until
from tests.support.planning import connected
from tests.support.versions import CONSUMER, NEEDS_KIP_848, is_at_least


def test_cluster_id_is_stable(world):
    """The cluster has an id, which is the same at each request."""
    assert world.writer.cluster_id() == world.writer.cluster_id() != ""


def test_both_clients_name_the_same_cluster(world):
    """The second client logs in, and names the cluster id that the first one does. The cluster has a broker."""
    assert world.second_client.cluster_id() == world.writer.cluster_id()
    assert world.writer.brokers() == [1]


def test_group_that_never_existed_is_dead(world):
    """A group that does not exist is described as Dead, without members, and has no committed offsets."""
    described = describe_group(world.writer, "nobody-here")
    assert (described.state, described.exists, described.members) == ("Dead", False, ())
    assert read_all_committed(world.writer, ["nobody-here"])["nobody-here"] == {}


def test_group_created_by_alter_is_an_empty_consumer_group(world):
    """A group that is created by writing offsets is classic and Empty, and has no protocol type."""
    topic, group = world.create_topic(), world.name("group")
    world.writer.alter_offsets({group: {TopicPartition(topic, 0): CommittedOffset(offset=0)}})
    described = describe_group(world.writer, group)
    assert (described.state, described.group_type, described.protocol_type) == ("Empty", "classic", "")
    assert described.is_consumer_group
    assert described.stopped


def test_members_have_client_id_assignment_and_subscription(world):
    """A live classic group is described as Stable, and its member with client id, assignment and subscription."""
    topic, group = world.create_topic(2), world.name("group")
    joined = world.join(group, topic)
    described = describe_group(world.writer, group)
    (member,) = described.members
    assert described.state == "Stable"
    assert not described.stopped
    assert member.client_id == "test-app"
    assert member.assignment == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert member.subscription == {topic}
    assert described.assignor == "range"
    assert member.group_protocol == "classic"
    world.leave(joined)
    described = describe_group(world.writer, group)
    assert described.stopped
    assert (described.protocol_type, described.assignor) == ("consumer", "")


@NEEDS_KIP_848
def test_kip_848_members_have_assignment_and_subscription(world):
    """A KIP-848 member is described with its subscription, by names or by regular expression.

    This also holds for a member without a partition.
    """
    topic, group = world.create_topic(), world.name("group")
    kip_848 = {"group.protocol": "consumer"}
    joined = world.join(group, topic, **kip_848)
    others = [
        world.consumer(group, topic, **kip_848, **{"client.id": "by-name"}),
        world.consumer(group, f"^{topic}", **kip_848, **{"client.id": "by-regex"}),
    ]
    described = until(lambda: stable(describe_group(world.writer, group), members=3))
    members = {member.client_id: member for member in described.members}
    assert (described.group_type, described.protocol_type, described.assignor) == ("consumer", "consumer", "")
    assert described.is_consumer_group
    names = {name: member.subscription for name, member in members.items()}
    assert names == {"test-app": {topic}, "by-name": {topic}, "by-regex": frozenset()}
    regexes = {name: member.subscription_regex for name, member in members.items()}
    by_regex = TopicPattern(regexes.pop("by-regex"), is_regex=True)  # librdkafka puts it into parentheses
    assert by_regex.matching([topic, topic[1:]]) == [topic]
    assert regexes == {"test-app": "", "by-name": ""}
    assert sorted(len(member.assignment) for member in described.members) == [0, 0, 1]
    for each in (*others, joined):
        world.leave(each)
    described = until(lambda: stable(describe_group(world.writer, group), state="Empty", members=0))
    assert described.stopped
    assert (described.group_type, described.protocol_type) == ("consumer", "consumer")


@NEEDS_KIP_848
def test_members_of_a_kip_848_group_have_their_protocol(world):
    """A classic member that joins a KIP-848 group is described there with its own protocol (KIP-1099)."""
    topic, other, group = world.create_topic(), world.create_topic(), world.name("group")
    kip_848 = world.join(group, topic, **{"group.protocol": "consumer"})
    (member,) = describe_group(world.writer, group).members
    assert member.group_protocol == "consumer"
    classic = world.join(group, other, **{"client.id": "classic"})
    described = until(lambda: stable(describe_group(world.writer, group), members=2))
    assert described.group_type == "consumer"
    protocols = {member.client_id: member.group_protocol for member in described.members}
    assert protocols == {"test-app": "consumer", "classic": "classic"}
    for each in (kip_848, classic):
        world.leave(each)


def stable(described: GroupDescription, *, state: str = "Stable", members: int) -> GroupDescription | None:
    """Return the description if the group has this state and this number of members; else None."""
    return described if (described.state, len(described.members)) == (state, members) else None


def test_unknown_topics_are_omitted_from_descriptions(world):
    """`describe_topics` returns the id and the partitions of each topic. A topic that does not exist is omitted."""
    topic = world.create_topic(3)
    described = world.writer.describe_topics([topic, "no-such-topic"])
    assert list(described) == [topic]
    assert described[topic].partitions == (0, 1, 2)
    assert described[topic].topic_id
    assert world.writer.describe_topics(["no-such-topic"]) == {}
    assert world.writer.describe_topics([]) == {}


def test_all_topics_are_described(world):
    """All topics are described with their permitted operations, also Kafka's internal topics.

    A deleted topic is omitted.
    """
    topic, other = world.create_topic(), world.create_topic()
    described = world.writer.describe_topics(None)
    assert {topic, other, "__consumer_offsets"} <= described.keys()
    assert described[topic] == world.writer.describe_topics([topic])[topic]
    assert described[topic].permitted == frozenset(Operation)
    world.delete_topic(other)
    assert other not in world.writer.describe_topics(None)


def test_permissions_include_resources_that_do_not_exist(world):
    """Without ACLs every operation is permitted on groups and topics, including those that do not exist yet."""
    topic, group, live = world.create_topic(), world.name("group"), world.name("group")
    world.commit(group, TopicPartition(topic, 0), 1)
    joined = world.join(live, topic)
    resources = [Resource(ResourceType.GROUP, name) for name in (group, live, "no-such-group")]
    resources += [Resource(ResourceType.TOPIC, name) for name in (topic, "no-such-topic")]
    assert world.writer.permissions(resources) == dict.fromkeys(resources, frozenset(Operation))
    assert world.writer.permissions([]) == {}
    world.leave(joined)


def test_acls_are_not_known_without_an_authorizer(world):
    """Brokers without an authorizer keep no ACLs, so `acls` says that they are not known.

    In Kafka 2.8, brokers without ZooKeeper do not offer DescribeAcls.
    """
    reasons = ("the brokers keep no ACLs", "the brokers do not offer DescribeAcls")
    assert world.writer.acls(["User:app"]) in [Acls(unknown=reason) for reason in reasons]


def test_limits_of_offsets_are_read_from_the_brokers(world):
    """`offset_limits` returns the defaults: offsets are kept for seven days, and metadata has 4,096 characters."""
    assert world.writer.offset_limits() == (timedelta(days=7), 4096)


def test_the_initial_rebalance_delay_is_read_from_the_brokers(world):
    """`initial_rebalance_delay` returns how long the brokers let an Empty group wait for more members.

    The delay is 0 in a sandbox.
    """
    assert world.writer.initial_rebalance_delay() == timedelta(0)


def test_recreated_topic_has_another_id(world):
    """A topic that is deleted and created again has another topic id, and its offsets start at 0 again."""
    topic = world.create_topic()
    world.produce(topic, 0, 3)
    first = world.writer.describe_topics([topic])[topic].topic_id
    world.delete_topic(topic)
    world.create_topic(topic=topic)
    assert world.writer.describe_topics([topic])[topic].topic_id != first
    partition = TopicPartition(topic, 0)
    assert world.writer.log_ranges([partition]) == {partition: LogRange(start=0, end=0)}


def test_log_start_and_log_end_offsets(world):
    """`log_ranges` returns log start and log end offsets after records were produced and deleted.

    Unknown partitions are omitted.
    """
    topic = world.create_topic(2)
    world.produce(topic, 0, 5)
    world.delete_records(topic, 0, 2)
    partitions = [TopicPartition(topic, number) for number in (0, 1, 7)] + [TopicPartition("no-such-topic", 0)]
    assert world.writer.log_ranges(partitions) == {
        TopicPartition(topic, 0): LogRange(start=2, end=5),
        TopicPartition(topic, 1): LogRange(start=0, end=0),
    }


def test_a_known_log_end_offset_is_not_read_again(world):
    """If the caller gives a log start or log end offset, `log_ranges` returns it and does not read it again.

    Unknown partitions are left out.
    """
    topic = world.create_topic(2)
    world.produce(topic, 0, 5)
    world.delete_records(topic, 0, 2)
    first, second, third = (TopicPartition(topic, number) for number in (0, 1, 7))
    assert world.writer.log_ranges([first])[first].end == 5
    world.produce(topic, 0, 2)
    for end in (3, 5):
        assert world.writer.log_ranges([first, second, third], {first: end, third: 1}) == {
            first: LogRange(start=2, end=end),
            second: LogRange(start=0, end=0),
        }
    assert world.writer.log_ranges([first, second, third], starts={first: 1, third: 1}) == {
        first: LogRange(start=1, end=7),
        second: LogRange(start=0, end=0),
    }


def test_a_log_end_offset_that_no_leader_returned_is_read_again(world):
    """If the caller gives a log end offset that no leader has reported to this client, `log_ranges` reads it again.

    It is not read again if the log start offset is given, too.
    """
    topic = world.create_topic()
    partition = TopicPartition(topic, 0)
    world.produce(topic, 0, 5)
    assert world.writer.log_ranges([partition], {partition: 3}) == {partition: LogRange(start=0, end=5)}
    assert world.writer.log_ranges([partition], {partition: 9}) == {partition: LogRange(start=0, end=5)}
    known = {partition: LogRange(start=1, end=9)}
    assert world.writer.log_ranges([partition], {partition: 9}, {partition: 1}) == known


def test_a_leader_epoch_without_a_later_one_has_no_end(world):
    """`epoch_ends` returns no end offset for the current leader epoch and for higher epochs.

    It also leaves out partitions that do not exist.
    """
    partition = TopicPartition(world.create_topic(), 0)
    world.produce(*partition, 3)
    asked = [LeaderEpoch(partition=partition, epoch=epoch) for epoch in (0, 7)]
    missing = [LeaderEpoch(partition=TopicPartition(topic, 9), epoch=0) for topic in (partition.topic, "no-such")]
    assert world.writer.epoch_ends([*asked, *missing]) == {}
    world.writer.log_ranges([partition])
    assert world.writer.epoch_ends(asked) == {}


@pytest.mark.parametrize("metadata", ["", "plain", 'quotes " and , commas\nand lines', "größer ✓", "x" * 4096])
def test_offset_epoch_and_metadata_survive_write_and_read(world, metadata):
    """The offset, leader epoch and metadata that are read are exactly those that were written."""
    topic, group = world.create_topic(2), world.name("group")
    wanted = {
        TopicPartition(topic, 0): CommittedOffset(offset=2**62, leader_epoch=0, metadata=metadata),
        TopicPartition(topic, 1): CommittedOffset(offset=0, leader_epoch=None, metadata=metadata),
    }
    answers = world.writer.alter_offsets({group: wanted})[group]
    assert {answer.answer for answer in answers.values()} == {Answer.WRITTEN}
    assert read_committed(world.writer, {group: list(wanted)})[group] == wanted
    assert read_all_committed(world.writer, [group])[group] == wanted


def test_second_client_reads_offset_and_leader_epoch(world):
    """The second client reads the committed offsets and leader epochs of 599 partitions.

    For a partition without a committed offset it returns None.
    """
    topic, group = world.create_topic(600), world.name("group")
    wanted = {TopicPartition(topic, number): CommittedOffset(offset=number, leader_epoch=0) for number in range(599)}
    world.writer.alter_offsets({group: wanted})
    seen = read_committed(world.second_client, {group: [*wanted, TopicPartition(topic, 599)]})[group]
    assert {partition: committed and committed.offset for partition, committed in seen.items()} == {
        **{partition: committed.offset for partition, committed in wanted.items()},
        TopicPartition(topic, 599): None,
    }
    assert {committed.leader_epoch for committed in seen.values() if committed} == {0}


def test_several_groups_are_written_and_read_at_once(world):
    """If several groups are written or read at once, an error in one group does not affect the others.

    Both clients return the results of each group separately.
    """
    topic, live = world.create_topic(), world.name("live")
    partition, nowhere = TopicPartition(topic, 0), TopicPartition("no-such-topic", 0)
    joined = world.join(live, topic)
    groups = [world.name("group") for _ in range(20)]
    wanted = {group: {partition: CommittedOffset(offset=n)} for n, group in enumerate(groups)}
    wanted[groups[0]][nowhere] = CommittedOffset(offset=7)
    answers = world.writer.alter_offsets({**wanted, live: {partition: CommittedOffset(offset=9)}})
    assert [answers[group][partition].answer for group in groups] == [Answer.WRITTEN] * 20
    assert answers[groups[0]][nowhere].error == "UNKNOWN_TOPIC_OR_PARTITION"
    assert answers[live][partition].error == "UNKNOWN_MEMBER_ID"
    never = world.name("never")
    asked = {**{group: [partition] for group in groups}, live: [partition, nowhere], never: [partition]}
    asked[groups[1]] = []
    for reader in (world.writer, world.second_client):
        found = reader.committed(asked)
        assert [found[group][partition].offset for group in groups if asked[group]] == [0, *range(2, 20)]
        assert (found[groups[1]], found[live], found[never]) == (
            {},
            {partition: None, nowhere: None},
            {partition: None},
        )
    assert world.writer.alter_offsets({}) == world.writer.committed({}) == {}
    world.leave(joined)


def test_groups_are_listed(world):
    """`list_groups` returns every group with its state and type, sorted by name."""
    topic, live, empty = world.create_topic(), world.name("live"), world.name("empty")
    joined = world.join(live, topic)
    world.commit(empty, TopicPartition(topic, 0), 0)
    listed = {each.group: each for each in world.writer.list_groups()}
    assert [*listed] == sorted(listed)
    assert (listed[live].state, listed[live].group_type, listed[live].protocol_type) == (
        "Stable",
        "classic",
        "consumer",
    )
    assert (listed[empty].state, listed[empty].group_type) == ("Empty", "classic")
    world.leave(joined)


def test_several_groups_are_described_at_once(world):
    """If several groups are described at once, each has the same description as when it is described alone.

    This also holds for a group that does not exist.
    """
    topic, live, empty, never = world.create_topic(), world.name("live"), world.name("empty"), world.name("never")
    joined = world.join(live, topic)
    world.commit(empty, TopicPartition(topic, 0), 0)
    described = world.writer.describe_groups([live, empty, never])
    assert described == {group: describe_group(world.writer, group) for group in (live, empty, never)}
    assert [described[group].state for group in (live, empty, never)] == ["Stable", "Empty", "Dead"]
    world.leave(joined)


def test_groups_read_at_once_equal_groups_read_one_by_one(world):
    """If several groups are read at once, they have the same descriptions and committed offsets as one by one."""
    topic, live, never = world.create_topic(2), world.name("live"), world.name("never")
    joined = world.join(live, topic)
    groups = [world.name("group") for _ in range(20)]
    for number, group in enumerate(groups):
        world.commit(group, TopicPartition(topic, number % 2), number)
    asked = [*groups, live, never]
    described, committed = world.writer.describe_groups(asked), world.writer.committed(dict.fromkeys(asked), wait=False)
    assert described == {group: describe_group(world.writer, group) for group in asked}
    assert committed == {group: read_all_committed(world.writer, [group])[group] for group in asked}
    assert [each.offset for group in groups for each in committed[group].values()] == [*range(20)]
    assert (described[never].exists, committed[never], committed[live]) == (False, {}, {})
    assert world.writer.describe_groups([]) == world.writer.committed({}, wait=False) == {}
    world.leave(joined)


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_groups_described_with_offsets_equal_groups_read_one_after_the_other(world, protocol):
    """Groups are described with their offsets as they are described, and read then, without waiting.

    This holds for a group with members, an empty one and one that does not exist, and for the same requests again,
    which a client may send in another way.
    """
    topic = world.create_topic(2)
    live, empty, missing = (world.name(name) for name in ("live", "empty", "missing"))
    place = TopicPartition(topic, 1)
    for group in (live, empty):
        world.writer.alter_offsets({group: {place: CommittedOffset(offset=7, metadata="m")}})
    joined = world.join(live, topic, **{"group.protocol": protocol})
    groups = (live, empty, missing)
    for wanted in (dict.fromkeys(groups), {group: [place] for group in groups}) * 2:
        found = world.writer.describe_with_offsets(wanted)
        described, offsets = world.writer.describe_groups([*wanted]), world.writer.committed(wanted, wait=False)
        assert found == {group: GroupWithOffsets(described[group], offsets[group]) for group in groups}
        assert found[live].description.members
        assert found[live].offsets == found[empty].offsets == {place: CommittedOffset(offset=7, metadata="m")}
        assert not found[missing].description.exists
        assert found[missing].offsets == {}
    offsets_topic = partitions_of_offsets_topic(world.writer)
    for _ in range(2):
        ends, group = world.writer.describe_after_ends(offsets_topic, live)
        assert ends.keys() == {*offsets_topic}
        assert group == found[live]
    world.leave(joined)


def test_calls_at_once_return_their_results_in_order_or_raise_the_first_error(world):
    """Calls at once return what each of them returns, in their order, or raise the error of the first that raised."""
    topic = world.create_topic()

    def fails(error: Exception) -> None:
        raise error

    described, cluster_id = world.writer.at_once(lambda: world.writer.describe_topics([topic]), world.writer.cluster_id)
    assert described.keys() == {topic}
    assert cluster_id == world.writer.cluster_id()
    with pytest.raises(Refused, match="first"):
        world.writer.at_once(world.writer.cluster_id, lambda: fails(Refused("first")), lambda: fails(Refused("second")))


def test_start_offsets_of_share_groups_are_set_since_kafka_4_2(bootstrap_servers, pytestconfig):
    """Brokers before Kafka 4.2 count as brokers that set no start offsets, although 4.1 offers the requests."""
    with connected(bootstrap_servers) as writer:
        assert writer.offers().alters_share_groups is is_at_least(pytestconfig.getoption("--kafka"), "4.2.0")


def test_partition_without_commit_is_none(world):
    """If nothing is committed or the topic does not exist, the committed offset is read as None, never as a number.

    If pending transactional commits are not waited for, the partition is left out: None then means such a commit.
    """
    topic, group = world.create_topic(2), world.name("group")
    world.commit(group, TopicPartition(topic, 0), 7)
    first, second, unknown = TopicPartition(topic, 0), TopicPartition(topic, 1), TopicPartition("no-such-topic", 0)
    found = read_committed(world.writer, {group: [first, second, unknown]})[group]
    offsets = {partition: committed and committed.offset for partition, committed in found.items()}
    assert offsets == {first: 7, second: None, unknown: None}
    now = world.writer.committed({group: [first, second, unknown], "nobody-here": [first]}, wait=False)
    assert now == {group: {first: found[first]}, "nobody-here": {}}


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_live_group_refuses_every_partition(world, protocol):
    """A write to a live group is refused for every partition with UNKNOWN_MEMBER_ID, and nothing is written."""
    topic, group = world.create_topic(2), world.name("group")
    joined = world.join(group, topic, **{"group.protocol": protocol})
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    answers = world.writer.alter_offsets({group: dict.fromkeys(partitions, CommittedOffset(offset=1))})[group]
    assert {(answer.answer, answer.error) for answer in answers.values()} == {(Answer.REFUSED, "UNKNOWN_MEMBER_ID")}
    assert set(read_committed(world.writer, {group: partitions})[group].values()) == {None}
    world.leave(joined)


def test_unknown_partition_is_refused_and_the_rest_written(world):
    """Offsets of partitions that do not exist are refused; the offsets of the other partitions are written."""
    topic, group = world.create_topic(), world.name("group")
    first, ninth, unknown = TopicPartition(topic, 0), TopicPartition(topic, 9), TopicPartition("no-such-topic", 0)
    wanted = dict.fromkeys([first, ninth, unknown], CommittedOffset(offset=3))
    answers = world.writer.alter_offsets({group: wanted})[group]
    assert {partition: (answer.answer, answer.error) for partition, answer in answers.items()} == {
        first: (Answer.WRITTEN, ""),
        ninth: (Answer.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION"),
        unknown: (Answer.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION"),
    }


def test_a_probe_is_committed_and_its_group_deleted(world):
    """A probe creates an Empty group with offset 0, which can be deleted. An unknown partition is refused."""
    place, probes = TopicPartition(world.create_topic(), 0), [world.name("probe"), world.name("probe")]
    answers = world.writer.commit_probes(probes, place)
    assert {probe: answer.answer for probe, answer in answers.items()} == dict.fromkeys(probes, Answer.WRITTEN)
    for probe in probes:
        committed = read_committed(world.writer, {probe: [place]})[probe][place]
        assert committed is not None
        assert committed.offset == 0
        assert describe_group(world.writer, probe).stopped
    deleted = world.writer.delete_groups(probes)
    assert {probe: answer.answer for probe, answer in deleted.items()} == dict.fromkeys(probes, Answer.WRITTEN)
    refused = world.writer.commit_probes(probes[:1], TopicPartition("no-such-topic", 0))[probes[0]]
    assert (refused.answer, refused.error) == (Answer.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION")


@pytest.mark.parametrize("longest", ["x" * 4096, "é" * 4096, "😀" * 2048])
def test_metadata_over_the_limit_is_refused(world, longest):
    """Metadata of 4,096 UTF-16 code units is accepted, whatever its bytes, and one code unit more is refused."""
    partition, group = TopicPartition(world.create_topic(), 0), world.name("group")
    longest_allowed = CommittedOffset(offset=3, metadata=longest)
    (answer,) = world.writer.alter_offsets({group: {partition: longest_allowed}})[group].values()
    assert answer.answer is Answer.WRITTEN
    longer = CommittedOffset(offset=4, metadata=longest + "x")
    (answer,) = world.writer.alter_offsets({group: {partition: longer}})[group].values()
    assert (answer.answer, answer.error) == (Answer.REFUSED, "OFFSET_METADATA_TOO_LARGE")


def test_negative_offset_is_refused():
    """A `CommittedOffset` with a negative offset can't be made: a group would then apply auto.offset.reset."""
    with pytest.raises(ValueError, match="never negative"):
        CommittedOffset(offset=-1)


def test_empty_group_name_is_refused(world):
    """An empty group name is refused before any request, because kafka-python would write to the group ''."""
    topic = world.create_topic()
    with pytest.raises(ValueError, match="group name is empty"):
        world.writer.alter_offsets({"": {TopicPartition(topic, 0): CommittedOffset(offset=1)}})
    assert not describe_group(world.writer, "").exists


def test_delete_offsets(world):
    """After `delete_offsets`, the deleted offsets are no longer committed; the group's other offsets stay."""
    topic, group = world.create_topic(2), world.name("group")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    world.writer.alter_offsets({group: {first: CommittedOffset(offset=1), second: CommittedOffset(offset=2)}})
    (answer,) = world.writer.delete_offsets({group: [first]})[group].values()
    assert answer.answer is Answer.WRITTEN
    left = read_committed(world.writer, {group: [first, second]})[group]
    assert {partition: each and each.offset for partition, each in left.items()} == {first: None, second: 2}


@pytest.mark.parametrize("protocol", ["classic", CONSUMER])
def test_delete_offsets_of_a_subscribed_topic_is_refused(world, protocol):
    """If a member subscribes to a topic, the deletion of the group's offsets of this topic is refused."""
    topic, group = world.create_topic(), world.name("group")
    joined = world.join(group, topic, **{"group.protocol": protocol})
    (answer,) = world.writer.delete_offsets({group: [TopicPartition(topic, 0)]})[group].values()
    assert (answer.answer, answer.error) == (Answer.REFUSED, "GROUP_SUBSCRIBED_TO_TOPIC")
    world.leave(joined)


def test_a_held_group_takes_commits_of_its_holder_only(world):
    """While a client holds a group, the coordinator accepts this client's commits, and refuses those of others.

    The client describes the group as Empty, others see its member, and can't hold the group. After the hold, any
    client may commit again, and the holder's offsets are there.
    """
    partition, group = TopicPartition(world.create_topic(), 0), world.name("group")
    mine, theirs = (CommittedOffset(offset=3, metadata="mine"), CommittedOffset(offset=4))
    with world.writer.held(group, ()) as held:
        (answer,) = world.other_writer.alter_offsets({group: {partition: theirs}})[group].values()
        assert (answer.answer, answer.error) == (Answer.REFUSED, "UNKNOWN_MEMBER_ID")
        (answer,) = world.writer.alter_offsets({group: {partition: mine}})[group].values()
        assert answer.answer is Answer.WRITTEN
        assert read_committed(world.other_writer, {group: [partition]})[group] == {partition: mine}
        assert describe_group(world.writer, group).state == "Empty"
        assert len(describe_group(world.other_writer, group).members) == 1
        with pytest.raises(Refused, match="can't be held"), world.other_writer.held(group, ()):
            pass
        assert held.lost is None
    assert describe_group(world.other_writer, group).state == "Empty"
    assert read_committed(world.other_writer, {group: [partition]})[group] == {partition: mine}
    (answer,) = world.other_writer.alter_offsets({group: {partition: theirs}})[group].values()
    assert answer.answer is Answer.WRITTEN


def test_several_groups_are_held_at_once(world):
    """A client can hold several groups, and commit offsets of all of them and of other groups with one call."""
    partition, groups = TopicPartition(world.create_topic(), 0), [world.name("group") for _ in range(3)]
    with world.writer.held(groups[0], ()), world.writer.held(groups[1], ()):
        answers = world.writer.alter_offsets({group: {partition: CommittedOffset(offset=1)} for group in groups})
        assert {answers[group][partition].answer for group in groups} == {Answer.WRITTEN}
        others = world.other_writer.alter_offsets({group: {partition: CommittedOffset(offset=2)} for group in groups})
        assert [others[group][partition].answer for group in groups] == [*[Answer.REFUSED] * 2, Answer.WRITTEN]


def test_a_removed_member_can_not_commit(world):
    """If the coordinator has removed the member that holds a group, its commits are refused, also in an Empty group."""
    partition, group = TopicPartition(world.create_topic(), 0), world.name("group")
    with world.writer.held(group, ()):
        (answer,) = world.writer.alter_offsets({group: {partition: CommittedOffset(offset=1)}})[group].values()
        assert answer.answer is Answer.WRITTEN
        (member,) = describe_group(world.other_writer, group).members
        world.remove_member(group, member.member_id)
        (answer,) = world.writer.alter_offsets({group: {partition: CommittedOffset(offset=1)}})[group].values()
        assert (answer.answer, answer.error) == (Answer.REFUSED, "UNKNOWN_MEMBER_ID")
        with world.other_writer.held(group, ()):
            (answer,) = world.writer.alter_offsets({group: {partition: CommittedOffset(offset=1)}})[group].values()
            assert (answer.answer, answer.error) == (Answer.REFUSED, "UNKNOWN_MEMBER_ID")


def test_a_hold_replaces_the_member_of_a_killed_process(world):
    """A client that holds a group with the client id of an earlier holder removes that member, and takes its place.

    The commits of the earlier one are refused. With another client id, the hold is refused.
    """
    partition, group = TopicPartition(world.create_topic(), 0), world.name("group")
    offsets = {group: {partition: CommittedOffset(offset=1)}}
    with world.writer.held(group, (), holder="run-1"):
        with pytest.raises(Refused, match="can't be held"), world.other_writer.held(group, (), holder="run-2"):
            pass
        with world.other_writer.held(group, (), holder="run-1"):
            (answer,) = world.other_writer.alter_offsets(offsets)[group].values()
            assert answer.answer is Answer.WRITTEN
            (answer,) = world.writer.alter_offsets(offsets)[group].values()
            assert (answer.answer, answer.error) == (Answer.REFUSED, "UNKNOWN_MEMBER_ID")
