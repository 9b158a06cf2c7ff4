"""``list`` and ``describe`` on the in-memory cluster: what they show, leave out, and mark as unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from migrate_groups.errors import ClusterUnavailable, InvalidInput, NotAuthorized, Refused, UsageError
from migrate_groups.migration.reading.groups import describe, list_groups
from migrate_groups.model.groups import GroupDescription, Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.model.permissions import Operation, Resource, ResourceType
from migrate_groups.planning.checks.permission import ANY_GROUP, ANY_TOPIC
from migrate_groups.snapshots.selection import TopicPattern
from tests.support.clock import FakeClock
from tests.support.connected import Connected
from tests.support.documents import parsed
from tests.support.in_memory import InMemoryCluster


class Cluster(InMemoryCluster):
    """An in-memory cluster that refuses to describe a topic without the permission Describe, as brokers do.

    wrong: by group, an error to raise instead of the description. deleted: groups that are listed, and then described
    as deleted. asked: the groups whose committed offsets were read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wrong: dict[str, Exception] = {}
        self.deleted: set[str] = set()
        self.asked: list[str] = []

    def describe_topics(self, topics: Iterable[str] | None):
        found = super().describe_topics(topics)
        if hidden := [name for name, each in found.items() if Operation.DESCRIBE not in (each.permitted or ())]:
            raise NotAuthorized(f"not authorized: lacks Describe on Topic {hidden}")
        return found

    def description(self, group: str) -> GroupDescription:
        if group in self.wrong:
            raise self.wrong[group]
        if group in self.deleted:
            return GroupDescription(group=group, state="Dead", group_type="")
        return super().description(group)

    def list_groups(self):
        wrong, self.wrong = self.wrong, {}
        listed = super().list_groups()
        self.wrong = wrong
        return listed

    def committed(self, wanted, *, wait=True):
        self.asked += wanted
        return super().committed(wanted, wait=wait)


