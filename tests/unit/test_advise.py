"""``advise`` on the in-memory cluster: which applications share a group, and what ``advise`` says if it can't know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate_groups.applications import components, stem
from migrate_groups.errors import GroupNotFound, Refused, Undetermined
from migrate_groups.files import split_toml
from migrate_groups.files.split_toml import to_toml
from migrate_groups.migration.advise.application import applications
from migrate_groups.migration.advise.propose import client_settings, propose
from migrate_groups.migration.advise.shared_groups import Finding, GroupAdvice, advise
from migrate_groups.model.groups import Member
from migrate_groups.model.partitions import TopicPartition
from migrate_groups.snapshots.selection import TopicPattern
from migrate_groups.snapshots.split import SplitSpec, SplitTarget
from tests.support.clock import FakeClock
from tests.support.connected import Connected
from tests.support.documents import parsed
from tests.support.in_memory import InMemoryCluster

SPEC_FOR = ("advise", "--spec-for", "big")
TOPICS = {"orders": 2, "payments": 2, "invoices": 1, "clicks": 1}


def member(name: str, *topics: str, has: Iterable[tuple[str, int]] = (), client: str = "", regex: str = "") -> Member:
    return Member(
        member_id=name,
        client_id=client or name,
        host="/10.0.0.1",
        assignment=frozenset(TopicPartition(*each) for each in has),
        subscription=frozenset(topics),
        subscription_regex=regex,
    )


SHOP = [
    member("shop-1", "orders", "payments", has=[("orders", 0), ("payments", 0)]),
    member("shop-2", "orders", "payments", has=[("orders", 1), ("payments", 1)]),
]
BILLING = [member("billing-1", "invoices", has=[("invoices", 0)]), member("billing-2", "invoices")]
WEB = member("web", "clicks", has=[("clicks", 0)])


@pytest.fixture
def cluster() -> InMemoryCluster:
    made = InMemoryCluster()
    for topic, partitions in TOPICS.items():
        made.create_topic(topic, partitions)
        for partition in range(partitions):
            made.produce(topic, partition, 10)
    return made


def found(cluster: InMemoryCluster, *groups: str) -> dict[str, GroupAdvice]:
    return {each.status.group: each for each in advise(cluster, FakeClock(), groups)}


def test_applications_are_the_members_that_share_topics(cluster):
    """For a group of three applications, ``advise`` finds the members and topics of each.

    It names each application after its client ids.
    """
    for each in (*SHOP, *BILLING, WEB):
        cluster.join("big", each)
    advice = found(cluster)["big"]
    assert advice.applications is not None
    assert {each.name: (each.topics, [m.member_id for m in each.members]) for each in advice.applications} == {
        "billing": (frozenset({"invoices"}), ["billing-1", "billing-2"]),
        "shop": (frozenset({"orders", "payments"}), ["shop-1", "shop-2"]),
        "web": (frozenset({"clicks"}), ["web"]),
    }
    assert advice.finding is Finding.SHARED
    assert advice.advice == "3 applications share it: billing, shop, web; 1 of 5 members without a partition"


def test_applications_are_named_by_a_topic_if_client_ids_do_not_tell_them_apart():
    """If client ids share no prefix, or two applications have the same prefix, a topic names the application."""
    alike = [member(f"m{number}", topic, client="consumer-big-1") for number, topic in enumerate(("a", "b"))]
    assert [each.name for each in applications(alike, ())] == ["a", "b"]
    mixed = [member("x", "b", client="cart"), member("y", "b", client="shop"), member("z", "c", client="b")]
    assert {each.name: each.topics for each in applications(mixed, ())} == {"b": {"b"}, "b-2": {"c"}}
    numbered = [member("app1-0", "a"), member("app1-1", "a"), member("app2-0", "b")]
    assert {each.name: each.topics for each in applications(numbered, ())} == {"app1": {"a"}, "app2": {"b"}}


def test_one_application_has_nothing_to_do(cluster):
    """If all members of a group share their topics, ``advise`` finds one application and nothing to do."""
    for each in SHOP:
        cluster.join("shop", each)
    advice = found(cluster)["shop"]
    assert (advice.finding, advice.advice) == (
        Finding.NOTHING,
        "nothing to do: one application, and each member has a partition",
    )


def test_members_that_are_connected_by_others_are_one_application(cluster):
    """If each member of a group shares one topic with the next member, all members are one application."""
    chain = [member(f"m{number}", f"t{number}", f"t{number + 1}") for number in range(1000)]
    assert [each.topics for each in applications(chain, ())] == [{f"t{number}" for number in range(1001)}]


@pytest.mark.parametrize("regex", ["", ".*", "look-(?=around)"])
def test_a_subscription_that_joins_applications_is_named(cluster, regex):
    """If one member subscribes to the topics of three applications, ``advise`` names this member.

    It does so even if the member's regular expression can't be evaluated.
    """
    topics = () if regex else tuple(TOPICS)
    for each in (*SHOP, *BILLING, WEB, member("audit-1", *topics, regex=regex)):
        cluster.join("big", each, group_type="consumer")
    advice = found(cluster)["big"]
    assert (advice.finding, [each.client_id for each in advice.broad]) == (Finding.JOINED, ["audit-1"])
    assert advice.advice.startswith("one application; it would be 3 without the subscription of audit-1; 2 of 6 mem")


NEW_PODS = [member(f"shop-7d9f8b6c5-{pod}", "orders", "returns", has=[("orders", 0)]) for pod in ("x2k4p", "b8q2z")]
OLD_PODS = [member(f"shop-5c4d3b2a1-{pod}", "payments", has=[("payments", 0)]) for pod in ("aaaaa", "c9d8e")]
SHARDS = [member(f"shop-{number}", f"shard-{number}", has=[(f"shard-{number}", 0)]) for number in range(3)]


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ([*NEW_PODS, *OLD_PODS], "shop"),
        ([replace(each, client_id="shop") for each in (*NEW_PODS, *OLD_PODS)], "shop"),
        (SHARDS, "shop"),
    ],
)
def test_members_with_client_ids_of_one_application_are_not_split(cluster, members, name):
    """Pods with the same stem are one application: of a rolling deploy with other topics, and with a shard each.

    ``advise`` says that only their client ids make them one, and proposes no split.
    """
    for each in members:
        cluster.join("big", each)
    advice = found(cluster)["big"]
    assert advice.finding is Finding.NOTHING
    assert advice.advice.endswith(f"; one application by client ids alone, not by topics: {name}")
    with pytest.raises(Refused, match="no split of group 'big' would separate applications"):
        proposed(cluster, "big")


def test_proposed_names_have_no_suffix_of_a_pod(cluster):
    """The target groups of a proposed split are named after the application, without suffixes of pods and UUIDs."""
    uuid = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
    for each in (
        *NEW_PODS,
        *OLD_PODS,
        member("billing-5c4d3b2a1-aaaaa", "invoices"),
        member(f"web-{uuid}", "clicks"),
        member(uuid, "refunds"),
    ):
        cluster.join("big", each)
    cluster.create_topic("refunds", 1)
    made = proposed(cluster, "big")
    assert [each.group for each in made.spec.targets] == ["big-billing", "big-refunds", "big-shop", "big-web"]
    by_client_ids = "One application by client ids alone: no member connects its topics."
    assert [name for name, lines in made.notes.items() if by_client_ids in lines] == ["big-shop"]


def test_what_is_not_known_is_said(cluster):
    """For a group without members, ``advise`` says that its applications are not known.

    For Connect, Streams and share groups, it says why there is nothing to split.
    """
    cluster.commit("stopped", TopicPartition("orders", 0), 5)
    cluster.join("connect", member("c-1"), protocol_type="connect")
    cluster.join("connect-sink", member("connector-consumer-0", "orders", has=[("orders", 0)]))
    cluster.join("streams", member("s-1", "orders", has=[("orders", 0)]), assignor="stream")
    cluster.join("shared", member("q-1", "orders"), group_type="share", protocol_type="share")
    advice = found(cluster)
    assert {name: (each.finding, each.applications) for name, each in advice.items()} == {
        "stopped": (Finding.UNKNOWN, None),
        **dict.fromkeys(("connect", "connect-sink", "streams", "shared"), (Finding.NOTHING, None)),
    }
    assert {name: each.advice for name, each in advice.items()} == {
        "stopped": "not known: it has no members: stopped, or consumers without membership; run it while they consume",
        "connect": "nothing to split: it is not a consumer group: its type is classic connect (workers of Kafka "
        "Connect)",
        "connect-sink": "nothing to split: it belongs to a Connect sink",
        "streams": "nothing to split: the topics of a Kafka Streams application belong together",
        "shared": "nothing to split: it is not a consumer group: its type is share",
    }


def test_the_worst_group_comes_first(cluster):
    """``advise`` lists the groups with the most applications first, then groups with idle members.

    Groups without members follow, the highest lag first, and then all others.
    """
    for each in (*SHOP, *BILLING):
        cluster.join("two", each)
    for each in (*SHOP, *BILLING, WEB):
        cluster.join("three", each)
    for each in BILLING:
        cluster.join("idle", each)
    cluster.join("well", WEB)
    for group, offset in (("behind", 1), ("near", 9)):
        cluster.commit(group, TopicPartition("orders", 0), offset)
    assert [*found(cluster)] == ["three", "two", "idle", "behind", "near", "well"]


def test_only_groups_that_are_named_are_looked_at(cluster):
    """If groups are named on the command line, ``advise`` reads only these.

    A named group that does not exist is an error.
    """
    for group in ("a", "b"):
        cluster.commit(group, TopicPartition("orders", 0), 5)
    assert [*found(cluster, "b")] == ["b"]
    with pytest.raises(GroupNotFound, match="'c'"):
        found(cluster, "b", "c")


@given(st.lists(st.frozensets(st.sampled_from("abcdefgh"), max_size=3), max_size=12))
def test_components_are_those_of_a_merge_one_by_one(subscriptions):
    """``components`` returns the same sets of topics as merging overlapping subscriptions one by one."""
    merged: list[frozenset[str]] = []
    for each in filter(None, subscriptions):
        near = [other for other in merged if other & each]
        merged = [other for other in merged if not other & each] + [each.union(*near)]
    assert components(subscriptions) == sorted(merged, key=min)


@pytest.mark.parametrize(
    ("client_id", "expected"),
    [
        ("shop-7d9f8b6c5-x2k4p", "shop"),
        ("shop-5c4d3b2a1-12345", "shop"),
        ("shop-api-7d9f8b6c5-x2k4p-0", "shop-api"),
        ("shop-12", "shop"),
        ("shop-3-1", "shop"),
        ("shop-0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", "shop"),
        ("0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", ""),
        ("0b1c2d3e4f5061728394a5b6c7d8e9f0", ""),
        ("consumer-big-1", ""),
        ("rdkafka", ""),
        ("ip-10-0-0-12", ""),
        ("shop-orders-event", "shop-orders-event"),
        ("größe-1", "größe"),
        ("shop", "shop"),
        ("", ""),
    ],
)
def test_a_stem_is_the_client_id_without_what_differs_between_processes(client_id, expected):
    """The suffix of a pod and a UUID are no part of a stem; a library's default client id and a host name have none."""
    assert stem(client_id) == expected


@given(st.lists(st.frozensets(st.sampled_from("abcdef"), min_size=1, max_size=4), min_size=1, max_size=8))
def test_a_joining_subscription_is_one_without_which_there_are_more_applications(subscriptions):
    """``Application.joining`` names a subscription if and only if its members join several applications into one."""
    members = [member(f"m{number}", *topics) for number, topics in enumerate(subscriptions)]
    for each in applications(members, ()):
        own = {m.subscription for m in each.members}
        most = max(len(components(own - {left_out})) for left_out in own)
        broad, without = each.joining()
        assert (len(without) if broad else 1) == max(most, 1)
        if broad:
            assert components(own - {m.subscription for m in broad}) == without


def proposed(cluster: InMemoryCluster, group: str):
    return propose(cluster, found(cluster, group)[group])


def test_the_proposed_split_gives_each_application_a_group(cluster):
    """The proposed split gives each application a new group.

    Topics that no member subscribes to stay in the source group, and a deleted topic is left out.
    """
    for each in (*SHOP, *BILLING, WEB, member("late", "not-there")):
        cluster.join("big", each)
    cluster.create_topic("left", 1)
    for group, topic in (("big", "left"), ("big", "gone"), ("big-web", "left")):
        cluster.commit(group, TopicPartition(topic, 0), 0)
    cluster.rebalance_delay = timedelta(seconds=3)
    proposal = proposed(cluster, "big")
    assert {each.group: [str(topic) for topic in each.topics] for each in proposal.spec.targets} == {
        "big-billing": ["invoices"],
        "big-shop": ["orders", "payments"],
        "big-web-2": ["clicks"],
    }
    assert [str(topic) for topic in proposal.spec.stay] == ["left"]
    text = "\n".join(proposal.heading)
    assert "cooperative-sticky" in text
    assert "waits 3 s (group.initial.rebalance.delay.ms)" in text
    assert "6 partitions without a committed offset." in text