def member(*partitions: TopicPartition, name: str = "m", subscription: Iterable[str] = ()) -> Member:
    return Member(
        member_id=f"{name}-id",
        client_id=name,
        host="/10.0.0.1",
        assignment=frozenset(partitions),
        subscription=frozenset(subscription),
    )


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster with three groups.

    ``bill`` reads orders and payments, ``idle`` reads only payments, and ``old`` has no lag in orders.
    """
    made = Cluster()
    for topic, partitions in (("orders", 2), ("payments", 1), ("unread", 1)):
        made.create_topic(topic, partitions)
        for partition in range(partitions):
            made.produce(topic, partition, 10)
    made.commit("bill", TopicPartition("orders", 0), 4)
    made.commit("bill", TopicPartition("orders", 1), 10)
    made.join("bill", member(TopicPartition("payments", 0), subscription=["payments"]))
    made.join("idle", member(subscription=["payments"], name="idle"))
    for partition in (0, 1):
        made.commit("old", TopicPartition("orders", partition), 10)
    return made


def listed(cluster: Cluster, *topics: str, **filters: list[str]):
    patterns = [TopicPattern(topic) for topic in topics]
    return {each.group: each for each in list_groups(cluster, FakeClock(), topics=patterns, **filters)}


def test_each_group_has_its_members_topics_and_lag(cluster):
    """``list`` shows each group's members, topics and lag, which is the sum of its partitions' known lags.

    The lag of a partition without a committed offset is unknown, not 0.
    """
    found = listed(cluster)
    assert [*found] == ["bill", "idle", "old"]
    assert {name: (each.state, len(each.members), sorted(each.topics), each.lag) for name, each in found.items()} == {
        "bill": ("Stable", 1, ["orders", "payments"], 6),
        "idle": ("Stable", 1, ["payments"], None),
        "old": ("Empty", 0, ["orders"], 0),
    }
    assert [each.partitions_without_lag for each in found.values()] == [1, 1, 0]
    assert [each.remarks for each in found.values()] == [("no committed offset for 1 partition",)] * 2 + [()]


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        (["orders"], {"bill": 6, "old": 0}),
        (["payments"], {"bill": None, "idle": None}),
        (["pay*", "unread"], {"bill": None, "idle": None}),
        (["un*"], {}),
        (["x*"], {}),
        (["*"], {"bill": 6, "idle": None, "old": 0}),
    ],
)
def test_a_topic_selects_the_groups_that_read_it(cluster, topics, expected):
    """``list --topic`` shows the groups with an offset, an assignment or a subscription in the topics.

    The lag is that in these topics only.
    """
    assert {name: each.lag for name, each in listed(cluster, *topics).items()} == expected


def test_a_topic_that_is_nowhere_is_an_error(cluster):
    """If no topic has the name given to ``list --topic``, ``list`` fails, unless a group is subscribed to this name."""
    with pytest.raises(InvalidInput, match="topic order does not exist, and no group is subscribed to it"):
        listed(cluster, "order", "payments")
    cluster.join("early", member(subscription=["order"]))
    assert listed(cluster, "order")["early"].remarks == ("topic order does not exist",)


def test_states_select_groups_in_any_letter_case(cluster):
    """``list --state`` reads only the offsets of groups in the given states, in any letter case.

    A state that Kafka does not have is an error.
    """
    assert [*listed(cluster, states=["eMPTY"])] == ["old"]
    assert cluster.asked == ["old"]
    assert [*listed(cluster, states=["empty", "Stable"])] == ["bill", "idle", "old"]
    with pytest.raises(UsageError, match=r"unknown states Gone, Odd: choose from Assigning, .*, Stable"):
        listed(cluster, states=["stable", "Gone", "Odd"])


def test_types_select_groups_in_any_letter_case(cluster):
    """``list --type`` reads only the offsets of groups of the given types, in any letter case.

    A type that Kafka does not have is an error.
    """
    cluster.join("new", member(subscription=["payments"], name="new"), group_type="consumer")
    assert [*listed(cluster, types=["Consumer"])] == ["new"]
    assert cluster.asked == ["new"]
    assert [*listed(cluster, types=["consumer", "classic"], states=["Stable"])] == ["bill", "idle", "new"]
    with pytest.raises(UsageError, match="unknown type kip-848: choose from classic, consumer, share, streams"):
        listed(cluster, types=["kip-848"])


def test_a_topic_selects_the_partitions_and_members_of_a_described_group(cluster):
    """``describe --topic`` shows the group's partitions of the topic, and the members that read it or may read it.

    A topic that no described group reads is an error.
    """
    cluster.join("bill", member(TopicPartition("orders", 0), name="reader", subscription=["orders"]))
    cluster.join("bill", member(name="not known"))
    found = describe(cluster, ["bill"], FakeClock(), topics=[TopicPattern("orders")])[0]
    assert ([*found.topics], [each.partition for each in found.partitions], found.lag) == (["orders"], [0, 1], 6)
    assert {each.member_id for each in found.members or ()} == {"reader-id", "not known-id"}
    with pytest.raises(InvalidInput, match="no described group has an offset, a member or a subscription for unread"):
        describe(cluster, ["bill", "idle"], FakeClock(), topics=[TopicPattern("unread")])


def test_a_topic_and_a_type_are_options_of_the_commands(cli, cluster):
    """``list --type`` and ``describe --topic`` select as the functions do, also with ``--all-groups``."""
    assert "0 groups" in cli("list", "--type", "share").stdout
    shown = cli("describe", "bill", "--topic", "orders").stdout
    assert ("orders" in shown, "payments" in shown) == (True, False)
    everything = cli("describe", "--all-groups", "--topic", "pay*").stdout
    assert ("group idle" in everything, "group old" in everything) == (True, False)


def test_a_group_that_is_deleted_meanwhile_is_left_out(cluster):
    """If a group is deleted between listing and description, ``list`` leaves it out and shows the others."""
    cluster.deleted.add("bill")
    assert [*listed(cluster)] == ["idle", "old"]


def test_a_group_that_can_not_be_described_is_said(cluster):
    """If a group can't be described, a remark says why.

    ``list --topic`` also shows this group, because it may read the topic. If the cluster does not answer, ``list``
    fails.
    """
    cluster.wrong["old"] = Refused("what member x holds is not known")
    found = listed(cluster)["old"]
    assert (found.state, found.members, found.lag, found.remarks) == (
        "Empty",
        None,
        0,
        ("what member x holds is not known",),
    )
    assert [*listed(cluster, "payments")] == ["bill", "idle", "old"]
    cluster.wrong["old"] = ClusterUnavailable("the cluster did not answer")
    with pytest.raises(ClusterUnavailable):
        listed(cluster)


def test_a_hidden_topic_is_said(cluster):
    """If a topic may not be described, ``list`` says so, and shows the lag in the group's other topics.

    ``list --topic`` with this topic fails, and so does ``describe``.
    """
    cluster.deny(Resource(ResourceType.TOPIC, "payments"), Operation.DESCRIBE)
    found = listed(cluster)["bill"]
    assert (found.lag, found.topics) == (6, {"orders", "payments"})
    assert found.remarks == ("User:ANONYMOUS lacks Describe on Topic payments",)
    for look in (lambda: listed(cluster, "payments"), lambda: describe(cluster, ["bill"], FakeClock())):
        with pytest.raises(NotAuthorized, match="lacks Describe on Topic"):
            look()


def test_a_partition_without_a_leader_or_that_is_gone_has_no_lag(cluster):
    """If a partition is deleted or has no leader, its committed offset is shown, and its lag is unknown."""
    cluster.lose_leader("orders", 0)
    cluster.commit("old", TopicPartition("gone", 3), 7)
    found = listed(cluster)["old"]
    assert [(row.topic, row.partition, row.offset, row.lag) for row in found.partitions] == [
        ("gone", 3, 7, None),
        ("orders", 0, 10, None),
        ("orders", 1, 10, 0),
    ]
    assert found.remarks == (
        "no log end offset for gone-3, orders-0: it has no leader, or does not exist",
        "topic gone does not exist",
    )
    assert (found.lag, found.partitions_without_lag) == (0, 2)


def test_a_pending_commit_is_not_waited_for_and_said(cluster, monkeypatch):
    """While a transactional commit is pending for a partition, ``list`` shows no lag for it, and a remark says why."""
    fetched = cluster.fetched

    def pending(group, partitions, *, wait):
        found = fetched(group, partitions, wait=wait)
        return {**found, TopicPartition("orders", 0): None} if partitions is None else found

    monkeypatch.setattr(cluster, "fetched", pending)
    found = listed(cluster)["old"]
    assert (found.lag, found.remarks) == (0, ("a transactional commit is pending for orders-0",))
    assert describe(cluster, ["old"], FakeClock())[0].remarks == ()


def test_a_share_group_is_listed_without_members_and_offsets(cluster):
    """A share group's members and lag are shown as unknown: members can't be read, and it commits no offsets."""
    cluster.join("shared", member(), group_type="share", protocol_type="share")
    found = listed(cluster)["shared"]
    assert (found.group_type, found.members, found.lag, found.partitions) == ("share", None, None, ())
    assert found.remarks == (
        "the members of a share group can't be read",
        "a share group commits no offsets (KIP-932)",
    )
    assert "shared" not in cluster.asked
    assert [*listed(cluster, "payments")] == ["bill", "idle", "shared"], "it may read the topic"
    assert describe(cluster, ["shared"], FakeClock()) == (found,)


@pytest.fixture
def cli(tmp_path, monkeypatch, cluster) -> Connected:
    return Connected(tmp_path, monkeypatch, cluster)


def test_the_list_ends_with_totals(cli):
    """``list`` prints one line per group, sorted by name, then a line of totals, and nothing on stderr."""
    done = cli("list")
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == [
        "GROUP",
        "bill",
        "idle",
        "old",
        "3 groups, 2 members, 3 topics, total lag 11, not known for 2 partitions",
    ]
    assert done.stderr == ""


def test_an_empty_list_is_no_failure(cli):
    """If no group is found, ``list`` ends with exit code 0: the totals are 0, and the JSON document has no groups."""
    assert cli("list", "--state", "Dead").stdout == "0 groups, 0 members, 0 topics, total lag -\n"
    document = parsed(cli("list", "--state", "Dead", "--format", "json").stdout)
    assert document == {"schema": "migrate-groups/list", "schema_version": 1, "groups": []}
    cli.cluster.deleted |= {"bill", "idle", "old"}
    assert cli("describe", "--all-groups").stdout == "no groups\n"


def test_what_is_not_known_is_null_in_the_document(cli):
    """The JSON document of ``list`` has null where the table has ``-``.

    Group names with control characters and quotes break neither.
    """
    odd = 'größe "x" \u202e\n[b] :bank:'
    cli.cluster.join(odd, member(subscription=["payments"]))
    document = parsed(cli("list", "--topic", "payments", "--format", "json").stdout)
    assert [(each["group"], each["lag"], each["members"]) for each in document["groups"]] == [
        ("bill", None, 1),
        (odd, None, 1),
        ("idle", None, 1),
    ]
    shown = cli("list", "--topic", "payments").stdout
    assert len(shown.splitlines()) == 5
    assert 'größe "x" \\u202e\\n[b] :bank:  Stable' in shown


def test_hidden_groups_and_topics_are_warned_of(cli):
    """If the principal may not describe every group and topic, a warning says that hidden ones are left out."""
    for resource in (ANY_GROUP, ANY_TOPIC):
        cli.cluster.deny(resource, Operation.DESCRIBE)
    who = "warning: User:ANONYMOUS may not describe every"
    for command in (["list"], ["describe", "--all-groups"]):
        said = cli(*command).stderr
        assert f"{who} group: one that is hidden from it is left out here\n{who} topic: one that" in said


def test_describe_shows_what_kafkas_tool_shows(cli):
    """``describe`` prints the columns of kafka-consumer-groups, with ``-`` for unknown values.

    Members without a partition follow, then the total lag.
    """
    cli.cluster.join("bill", member(name="spare", subscription=["payments"]))
    title, head, *lines, total = cli("describe", "bill").stdout.splitlines()
    assert title == "group bill  Stable, classic, 2 members"
    assert head.split() == [
        *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
        *("CONSUMER-ID", "HOST", "CLIENT-ID"),
    ]
    assert [line.split() for line in lines] == [
        ["bill", "orders", "0", "4", "10", "6", "-", "-", "-"],
        ["bill", "orders", "1", "10", "10", "0", "-", "-", "-"],
        ["bill", "payments", "0", "-", "10", "-", "m-id", "/10.0.0.1", "m"],
        ["bill", "-", "-", "-", "-", "-", "spare-id", "/10.0.0.1", "spare"],
    ]
    assert total == "total lag 6 in 3 partitions; no committed offset for 1 partition"


def test_a_log_start_above_the_committed_offset_is_shown(cli):
    """If a log start offset exceeds a committed offset, ``describe`` adds a column with the log start offsets."""
    assert "LOG-START-OFFSET" not in cli("describe", "bill").stdout
    cli.cluster.delete_records("orders", 0, 7)
    lines = cli("describe", "bill").stdout.splitlines()
    assert lines[1].endswith("CLIENT-ID  LOG-START-OFFSET")
    assert [line.split()[-1] for line in lines[2:5]] == ["7", "0", "0"]


def test_all_groups_are_described(cli):
    """``describe --all-groups`` describes every group; with the name of a group it is refused."""
    shown = cli("describe", "--all-groups").stdout
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("group ")] == ["bill", "idle", "old"]
    assert "--all-groups" in cli.fails("describe", "bill", "--all-groups", code=2)
    document = parsed(cli("describe", "--all-groups", "--format", "json").stdout)
    (bill, *_) = document["groups"]
    assert (bill["members"][0]["member_id"], bill["lag"]) == ("m-id", 6)
    assert bill["partitions"][2] == {
        "topic": "payments",
        "topic_id": "topic-id-2",
        "partition": 0,
        "committed_offset": None,
        "leader_epoch": None,
        "metadata": "",
        "log_start_offset": 0,
        "log_end_offset": 10,
        "lag": None,
        "oldest_unread_at": None,
        "time_lag_seconds": None,
        "member_ids": ["m-id"],
    }


def test_time_lag_is_in_the_table_and_the_document(cli):
    """``describe --time-lag`` adds a column to the table.

    The JSON document has the timestamp of the oldest unread record, or null if it is not known.
    """
    cli.cluster.create_topic("late", 1)
    cli.cluster.produce("late", 0, 30, timestamp=1_000_000_000_000)
    cli.cluster.commit("old", TopicPartition("late", 0), 3)
    assert "TIME-LAG" not in cli("describe", "old").stdout
    lines = cli("describe", "old", "--time-lag").stdout.splitlines()
    assert re.search(r"^old +late +0 +3 +30 +27 +- +- +- +\d+ d", lines[2])
    document = parsed(cli("describe", "old", "--time-lag", "--format", "json").stdout)
    late, orders, *_ = document["groups"][0]["partitions"]
    assert (late["oldest_unread_at"], orders["oldest_unread_at"]) == ("2001-09-09T01:46:40Z", None)
    assert late["time_lag_seconds"] > 10**8
    assert orders["time_lag_seconds"] is None


@pytest.mark.parametrize(
    ("group", "protocol_type", "client", "remark"),
    [
        ("target-mm2", "connect", "source->target", "workers of MirrorMaker 2"),
        ("jobs", "connect", "connect-1", "workers of Kafka Connect"),
        ("orders", "consumer", "connector-consumer-s3-0", "a Connect sink"),
    ],
)
def test_list_names_groups_of_connect(group, protocol_type, client, remark):
    """``list`` says of each group with members of Kafka Connect or MirrorMaker 2 what it is, also without offsets."""
    cluster = InMemoryCluster()
    member = Member(member_id="m", client_id=client, host="/h")
    cluster.join(group, member, protocol_type=protocol_type)
    (found,) = list_groups(cluster, FakeClock())
    assert found.remarks == (remark,)