def test_no_split_is_proposed_for_one_application_or_an_unknown_one(cluster):
    """No split is proposed for a group without members, nor for a group that only one application uses.

    This holds even if that application would be several without one member's subscription.
    """
    for each in (*SHOP, *BILLING, member("audit", *TOPICS)):
        cluster.join("joined", each)
    cluster.join("well", WEB)
    cluster.commit("stopped", TopicPartition("orders", 0), 5)
    for group, why in (("joined", "2 without the subscription of audit"), ("well", "nothing to do")):
        with pytest.raises(Refused, match=f"no split of group '{group}' would separate applications: .*{why}"):
            proposed(cluster, group)
    with pytest.raises(Undetermined, match="no members"):
        proposed(cluster, "stopped")


def test_cheaper_settings_fit_the_group(cluster):
    """The settings that ``advise`` suggests fit the group: cooperative-sticky only for an eager assignor.

    KIP-848 is suggested for all classic groups, and nothing for a KIP-848 group.
    """
    static = replace(member("a", "orders"), group_instance_id="a")
    cluster.join("eager", member("a", "orders"))
    cluster.join("cooperative", static, assignor="cooperative-sticky")
    cluster.join("new", static, group_type="consumer")
    settings = {
        group: [each.setting.split()[0] for each in client_settings(advice.status)]
        for group, advice in found(cluster).items()
    }
    assert settings == {
        "eager": [
            "group.protocol=consumer",
            "partition.assignment.strategy=cooperative-sticky",
            "max.poll.records",
            "group.instance.id",
        ],
        "cooperative": ["group.protocol=consumer", "max.poll.records"],
        "new": [],
    }


GROUPS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
PATTERNS = st.builds(TopicPattern, st.text(st.characters(exclude_categories=["Cs"]), min_size=1))


@given(GROUPS, st.lists(GROUPS, min_size=1, max_size=3, unique=True), st.lists(PATTERNS, min_size=1), st.text())
def test_a_written_spec_is_read_as_the_same_split(tmp_path_factory, source, names, patterns, note):
    """A written spec is read as the same split, whatever characters its group names and patterns contain.

    A comment in the spec never becomes a key.
    """
    targets = tuple(SplitTarget(group=name, topics=tuple(patterns)) for name in names if name != source)
    if not targets:
        return
    spec = SplitSpec(source=source, targets=targets, stay=tuple(patterns), fan_out=len(note) > 3)
    path = tmp_path_factory.getbasetemp() / "written.toml"
    path.write_bytes(to_toml(spec, [note], {None: [note], targets[0].group: [note]}).encode())
    assert split_toml.load(path).spec == spec


def test_the_command_writes_a_spec(cluster, tmp_path, monkeypatch):
    """``advise --spec-for`` writes a split spec to a new file or to stdout.

    An existing file, and options that contradict each other, end with exit code 2; a group without members with 7.
    """
    cli = Connected(tmp_path, monkeypatch, cluster)
    for each in (*SHOP, WEB):
        cluster.join("big", each)
    (tmp_path / "split.toml").unlink()
    assert "next: migrate-groups migrate split.toml --dry-run" in cli(*SPEC_FOR, "-o", "split.toml").stderr
    assert split_toml.load(tmp_path / "split.toml").spec.source == "big"
    assert cli(*SPEC_FOR).stdout == (tmp_path / "split.toml").read_text()
    assert parsed(cli(*SPEC_FOR, "-o", "2.toml", "--format", "json").stdout)["groups"][0]["group"] == "big"
    assert "exists already" in cli.fails(*SPEC_FOR, "-o", "split.toml", code=2)
    assert "write to stdout" in cli.fails(*SPEC_FOR, "--format", "json", code=2)
    assert "name no other" in cli.fails(*SPEC_FOR, "web", code=2)
    assert "--application and -o go with --spec-for" in cli.fails("advise", "-o", "x.toml", code=2)
    assert "--report and --since go with --log: pass both" in cli.fails("advise", "--report", "out", code=2)
    assert "no --log, --after or --report" in cli.fails(*SPEC_FOR, "--report", "out", code=2)
    assert "--report names the folder" in cli.fails("advise", "--log", "l", "--report", "out", "-o", "o", code=2)
    cli.fails("advise", "--spec-for", "old", code=7)


def test_a_spec_for_some_applications(cluster, tmp_path, monkeypatch):
    """``advise --spec-for GROUP --application NAME`` gives only these a new group. The topics of the others stay.

    An unknown name is exit code 2, and the error names the applications.
    """
    cli = Connected(tmp_path, monkeypatch, cluster)
    for each in (*SHOP, *BILLING, WEB):
        cluster.join("big", each)
    text = cli(*SPEC_FOR, "--application", "billing").stdout
    (tmp_path / "some.toml").write_text(text)
    spec = split_toml.load(tmp_path / "some.toml").spec
    assert {target.group: [each.pattern for each in target.topics] for target in spec.targets} == {
        "big-billing": ["invoices"]
    }
    assert [each.pattern for each in spec.stay] == ["clicks", "orders", "payments"]
    assert "# shop stays: 2 members (shop-1, shop-2)" in text
    assert "# web stays: 1 member (web)" in text
    error = cli.fails(*SPEC_FOR, "--application", "biling", code=2)
    assert "group 'big' has no application biling: did you mean billing?" in error
    assert "choose from billing, shop, web" in cli.fails(*SPEC_FOR, "--application", "xyz", code=2)
    assert "--application and -o go with --spec-for" in cli.fails("advise", "--application", "web", code=2)


def test_the_command_shows_groups_and_applications(cluster, tmp_path, monkeypatch):
    """``advise`` prints a line for each group, and for a group named on the command line also one for each application.

    The JSON contains groups and applications.
    """
    cli = Connected(tmp_path, monkeypatch, cluster)
    for each in (*SHOP, WEB):
        cluster.join("big", each)
    cluster.commit("big", TopicPartition("clicks", 0), 4)
    cluster.commit("big", TopicPartition("t", 0), 7)
    lines = cli("advise").stdout.splitlines()
    assert lines[1].split()[:9] == ["big", "Stable", "classic", "range", "2", "3", "0", "4", "9"]
    assert lines[-1] == "2 groups: 1 shared, 1 not known"
    whole = cli("advise", "big").stdout
    assert ["shop", "2", "0", "-", "orders,", "payments", "shop-1,", "shop-2"] in map(str.split, whole.splitlines())
    assert whole.endswith("no member subscribes to t, for which offsets are committed\n")
    (group,) = parsed(cli("advise", "big", "--format", "json").stdout)["groups"]
    assert [(each["name"], each["members"], each["lag"]) for each in group["applications"]] == [
        ("shop", 2, None),
        ("web", 1, 6),
    ]
    assert group["unsubscribed"] == [{"topic": "t", "partitions": 1, "lag": 3}]
